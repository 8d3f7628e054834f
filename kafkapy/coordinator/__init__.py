"""Group coordinator: handle methods return effects, replay methods apply records.

May import `record`, `common`. Start with `group` (the state machine of one group), then
`group_coordinator` (the API for the broker), then `rebalance` (the end of a generation and the
start of the next). Groups of the consumer protocol are in `groups.consumer`.
"""
