"""The wire, sans-I/O: schemas compiled per version, headers, framing.

May import `common`. Start with `schema` (how a message is declared) and `messages/produce` (one
that is), then `compile` (what becomes of it), `headers`, `framing` and the two connections.
"""
