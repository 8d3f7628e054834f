"""pytest plugins: time limits, leaks, lanes, what could not be checked."""
