"""The group coordinator: requests and deadlines in; replies, timers and records out."""
