"""A digest of the code that the simulator runs, without docstrings and comments.

Seeds that ran at two commits with one digest ran the same code, so they count together. The digest
does not depend on the version of Python: the syntax tree is hashed, without positions and without
empty fields, such as those that newer versions add.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

SIMULATED_PACKAGES: Final = (
    "common",
    "controller",
    "coordinator",
    "metadata",
    "protocol",
    "record",
    "replication",
    "security",
    "server",
    "storage",
    "zk",
)
_HEX_DIGITS: Final = 12


def code_digest(kafkapy: Path, packages: tuple[str, ...] = SIMULATED_PACKAGES) -> str:
    """The digest of `packages` in the directory `kafkapy`, in hexadecimal digits."""
    digest = hashlib.sha256()
    for package in packages:
        for path in sorted((kafkapy / package).rglob("*.py")):
            digest.update(f"{path.relative_to(kafkapy).as_posix()}\n".encode())
            digest.update("".join(_tokens(ast.parse(path.read_bytes()))).encode())
    return digest.hexdigest()[:_HEX_DIGITS]


def _tokens(node: object) -> Iterator[str]:
    """The node's type and its fields, recursively."""
    if isinstance(node, list):
        yield "["
        for item in node:
            if not _is_docstring(item):
                yield from _tokens(item)
        yield "]"
    elif isinstance(node, ast.AST):
        yield f"({type(node).__name__}"
        for name, value in ast.iter_fields(node):
            if value or isinstance(node, ast.Constant):
                yield f" {name}="
                yield from _tokens(value)
        yield ")"
    else:
        yield ascii(node)


def _is_docstring(node: object) -> bool:
    """Whether a statement is a string: of a module, a class, a function or an attribute."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
