"""Brokers with TLS, SASL, ACLs and tokens, and what issues their credentials."""
