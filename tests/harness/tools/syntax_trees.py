"""Syntax trees of Python sources."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def nodes_of(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes, as `ast.walk` yields them, but in another order and in a third of the time: the
    packages have two million."""
    todo = [tree]
    while todo:
        node = todo.pop()
        yield node
        for value in vars(node).values():
            if isinstance(value, ast.AST):
                todo.append(value)
            elif isinstance(value, list):
                todo += [item for item in value if isinstance(item, ast.AST)]
