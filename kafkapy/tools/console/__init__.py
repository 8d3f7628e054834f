"""The console producer and consumer."""
