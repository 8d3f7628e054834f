"""Client quotas: their values, the usage of clients, and their pauses."""
