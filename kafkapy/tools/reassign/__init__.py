"""Reassignment of partitions: execute, verify, throttle and cancel."""
