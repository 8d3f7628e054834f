"""Groups of the consumer protocol (KIP-848): the coordinator assigns, members reconcile.

Start with `group` (what the records of a group say), then `reconciliation` (how a member gets from
its assignment to the target), then `heartbeat` (the request that drives both).
"""
