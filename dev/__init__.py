"""Programs of this project's own: benchmarks, chaos, conformance, the demo, generated docs."""
