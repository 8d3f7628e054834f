"""The transaction coordinator: requests in, effects out (KIP-98).

`transaction_coordinator` is its API. The other modules, from the bottom: `state` (one transactional
id and its table of transitions), `log_records` (its bytes), `messages`, `core` (shared state, and
the log), `markers` (the end of a transaction in each of its partitions), `ends` (commit, abort,
fence, timeout), `requests` (the others of producers), `listing` (requests of administrators),
`loading`.
"""
