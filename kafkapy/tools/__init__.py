"""Operations tools: they plan a change, then apply it.

This package may import `admin`, `client`, `record`, `common`, and `storage` for files.
"""
