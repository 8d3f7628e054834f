"""Calls methods in a forked process, which must not end the servers of the process that forked."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")

_calls: Final[WeakKeyDictionary[Any, Callable[[Any], None]]] = WeakKeyDictionary()


def call_after_fork(owner: T, call: Callable[[T], None]) -> None:
    """Call `call(owner)` in each process that is forked from now on, while the owner exists."""
    _calls[owner] = call


def _after_fork() -> None:
    for owner, call in list(_calls.items()):
        call(owner)


os.register_at_fork(after_in_child=_after_fork)
