"""The store of a single broker: a tree of znodes, its journal, and watches."""
