"""`scripts/docs` and `scripts/completions`: generated tables, pages and completions."""
