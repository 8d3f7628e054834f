"""Groups of the consumer protocol (KIP-848): the coordinator assigns, members reconcile.

Start with `consumer_group` (the state that a group's records define), then `reconciliation` (the
steps from a member's assignment to its target), then `heartbeat` (the request that drives both).
"""
