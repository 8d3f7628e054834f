"""Mutation score of the simulator: it must detect production code that is broken on purpose."""
