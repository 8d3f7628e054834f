"""What a broker knows of the cluster: immutable images.

May import `common`. Start with `image`.
"""
