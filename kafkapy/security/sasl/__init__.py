"""SASL mechanisms: both halves of each, and the JAAS texts that configure them."""
