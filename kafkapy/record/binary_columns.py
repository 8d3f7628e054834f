"""Columns of byte strings in Arrow's layout: the output of `columns`, the input of `row_batches`.

A separate module, because each of those two loads kernels that the other does not need.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class BinaryColumn(NamedTuple):
    """Value `i` is `data[offsets[i]:offsets[i + 1]]`; null if bit `i` of `validity` is 0.

    Bits are numbered from the least significant bit of a byte, as in Arrow. For `row_batches`, a
    column without a bitmap has no nulls.
    """

    offsets: NDArray[np.int32]
    data: NDArray[np.uint8]
    validity: NDArray[np.uint8]


class HeaderColumns(NamedTuple):
    """Record `i` has the headers `offsets[i]` to `offsets[i + 1]` of `keys` and `values`."""

    offsets: NDArray[np.int32]
    keys: BinaryColumn
    values: BinaryColumn
