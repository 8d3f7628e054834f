"""Group, share and transaction coordinators: calls return effects, replay methods apply records.

May import `record`, `common`. Start with `groups.group` (the state machine of one group), then
`groups.group_coordinator` (the API for the broker), then `groups.rebalance` (the end of a
generation and the start of the next). Groups of the consumer protocol are in `groups.consumer`.
"""
