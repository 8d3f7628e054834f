"""Texts from command lines, stdin and files."""

from __future__ import annotations


def is_utf8(text: str) -> bool:
    """Whether a text can be encoded. It cannot if bytes that are not UTF-8 were read as lone
    surrogates (PEP 383), or an escape in a file names one.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
