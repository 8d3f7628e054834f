"""The state that records amount to, also those that Confluent's registry wrote."""

from __future__ import annotations

import hashlib
import json
import logging

import pytest

from kafkapy.schemas.records import Level, Mode, Record, Reference, SchemaType, StoredSchema
from kafkapy.schemas.registry_state import RegistryState
from tests.unit.schemas.registry_desk import ID, RegistryDesk, record_schema

SCHEMA = b'{"keytype":"SCHEMA","subject":"a","version":1,"magic":1}'


def record(key: dict[str, object], value: dict[str, object] | None) -> Record:
    return Record(json.dumps(key).encode(), None if value is None else json.dumps(value).encode())


def test_another_registry_comes_to_the_same_state() -> None:
    desk = RegistryDesk()
    desk.register("a", record_schema(ID))
    desk.register("b", "string")
    desk("PUT", "/config", {"compatibility": "FULL"})
    desk("PUT", "/mode/b", {"mode": "READONLY"})
    desk("DELETE", "/subjects/a")
    other = RegistryState()
    for each in desk.records:
        other.apply(each)
    for name in ("subjects", "by_id", "configs", "modes", "last_id"):
        assert getattr(other, name) == getattr(desk.state, name), name
    assert [each.is_deleted for each in other.versions("a", deleted=True)] == [True]


def test_the_guids_are_those_of_confluent() -> None:
    """The first is in the tests of Confluent's registry, as an MD5."""
    text = (
        '{"type":"record","name":"myrecord","fields":[{"type":"string","default":null,"name":"f"}]}'
    )
    plain = StoredSchema(SchemaType.AVRO, text)
    assert plain.guid == "1d20cbb9-e5e3-5e97-54e7-da170b6e5ddb"
    references = (Reference("a.B", "b-value", 258), Reference("\u00e9", "c\ud800", -1))
    content = text.encode() + b"?a.Bb-value\0\0\1\2\xc3\xa9c?\xff\xff\xff\xff"
    expected = hashlib.md5(content, usedforsecurity=False).hexdigest()
    other = StoredSchema(SchemaType.AVRO, text + "\ud800", references)
    assert other.guid.replace("-", "") == expected


def test_records_of_confluent() -> None:
    state = RegistryState()
    schema_key = {"keytype": "SCHEMA", "subject": "t-value", "version": 1, "magic": 1}
    schema = {"subject": "t-value", "version": 1, "id": 5, "schema": '"int"', "deleted": False}
    for each in (
        record({"keytype": "NOOP", "magic": 0}, None),
        record({"keytype": "CONFIG", "subject": None, "magic": 0}, {"compatibilityLevel": "FULL"}),
        record({"keytype": "MODE", "subject": "t-value", "magic": 0}, {"mode": "READONLY"}),
        record(schema_key, schema | {"md5Sum": "x", "offset": 3, "ts": 4}),
        record({"keytype": "CLEAR_SUBJECT", "subject": "t", "magic": 0}, {"subject": "t"}),
    ):
        state.apply(each)
    [version] = state.versions("t-value")
    assert (version.schema_id, version.schema.text) == (5, '"int"')
    assert state.level("t-value") is Level.FULL
    assert state.mode("t-value") is Mode.READONLY
    state.apply(record({"keytype": "DELETE_SUBJECT", "subject": "t-value", "magic": 0},
                       {"subject": "t-value", "version": 1}))  # fmt: skip
    assert state.versions("t-value") == []
    state.apply(record(schema_key, None))
    assert not state.subjects
    assert state.last_id == 5


@pytest.mark.parametrize(
    "bad",
    [
        Record(b"\xff", b"{}"),
        Record(b"[" * 100_000, None),
        Record(b'{"keytype":"MODE","subject":"a"}', b"READONLY"),
        Record(SCHEMA, b"[" * 100_000),
        Record(SCHEMA, b'{"subject":"a","version":1,"id":1e400,"schema":"x"}'),
        Record(SCHEMA, b'{"subject":"a","version":1,"id":99999999999999999999,"schema":"x"}'),
        Record(SCHEMA, b'{"subject":"a","version":-1,"id":1,"schema":"x"}'),
        Record(SCHEMA, b'{"subject":"\\ud800","version":1,"id":1,"schema":"x"}'),
        Record(b'{"keytype":"SCHEMA","subject":"a","version":1e400}', None),
        Record(b'{"keytype":"DELETE_SUBJECT","subject":"a"}', b'{"version":1e400}'),
        record({"keytype": "SCHEMA", "subject": "a", "version": 1, "magic": 1}, {"subject": "a"}),
        record({"keytype": "SCHEMA", "magic": 1}, None),
        record({"keytype": "CONFIG", "subject": None, "magic": 0}, {"compatibilityLevel": "X"}),
        record({"keytype": "DELETE_SUBJECT", "subject": "a", "magic": 0}, {}),
    ],
)
def test_a_record_that_is_not_understood_is_skipped(
    bad: Record, caplog: pytest.LogCaptureFixture
) -> None:
    """Otherwise the registry loses the records that were read with it, and starts never again."""
    state = RegistryState()
    with caplog.at_level(logging.WARNING, "kafkapy.schemas"):
        state.apply(bad)
    assert not state.subjects
    assert not state.configs
    assert not state.last_id
    assert "A record of schemas is skipped" in caplog.text
