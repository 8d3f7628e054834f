"""Hostile but well-formed requests over every served API and version, from the protocol's schema.

A seed decides every byte except the ids of topics. Each request has a *shape*: which of its arrays
is huge, whether the rows of this array are the same or all different, or which of its values are
extreme.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from random import Random
from typing import Any, Final, NamedTuple

from dev.fuzz.records import FRAME_BYTES_MAX, hostile_batches
from kafkapy.protocol.api_keys import API_VERSIONS, ApiKey
from kafkapy.protocol.headers import encode_request
from kafkapy.protocol.messages import request_class
from kafkapy.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkapy.protocol.primitives import uvarint
from kafkapy.protocol.schema import BOOL, BYTES, FLOAT64, RECORDS, STRING, UUID, Field, Kind
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.server.api.handlers import SERVED

SHAPES: Final = (
    "plain", "same rows", "different rows", "nested rows", "long values", "nulls", "extremes",
    "tagged fields",
)  # fmt: skip
NAMES: Final = (
    "fuzz", "wide", "compact", "gzip", "lz4", "stamped", "__consumer_offsets",
    "__transaction_state", "missing", "", "0", "1", "group-0", "group-1", "group-2", "*", ".", "..",
    "../../fuzz", "a" * 249, "b" * 250, "\n", "\u00e9\u4e2d", "User:ANONYMOUS", "User:mallory",
    "(a+)+$", "consumer", "range", "127.0.0.1", "cleanup.policy", "retention.ms", "compact,delete",
)  # fmt: skip
_MARK: Final = b"s\x00\x00\x00\x00mark"
_NUMBER_MARK: Final = b"\x5a\xa5\x5a\xa5"
# Other values of these fields only wait, or create objects that stay: clients may do that.
_VALUES: Final[dict[str, tuple[int, ...]]] = {
    "timeout_ms": (0, 1, 20, -1),
    "max_wait_ms": (0, 1, 20, -1),
    "session_timeout_ms": (6000, 0, -1, 2**31 - 1),
    "rebalance_timeout_ms": (1, 0, -1),
    "num_partitions": (1, 2, 0, -1, 20_000, 2**31 - 1),
    "count": (2, 1, 0, -1, 20_000, 2**31 - 1),
    "replication_factor": (1, 0, -1, 2, 32767),
    "acks": (1, -1, 0, 2),
    "resource_type": (2, 4, 8, 0, 3, 5, 127),
    "config_operation": (0, 1, 2, 3, 4),
    "controller_epoch": (-1, 0, 2**31 - 1),
    "transaction_timeout_ms": (1, 0, -1, 60_000, 2**31 - 1),
    "iterations": (4096, 0, -1, 8192, 2**31 - 1),
    "mechanism": (1, 2, 0),
}
_INTEGERS: Final = {"b": 7, "h": 15, "i": 31, "q": 63}
_OF_RECORDS: Final = 0.6
_OF_MANY_BATCHES: Final = 0.02
_BATCHES_MAX: Final = 1000
_LAST_VERSION_BY_NAME: Final = 12  # of Produce
# In these requests, distinct names would create topics.
_MAKES_TOPICS: Final = (ApiKey.METADATA, ApiKey.CREATE_TOPICS)


class Hostile(NamedTuple):
    """One request: its description, and its frame with the size prefix."""

    what: str
    api: ApiKey
    version: int
    frame: bytes


@cache
def served_versions() -> tuple[tuple[ApiKey, int], ...]:
    """Every API in every version that it is served in."""
    return tuple(
        (ApiKey(key), version)
        for key, served in sorted(SERVED.items())
        for version in range(served.min_version, served.max_version + 1)
    )


def hostile_request(
    seed: int,
    api: ApiKey,
    version: int,
    size_bytes: int,
    scale: int = 1,
    topic_ids: Sequence[bytes] = (),
) -> Hostile:
    """The request of a seed; its size is about `size_bytes` if it has a huge part."""
    random = Random(seed)
    if api == ApiKey.PRODUCE and random.random() < _OF_RECORDS:
        return hostile_records(random, min(version, _LAST_VERSION_BY_NAME), scale)
    maker = _Maker(random, api, version, size_bytes, topic_ids)
    return Hostile(maker.what, api, version, maker.frame())


def hostile_records(random: Random, version: int, scale: int) -> Hostile:
    """A Produce request that is plain except for its records."""
    topic = random.choice(("fuzz", "compact", "gzip", "lz4", "stamped"))
    # Clients of before Kafka 0.11 send message sets.
    batches = [row for row in hostile_batches(scale) if ("magic" in row[0]) == (version < 3)]
    what, records = random.choice(batches)
    rows = 1
    if random.random() < _OF_MANY_BATCHES:
        rows = max(1, min(_BATCHES_MAX, FRAME_BYTES_MAX // scale // max(1, len(records))))
        what = f"{rows} of {what}"
    request = ProduceRequest(
        acks=random.choice((1, -1)),
        timeout_ms=100,
        topic_data=[
            TopicProduceData(
                name=topic,
                partition_data=[PartitionProduceData(index=0, records=records)] * rows,
            )
        ],
    )
    frame = encode_request(request, version, 1, "fuzz")
    return Hostile(f"PRODUCE v{version} to {topic}: {what}", ApiKey.PRODUCE, version, frame)


class _Maker:
    """Writes one request as bytes: encoding a million objects would take a second."""

    def __init__(
        self,
        random: Random,
        api: ApiKey,
        version: int,
        size_bytes: int,
        topic_ids: Sequence[bytes] = (),
    ) -> None:
        self.topic_ids = topic_ids
        self.random = random
        self.api = api
        self.version = version
        self.cls: Any = request_class(api)
        first = API_VERSIONS[api].first_flexible
        self.flexible = first is not None and version >= first
        self.shape = random.choice(SHAPES)
        self.room = max(64, size_bytes - 400)
        self.is_marking = False
        self.names = list(NAMES)
        paths = self.array_paths(self.cls, ())
        self.huge = random.choice(paths) if paths and "rows" in self.shape else None
        if self.shape == "long values":
            self.fields = self.long_fields(self.cls, ())
            self.long = random.choice(self.fields) if self.fields else None
        else:
            self.long = None
        self.what = f"{api.name} v{version}: {self.shape}"
        if self.huge:
            self.what += f" of {'.'.join(self.huge)}"
        if self.long:
            self.what += f" of {'.'.join(self.long)}"

    def frame(self) -> bytes:
        """The request with its header and size prefix."""
        head = struct.pack(">hhi", self.api, self.version, 1)
        if not (self.api == ApiKey.CONTROLLED_SHUTDOWN and self.version == 0):
            head += b"\0\4fuzz"
            if self.flexible:
                head += self.tags() if self.random.random() < 0.5 else b"\0"
        body = head + self.struct(self.cls, ())
        return struct.pack(">i", len(body)) + body

    def array_paths(self, cls: Any, path: tuple[str, ...]) -> list[tuple[str, ...]]:
        found = []
        for field in self.present(cls):
            here = (*path, field.name)
            if field.is_array:
                found.append(here)
            if not isinstance(field.item, Kind):
                found += self.array_paths(field.item, here)
        return found

    def long_fields(self, cls: Any, path: tuple[str, ...]) -> list[tuple[str, ...]]:
        found = []
        for field in self.present(cls):
            here = (*path, field.name)
            if not isinstance(field.item, Kind):
                found += self.long_fields(field.item, here)
            elif field.item in (STRING, BYTES):
                found.append(here)
        return found

    def present(self, cls: Any) -> list[Field]:
        """The fields that this version has on the wire, outside of tagged fields."""
        return [f for f in cls.FIELDS if self.version in f.versions and f.tag is None]

    def struct(self, cls: Any, path: tuple[str, ...]) -> bytes:
        out = [self.field(field, (*path, field.name)) for field in self.present(cls)]
        if self.flexible:
            out.append(self.tags() if self.shape == "tagged fields" else b"\0")
        return b"".join(out)

    def tags(self) -> bytes:
        """Unknown tagged fields: as many as fit if that is the shape."""
        count = 2
        if self.shape == "tagged fields":
            count = self.random.choice((1, 100, 1024, 5000, max(1, self.room // 4)))
            self.room = max(64, self.room - count * 3)
        return uvarint(count) + b"\xe7\x07\0" * count

    def field(self, field: Field, path: tuple[str, ...]) -> bytes:
        nullable = field.is_nullable(self.version)
        is_null = nullable and (self.shape == "nulls" or self.random.random() < 0.1)
        on_the_way = self.huge is not None and self.huge[: len(path)] == path
        if field.is_array:
            return self.length("i", None) if is_null and not on_the_way else self.array(field, path)
        if isinstance(field.item, Kind):
            return self.value(field.item, field.name, path, is_null)
        if not nullable:
            return self.struct(field.item, path)
        return b"\xff" if is_null and not on_the_way else b"\x01" + self.struct(field.item, path)

    def array(self, field: Field, path: tuple[str, ...]) -> bytes:
        on_the_way = self.huge is not None and self.huge[: len(path)] == path
        if path == self.huge:
            return self.huge_array(field.item, path)
        if not on_the_way:
            count = self.random.choice((0, 1, 1, 1, 2))
        elif self.shape == "nested rows":
            count = 2 + int(self.room**0.5) // 40
            self.room //= count
        else:
            count = 1
        return self.length("i", count) + b"".join(
            self.element(field.item, path) for _ in range(count)
        )

    def element(self, item: Any, path: tuple[str, ...]) -> bytes:
        if isinstance(item, Kind):
            return self.value(item, path[-1], path, False)
        return self.struct(item, path)

    def huge_array(self, item: Any, path: tuple[str, ...]) -> bytes:
        """As many elements as fit, made of the bytes of one or a few."""
        if self.shape == "different rows":
            made = self.different(item, path)
            if made is not None:
                return made
        few = [self.element(item, path) for _ in range(self.random.choice((1, 1, 3)))]
        together = b"".join(few)
        times = max(1, self.room // max(1, len(together)))
        return self.length("i", times * len(few)) + together * times

    def different(self, item: Any, path: tuple[str, ...]) -> bytes | None:
        """Elements that differ in one value; None if no value can differ."""
        self.is_marking = True
        one = self.element(item, path)
        self.is_marking = False
        for mark in (_MARK, _NUMBER_MARK):
            before, found, after = one.partition(mark)
            if not found:
                continue
            times = max(1, self.room // len(one))
            makes = self.api in _MAKES_TOPICS or self.random.random() < 0.3
            first = b"!" if makes else b"t"
            values = (
                [first + b"%08d" % n for n in range(times)]
                if mark == _MARK
                else [struct.pack(">i", n) for n in range(times)]
            )
            return self.length("i", times) + b"".join([before + v + after for v in values])
        return None

    def length(self, code: str, count: int | None) -> bytes:
        if self.flexible:
            return uvarint(0 if count is None else count + 1)
        return struct.pack(f">{code}", -1 if count is None else count)

    def value(self, kind: Any, name: str, path: tuple[str, ...], is_null: bool) -> bytes:
        if kind is STRING or kind is BYTES or kind is RECORDS:
            code = "h" if kind is STRING else "i"
            data = None if is_null else self.sized(kind, path)
            return self.length(code, None if data is None else len(data)) + (data or b"")
        if kind is BOOL:
            return bytes((self.random.getrandbits(1),))
        if kind is FLOAT64:
            values = (0.0, 1.0, -1.0, float("nan"), float("inf"), 1e308)
            return struct.pack(">d", self.random.choice(values))
        if kind is UUID:
            return self.random.choice((bytes(16), self.random.randbytes(16), *self.topic_ids))
        if self.is_marking and kind.code == "i":
            self.is_marking = False
            return _NUMBER_MARK
        return struct.pack(">" + kind.code, self.number(kind.code, name))

    def number(self, code: str, name: str) -> int:
        limit = 1 << _INTEGERS[code]
        for ending, values in _VALUES.items():
            if name.endswith(ending):
                return max(-limit, min(limit - 1, self.random.choice(values)))
        if self.shape == "extremes":
            return self.random.choice((-limit, limit - 1, -1, self.random.randrange(-limit, limit)))
        return self.random.choice((0, 0, 0, 1, 1, 2, -1, min(999, limit - 1)))

    def sized(self, kind: Any, path: tuple[str, ...]) -> bytes:
        if kind is RECORDS:
            return build_batch([RecordData(b"k", b"v", 0)])
        if self.is_marking and kind is STRING:
            self.is_marking = False
            return _MARK
        if path == self.long:
            if kind is STRING:
                text = self.random.choice(("x", "\n", ",", ".", "a=b;", "\u00e9"))
                return (
                    (text * (min(self.room, 32767) // len(text.encode())))[:32767]
                    .encode()[: min(self.room, 32766)]
                    .decode(errors="ignore")
                    .encode()
                )
            return self.random.choice((b"\0", b"\xff", b"n,,\x01")) * (self.room // 4)
        if kind is BYTES:
            return self.random.choice((b"", b"\0\1\0\0\0\0", self.random.randbytes(20)))
        return self.random.choice(self.names).encode()
