"""Share groups (KIP-932): groups whose members share partitions, and get them at once.

A share group is a consumer group (`consumer.consumer_group`) with records of its own (`records`),
an assignor (`assignor`), and share partitions that the share coordinator initializes (`states`).
"""
