"""Clients of kafka-python that are closed completely."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar


class Client(Protocol):
    def close(self) -> None: ...


T = TypeVar("T", bound=Client)


@contextmanager
def closed(client: T) -> Iterator[T]:
    """Close `client` at the exit, also a socket that it is still connecting.

    kafka-python leaves this socket to the garbage collector, whose warning would fail the test that
    runs then.
    """
    try:
        yield client
    finally:
        client.close()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()
