"""What a cluster promises, one promise a file.

A checker sees every change of a hosted partition, of a znode and of a controller as soon as it is
made, and everything once more at the end. It raises `Violation`.
"""
