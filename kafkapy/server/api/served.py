"""One row of the table of APIs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar, Union

from kafkapy.common.errors import ApiError
from kafkapy.protocol.schema import Message
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.requests.outcomes import CloseConnection, OutcomeOrWork

Q = TypeVar("Q", bound=Message)  # requests
S = TypeVar("S", bound=Message)  # responses

Handle = Callable[[RequestContext, Q], OutcomeOrWork[S]]
Refuse = Callable[[Q, ApiError, int], Union[S, CloseConnection]]  # noqa: UP007
"""Creates the response that refuses a whole request, in the given version."""


class Api(NamedTuple, Generic[Q, S]):
    """One API of any broker: its versions, its message class, and its refusal."""

    name: str
    min_version: int
    max_version: int
    request_class: type[Q]
    refuse: Refuse[Q, S]


class ServedApi(NamedTuple, Generic[Q, S]):
    """One API of one broker, with its handler."""

    name: str
    min_version: int
    max_version: int
    request_class: type[Q]
    refuse: Refuse[Q, S]
    handle: Handle[Q, S]


# In a table, each row takes requests of its own class.
AnyApi = Api[Any, Message]  # type: ignore[explicit-any]
AnyServedApi = ServedApi[Any, Message]  # type: ignore[explicit-any]
