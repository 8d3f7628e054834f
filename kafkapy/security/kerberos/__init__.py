"""GSSAPI: both halves, names and logins, and the adapter of the GSS library."""
