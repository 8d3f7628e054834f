"""Operations as plan, then apply.

May import `admin`, `client`, `record`, `common`, and `storage` for files.
"""
