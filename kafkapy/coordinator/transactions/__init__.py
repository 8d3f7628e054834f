"""The transaction coordinator: requests in, effects out (KIP-98).

`transaction_coordinator` is what its shell sees. The others, from the bottom: `state` (one
transactional id and its table of transitions), `log_records` (as bytes), `messages`, `core` (what
they share, and the log), `requests` (what producers ask), `markers` (the end of a transaction in
each of its partitions), `listing` (what administrators ask), `loading`.
"""
