"""Topics, sessions and jobs for Spark tests."""
