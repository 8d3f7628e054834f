"""Mutation score of the simulator: production code that is broken on purpose must be found out."""
