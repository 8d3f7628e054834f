"""Group coordinator: handle methods return effects, replay methods apply records.

May import `record`, `common`. Start with `group` (the state machine of one group), then
`group_coordinator` (the whole, as the broker sees it), then `rebalance` (how a generation ends and
the next begins). Groups of the consumer protocol are in `groups.consumer`.
"""
