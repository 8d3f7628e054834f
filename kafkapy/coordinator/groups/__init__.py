"""The group coordinator: requests and time in, replies, timers and records out."""
