"""Authentication and authorization: SASL, OAuth, Kerberos, TLS stores, ACLs, tokens; no I/O."""
