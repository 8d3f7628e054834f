"""Topics, configs, ACLs, quotas, credentials and tokens, changed as `ZkAdminManager` does."""
