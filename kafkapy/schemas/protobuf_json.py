"""Protobuf messages as JSON and back, as Java's JsonFormat reads and writes them."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import EncodeError, Message
from google.protobuf.message_factory import GetMessageClass

from kafkapy.schemas.wire_format import CorruptValue

_WELL_KNOWN: Final = "google.protobuf"  # the package of messages with a JSON of their own
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]*={0,2}")


def message_fields(message: Message, **options: bool) -> dict[str, Any]:
    """The JSON of a message. A google.protobuf.Any may have any message of the same schema.

    Raises:
        json_format.Error, TypeError, ValueError: JSON cannot express it.
    """
    pool = message.DESCRIPTOR.file.pool
    found: dict[str, Any] = json_format.MessageToDict(message, descriptor_pool=pool, **options)
    return found


def message_of_json(text: str | bytes, descriptor: Descriptor) -> Message:
    """
    Raises:
        CorruptValue: the text is not the JSON of such a message.
    """
    message = GetMessageClass(descriptor)()
    try:
        json_format.Parse(text, message, descriptor_pool=descriptor.file.pool)
        _check(json.loads(text), descriptor)
    except (json_format.ParseError, EncodeError, ValueError) as error:
        raise CorruptValue(" ".join(str(error).split())) from error
    return message


def _check(value: Any, message: Descriptor) -> None:
    """Refuse the values that json_format reads as an empty message, or as fewer bytes.

    Raises:
        ValueError: an empty list or text for a message, or a text that is not in base64.
    """
    if message.file.package == _WELL_KNOWN:
        return
    if not isinstance(value, dict):
        raise ValueError(f"expected an object for {message.full_name}, found {value!r}")
    by_json_name = {each.json_name: each for each in message.fields}
    for name, content in value.items():
        field = by_json_name.get(name) or message.fields_by_name.get(name)
        if field is not None and content is not None:
            _check_field(content, field)


def _check_field(content: Any, field: FieldDescriptor) -> None:
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        for each in content.values():
            _check_field(each, inner.fields_by_name["value"])
        return
    for each in content if field.is_repeated else (content,):
        if inner is not None:
            _check(each, inner)
        elif field.type == field.TYPE_BYTES and not _BASE64.fullmatch(each):
            raise ValueError(f"{field.full_name} is not in base64: {each!r}")
