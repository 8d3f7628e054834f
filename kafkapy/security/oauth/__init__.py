"""OAUTHBEARER: tokens, their checks and keys, and the HTTP adapter that fetches them."""
