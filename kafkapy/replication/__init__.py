"""One partition and its replicas, and the requests that wait.

May import storage types, `record`, `common`. Start with `partition`.
"""
