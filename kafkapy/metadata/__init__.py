"""A broker's view of the cluster: immutable images.

May import `security`, `common`. Start with `image`.
"""
