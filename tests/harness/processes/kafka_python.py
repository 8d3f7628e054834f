"""The clients of kafka-python, closed to the end."""

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
    """Close `client` on the way out, and the socket that it was still connecting: kafka-python
    leaves that one to the garbage collector, whose warning would fail whichever test runs then."""
    try:
        yield client
    finally:
        client.close()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()
