"""The `kafkapy` command: a lazy table of commands, one module each. Start with `main`."""
