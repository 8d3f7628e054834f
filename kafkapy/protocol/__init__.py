"""Kafka's wire protocol, sans-I/O: schemas compiled per version, headers, framing.

May import `security`, `common`. Start with `schema` (the declaration of messages) and
`messages/produce` (an example), then `compile` (decoders and encoders), `headers`, `framing` and
the two connections.
"""
