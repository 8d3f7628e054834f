"""Logs, batches and file systems for tests."""
