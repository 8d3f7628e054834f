"""One row of the table of APIs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kafkapy.common.errors import ApiError


class Served(NamedTuple):
    """One API: its versions, its message class, and what handles or refuses it."""

    name: str
    min_version: int
    max_version: int
    request_class: Any
    handle: Callable[[Any, Any], Any]
    refuse: Callable[[Any, ApiError, int], Any]
