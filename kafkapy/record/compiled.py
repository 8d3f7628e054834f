"""Compiles this package's kernels with numba, once, and caches the machine code.

Kernels have explicit signatures, so they are compiled, or loaded, when their module is imported,
and never a second time for another type of array. Their parts have no signatures: they are compiled
into the kernels, and are not loaded. Numba checks only a kernel's own file for changes: after a
change of `copy` here, clear `__pycache__`.
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
    """Compile now, and cache the machine code for the next process.

    Inside a zip (an executor without kafkapy) nothing is cached: the path changes with each
    application, so the cache would only grow.
    """
    in_zip = __spec__ is not None and hasattr(__spec__.loader, "archive")

    def decorate(function: _Function) -> _Function:
        try:
            return cast(_Function, numba.njit(signature, cache=not in_zip)(function))
        except (RuntimeError, OSError):  # no directory is writable
            return cast(_Function, numba.njit(signature)(function))

    return decorate


def kernel_part(function: _Function) -> _Function:
    """A function that only kernels call."""
    return cast(_Function, numba.njit(function))


@kernel_part
def copy(source: Any, begin: int, length: int, data: Any, used: Any) -> Any:
    """Append bytes to `data`. Returns the new number of bytes.

    The loop is vectorised only with unsigned indices.
    """
    at = np.uint64(begin)
    for k in range(np.uint64(max(length, 0))):
        data[used + k] = source[at + k]
    return used + np.uint64(max(length, 0))
