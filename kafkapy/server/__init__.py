"""The broker process: the loop, the sockets, the wiring. Start with `broker`."""
