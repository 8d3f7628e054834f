"""What listeners log in with: TLS stores, Kerberos, OAuth, SCRAM and delegation tokens."""
