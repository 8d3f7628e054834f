"""One row of the table of APIs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kafkapy.common.errors import ApiError


class Api(NamedTuple):
    """One API of any broker: its versions, its message class, and its refusal."""

    name: str
    min_version: int
    max_version: int
    request_class: Any
    refuse: Callable[[Any, ApiError, int], Any]


class Served(NamedTuple):
    """One API of one broker, with what handles its requests."""

    name: str
    min_version: int
    max_version: int
    request_class: Any
    refuse: Callable[[Any, ApiError, int], Any]
    handle: Callable[[Any, Any], Any]
