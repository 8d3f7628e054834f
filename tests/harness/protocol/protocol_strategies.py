"""Hypothesis strategies for every declared message, made from its fields."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

from kafkapy.common.uuid import Uuid
from kafkapy.protocol.schema import (
    BOOL,
    BYTES,
    FLOAT64,
    RECORDS,
    STRING,
    UUID,
    Field,
    Kind,
    Struct,
)

BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}

# Around the sizes where a uvarint grows a byte, and where short number arrays end.
LENGTHS = (0, 1, 2, 15, 16, 126, 127, 128)

TEXTS = st.text(max_size=4) | st.sampled_from(["é" * n for n in (63, 64, 8192)])
BLOBS = st.binary(max_size=4) | st.sampled_from([bytes(n) for n in (*LENGTHS, 2047, 2048, 16384)])


def kind_values(kind: Kind[Any]) -> st.SearchStrategy[Any]:
    """Values of a primitive type."""
    if kind.name in BITS:
        top = 1 << BITS[kind.name] - 1
        return st.integers(-top, top - 1)
    return {
        BOOL: st.booleans(),
        FLOAT64: st.floats(allow_nan=False),
        UUID: st.binary(min_size=16, max_size=16).map(Uuid),
        STRING: TEXTS,
        BYTES: BLOBS,
        RECORDS: BLOBS,
    }[kind]


def field_values(field: Field, version: int) -> st.SearchStrategy[Any]:
    """Values that a field may have in a version."""
    if isinstance(field.item, Kind):
        values = kind_values(field.item)
        if field.is_array:
            repeated = st.builds(lambda v, n: [v] * n, values, st.sampled_from(LENGTHS))
            values = st.lists(values, max_size=3) | repeated
    else:
        values = messages(field.item, version)
        if field.is_array:
            values = st.lists(values, max_size=2)
    if field.tag is not None:
        values = st.just(field.default) | values
    return st.none() | values if field.is_nullable(version) else values


@cache
def messages(cls: type[Struct], version: int) -> st.SearchStrategy[Any]:
    """Instances whose fields outside `version` keep their defaults."""
    return st.builds(
        cls,
        **{
            field.name: field_values(field, version)
            for field in cls.FIELDS
            if version in field.versions
        },
    )
