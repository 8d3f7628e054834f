"""Brokers with TLS, SASL, ACLs and tokens, and issuers of their credentials."""
