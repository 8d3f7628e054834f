"""The messages of all APIs, one file per API. Declarations only.

Names follow one rule, so that no table is needed: the API `LIST_OFFSETS` has the module
`list_offsets` with `ListOffsetsRequest` and `ListOffsetsResponse`. A module is imported at its
first use; importing one message imports no other.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from kafkapy.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from kafkapy.protocol.schema import Message

_CLASSES: dict[tuple[int, str], type[Message]] = {}


def request_class(api_key: int) -> type[Message]:
    """The request of an API. Raises ValueError: no API has this key."""
    return _message_class(api_key, "Request")


def response_class(api_key: int) -> type[Message]:
    """The response of an API. Raises ValueError: no API has this key."""
    return _message_class(api_key, "Response")


def _message_class(api_key: int, suffix: str) -> type[Message]:
    known = _CLASSES.get((api_key, suffix))
    if known is None:
        name = ApiKey(api_key).name.lower()
        module = import_module(f"{__name__}.{name}")
        known = getattr(module, name.title().replace("_", "") + suffix)
        _CLASSES[api_key, suffix] = known
    return known
