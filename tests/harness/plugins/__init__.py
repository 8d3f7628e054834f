"""pytest plugins: time limits, leaks, lanes, a list of the checks that could not run."""
