"""Every message in every version: our bytes are kio's bytes, both ways (kio 0.5.0 is Kafka 3.9).

kio's classes are made of Kafka's message definitions. They differ from ours in Python types only:
durations and dates are `datetime` objects, errors are members of an enum, a zero uuid is None.
`scripts/conformance --protocol` tries many more values.
"""

from __future__ import annotations

import datetime
import io
import os
import uuid
from dataclasses import MISSING, Field, fields
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from kafkapy.common.uuid import ZERO_UUID
from kafkapy.protocol.api_keys import API_VERSIONS, ApiKey
from kafkapy.protocol.compile import decode
from kafkapy.protocol.headers import encode_request, encode_response
from kafkapy.protocol.messages import request_class
from kafkapy.protocol.schema import Field as OurField
from kafkapy.protocol.schema import Kind, Message, Struct
from tests.harness.protocol.encoding import encode_bytes
from tests.harness.protocol.protocol_examples import all_messages, filled
from tests.harness.protocol.protocol_strategies import kind_values, messages

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MESSAGES = list(dict.fromkeys(cls for cls, _ in all_messages()))
EXAMPLES = int(os.environ.get("KAFKAPY_PROTOCOL_EXAMPLES", "4"))
"""By chance, besides one in which every field has a value."""


KAFKA_4 = {
    ApiKey.PRODUCE: 12,
    ApiKey.OFFSET_COMMIT: 10,
    ApiKey.OFFSET_FETCH: 10,
    ApiKey.API_VERSIONS: 5,
    ApiKey.FETCH: 18,
    ApiKey.LIST_OFFSETS: 10,
    ApiKey.METADATA: 13,
    ApiKey.UPDATE_FEATURES: 2,
    ApiKey.DESCRIBE_CLUSTER: 2,
    ApiKey.END_TXN: 5,
    ApiKey.TXN_OFFSET_COMMIT: 5,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: 1,
    ApiKey.CONSUMER_GROUP_DESCRIBE: 1,
    ApiKey.LIST_CONFIG_RESOURCES: 0,
    **{key: 0 for key in ApiKey if key >= ApiKey.SHARE_GROUP_HEARTBEAT},
}
"""The first versions that Kafka 3.9 does not have, or has under another name:
tests/unit/protocol/test_kafka_4_messages.py, test_kafka_4_versions.py and
test_share_group_messages.py.
"""

OWN_TAGS = 10_000
"""Tags from here on are kafkapy's own. Other implementations skip them."""


def versions_of(cls: type[Message]) -> range:
    return range(cls.MIN_VERSION, KAFKA_4.get(ApiKey(cls.API_KEY), cls.MAX_VERSION + 1))


def kio_class(cls: type[Message], version: int) -> type[Any]:
    side = cls.__name__.removeprefix(ApiKey(cls.API_KEY).name.title().replace("_", "")).lower()
    module = import_module(f"kio.schema.{cls.API_KEY.name.lower()}.v{version}.{side}")
    return getattr(module, cls.__name__)


def kafkas_fields(ours: type[Struct]) -> list[OurField]:
    return [field for field in ours.FIELDS if field.tag is None or field.tag < OWN_TAGS]


@cache
def pairs(ours: type[Struct], theirs: type[Any]) -> list[tuple[OurField, Field[Any], Any, str]]:
    """Our field, kio's field, kio's element type and kio's name of the wire type."""
    hints = get_type_hints(theirs)
    by_name = {field.name: field for field in ours.FIELDS}
    found = []
    for field in fields(theirs):
        kind = field.metadata.get("kafka_type", "")
        suffix = "_ms" if kind.startswith(("timedelta", "datetime")) else ""
        name = field.name.replace("k_raft", "kraft").rstrip("_") + suffix
        found.append((by_name[name], field, element_type(hints[field.name]), kind))
    return found


def element_type(hint: Any) -> Any:
    while get_origin(hint) is not None:
        hint = next(each for each in get_args(hint) if each is not type(None))
    return hint


def to_kio(ours: Struct, theirs: type[Any]) -> Any:
    """kio's twin of one of our values."""
    values = {}
    for our_field, field, element, kind in pairs(type(ours), theirs):
        value = getattr(ours, our_field.name)
        if isinstance(value, list):
            values[field.name] = tuple(element_to_kio(each, element, kind) for each in value)
        else:
            values[field.name] = element_to_kio(value, element, kind)
    return theirs(**values)


def element_to_kio(value: Any, element: Any, kind: str) -> Any:
    if isinstance(value, Struct):
        return to_kio(value, element)
    if kind == "error_code":
        return ErrorCode(value)
    if kind == "uuid":
        return None if value == ZERO_UUID else uuid.UUID(bytes=bytes(value))
    if kind.startswith("timedelta"):
        return datetime.timedelta(milliseconds=value)
    if kind == "datetime_i64":
        return None if value == -1 else EPOCH + datetime.timedelta(milliseconds=value)
    return value


