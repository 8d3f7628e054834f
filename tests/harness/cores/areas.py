"""The handlers of one area, built from the parts that a test needs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

from kafkapy.server.api.handler_table import Handlers


def area(build: Callable[..., Handlers], **given: Any) -> Handlers:
    """The handlers that `build` makes from `given`; mocks replace the other parts."""
    names = inspect.signature(build).parameters
    return build(**{name: given.get(name, Mock()) for name in names})
