"""One partition with its replicas, and requests that wait for it.

May import `storage`, `record`, `common`. Start with `partition`.
"""
