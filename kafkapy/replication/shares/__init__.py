"""Share groups at the leader of a partition (KIP-932): records in flight, and share sessions."""
