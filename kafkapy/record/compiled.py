"""Compilation of this package's kernels: by numba, once, and kept.

Their signatures are given, so they compile, or load, when their module is imported, and never a
second time for another variant of array. Their parts have none: they are compiled with the
kernels, and nothing of them needs to be loaded. Numba looks at a kernel's own file to see whether
what it kept is stale: a change of `copy` here wants `__pycache__` cleared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import numba
import numpy as np

_Function = TypeVar("_Function", bound=Callable[..., Any])

I64: Final = numba.int64
SOURCE: Final = numba.types.Array(numba.uint8, 1, "C", readonly=True)
U8S: Final = numba.uint8[::1]
I32S: Final = numba.int32[::1]
I64S: Final = numba.int64[::1]


def compiled(signature: Any) -> Callable[[_Function], _Function]:
    """Compile now, and keep the machine code where numba finds it the next time.

    Inside a zip (an executor without kafkapy) nothing is kept: the path changes with each
    application, so that a cache would only grow.
    """
    in_zip = __spec__ is not None and hasattr(__spec__.loader, "archive")

    def decorate(function: _Function) -> _Function:
        try:
            return cast(_Function, numba.njit(signature, cache=not in_zip)(function))
        except (RuntimeError, OSError):  # no directory that can be written
            return cast(_Function, numba.njit(signature)(function))

    return decorate


def part(function: _Function) -> _Function:
    """A function that only kernels call."""
    return cast(_Function, numba.njit(function))


@part
def copy(source: Any, begin: int, length: int, data: Any, used: Any) -> Any:
    """Append bytes to `data`; how many there are then.

    Unsigned indices are what lets the loop vectorise.
    """
    at = np.uint64(begin)
    for k in range(np.uint64(max(length, 0))):
        data[used + k] = source[at + k]
    return used + np.uint64(max(length, 0))
