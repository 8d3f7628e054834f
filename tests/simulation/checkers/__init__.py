"""Checkers of the guarantees of a cluster, one guarantee per file.

A checker receives every change of a hosted partition, of a znode and of a controller immediately.
It inspects the cluster once more at the end. It raises `Violation`.
"""
