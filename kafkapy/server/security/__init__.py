"""Credentials of listeners: TLS stores, Kerberos, OAuth, SCRAM and delegation tokens."""
