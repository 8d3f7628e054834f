"""Operations tools: they plan a change, then apply it.

May import `admin`, `client`, `storage`, `zk`, `record`, `security`, `common`.
"""
