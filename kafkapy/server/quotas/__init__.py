"""Client quotas: their values, what clients used, and how long they wait."""
