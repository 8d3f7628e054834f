"""Admin operations on topics, configs, ACLs, quotas, credentials and tokens (`ZkAdminManager`)."""
