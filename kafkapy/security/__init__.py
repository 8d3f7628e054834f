"""Who is who and may do what: SASL, OAuth, Kerberos, TLS stores, ACLs, tokens; without I/O."""
