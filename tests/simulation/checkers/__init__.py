"""Checkers of what a cluster promises, one promise a file.

A checker receives every change of a hosted partition, of a znode and of a controller as soon as it
is made. It inspects the cluster once more at the end. It raises `Violation`.
"""