def kio_friendly(ours: Struct, theirs: type[Any]) -> None:
    """Bring the values of `ours` into the ranges of kio's Python types, without own fields."""
    for own in set(ours.FIELDS).difference(kafkas_fields(type(ours))):
        setattr(ours, own.name, own.default)
    for our_field, field, element, kind in pairs(type(ours), theirs):
        value = getattr(ours, our_field.name)
        if kind == "error_code":
            setattr(ours, our_field.name, value % 121)
        elif kind == "timedelta_i64":
            setattr(ours, our_field.name, value % 10**12)
        elif kind == "datetime_i64":
            nullable = type(None) in get_args(get_type_hints(theirs)[field.name])
            seconds = value % 10**9 * 1000
            setattr(ours, our_field.name, -1 if nullable and value % 3 == 0 else seconds)
        else:
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, Struct) and each is not our_field.default:
                    kio_friendly(each, element)


@pytest.mark.parametrize("cls", MESSAGES)
def test_bytes_equal_kio(cls: type[Message]) -> None:
    for version in versions_of(cls):
        expect_same_bytes(cls, version)


def expect_same_bytes(cls: type[Message], version: int) -> None:
    theirs = kio_class(cls, version)
    write, read = entity_writer(theirs), entity_reader(theirs)

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(messages(cls, version))
    @example(filled(cls, version))
    def same(ours: Any) -> None:
        kio_friendly(ours, theirs)
        twin = to_kio(ours, theirs)
        sink = io.BytesIO()
        write(sink, twin)
        expected = sink.getvalue()
        assert encode_bytes(ours, version) == expected, f"version {version}"
        assert decode(cls, version, expected) == (ours, len(expected)), f"version {version}"
        assert read(expected, 0) == (twin, len(expected)), f"version {version}"

    same()


@pytest.mark.parametrize("cls", MESSAGES)
def test_schema_equals_kio(cls: type[Message]) -> None:
    """The same fields in the same order, with the same tags, nullability and stated defaults."""
    for version in versions_of(cls):
        compare(cls, kio_class(cls, version), version)


def compare(ours: type[Struct], theirs: type[Any], version: int) -> None:
    present = [field for field in kafkas_fields(ours) if version in field.versions]
    found = pairs(ours, theirs)
    assert present == [our_field for our_field, *_ in found], f"version {version}"
    hints = get_type_hints(theirs)
    for our_field, field, element, kind in found:
        hint = hints[field.name]
        assert our_field.tag == field.metadata.get("tag"), field.name
        if kind not in ("uuid", "datetime_i64"):
            assert our_field.is_nullable(version) == (type(None) in get_args(hint)), field.name
        if isinstance(our_field.item, Kind):
            if field.default is not MISSING and not our_field.is_array:
                assert element_to_kio(our_field.default, element, kind) == field.default, field.name
        else:
            compare(our_field.item, element, version)


def test_kio_friendly_values_cover_all_kinds() -> None:
    """The oracle sees every primitive type, so a new one cannot slip past it."""
    seen = set()

    def walk(cls: type[Struct]) -> None:
        for field in cls.FIELDS:
            if isinstance(field.item, Kind):
                seen.add(field.item.name)
                assert isinstance(kind_values(field.item), st.SearchStrategy)
            else:
                walk(field.item)

    for cls in MESSAGES:
        walk(cls)
    assert seen == {
        *("int8", "int16", "int32", "int64", "bool", "float64", "uuid", "string", "bytes"),
        "records",
    }


@pytest.mark.parametrize("cls", MESSAGES)
def test_headers_equal_kio(cls: type[Message]) -> None:
    """The frame around a message has the header that kio writes for its version."""
    for version in versions_of(cls):
        expect_header(cls, version)


def expect_header(cls: type[Message], version: int) -> None:
    message = filled(cls, version)
    header_class = kio_class(cls, version).__header_schema__
    values = {"correlation_id": 7}
    if cls is request_class(cls.API_KEY):
        values |= {"request_api_key": cls.API_KEY, "request_api_version": version}
        if header_class.__version__ > 0:
            values |= {"client_id": "me"}
        frame = encode_request(message, version, 7, "me")
    else:
        frame = b"".join(encode_response(message, cls.API_KEY, version, 7))
    sink = io.BytesIO()
    entity_writer(header_class)(sink, header_class(**values))
    expected = sink.getvalue() + encode_bytes(message, version)
    assert frame == len(expected).to_bytes(4, "big") + expected, f"version {version}"


@pytest.mark.parametrize("key", [key for key in ApiKey if KAFKA_4.get(key) != 0])
def test_kio_has_no_version_that_we_lack(key: ApiKey) -> None:
    package = f"kio.schema.{key.name.lower()}"
    beyond = KAFKA_4.get(key, API_VERSIONS[key].last + 1)
    assert find_spec(f"{package}.v{beyond - 1}") is not None
    assert find_spec(f"{package}.v{beyond}") is None
