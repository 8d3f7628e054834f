"""`scripts/simulate`: the cluster simulator, a seed or many."""
