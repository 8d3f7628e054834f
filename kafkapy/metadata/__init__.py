"""A broker's view of the cluster: immutable images.

May import `common`. Start with `image`.
"""
