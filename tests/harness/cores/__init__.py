"""Parts of a broker without sockets, tasks or time."""
