"""Load: performance tests and verifiable clients."""
