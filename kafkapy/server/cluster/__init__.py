"""This broker as a member of its cluster: registration, controller, control requests."""
