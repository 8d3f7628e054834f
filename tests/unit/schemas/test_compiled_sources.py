"""compiled_sources: protoc runs once for a source, and once for many sources."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from kafkapy.schemas import protobuf_compiler
from kafkapy.schemas.compiled_sources import CompiledSources
from kafkapy.schemas.parsed_schema import InvalidSchema
from kafkapy.schemas.records import SchemaType, StoredSchema, Version, schema_record
from tests.unit.schemas.protobuf_sources import ITEM, PROTO3, USES_ITEM
from tests.unit.schemas.registry_desk import RegistryDesk

REFERENCES = {"item.proto": ITEM}


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """The runs of protoc."""
    runs = Mock(wraps=protobuf_compiler._run_protoc)
    monkeypatch.setattr(protobuf_compiler, "_run_protoc", runs)
    return runs


def test_a_subject_of_any_length_is_compiled_once(runs: Mock) -> None:
    """Each request compiled each of more than 100 versions again: the registry stood still."""
    desk = RegistryDesk()
    texts = [f"{PROTO3} message Long {{ int32 field_{n} = 1; }}" for n in range(120)]
    for number, text in enumerate(texts, start=1):
        schema = StoredSchema(SchemaType.PROTOBUF, text)
        desk.state.apply(schema_record(Version("a", number, number, schema)))
    desk("PUT", "/config/a", {"compatibility": "FULL_TRANSITIVE"})
    body = {"schema": texts[0].replace(" ", "  "), "schemaType": "PROTOBUF"}
    assert desk("POST", "/subjects/a", body)["version"] == 1
    assert runs.call_count <= 3, "the given one, and twice several"
    runs.reset_mock()
    assert desk("POST", "/subjects/a", body)["version"] == 1
    path = "/compatibility/subjects/a/versions"
    assert desk("POST", path, body) == {"is_compatible": True}
    assert not runs.called


def test_sources_are_compiled_together(runs: Mock) -> None:
    sources = CompiledSources()
    sources.prepare([(PROTO3, {}), ("message", {}), (USES_ITEM, REFERENCES)])
    assert runs.call_count == 1
    files = sources.compile(USES_ITEM, REFERENCES).file
    assert [file.name for file in files] == ["item.proto", "default"]
    assert sources.compile(PROTO3, {}).file
    assert runs.call_count == 1
    with pytest.raises(InvalidSchema, match="Expected message name"):
        sources.compile("message", {})


def test_a_source_with_other_references_is_another_one() -> None:
    sources = CompiledSources()
    sources.compile(USES_ITEM, REFERENCES)
    with pytest.raises(InvalidSchema, match="is not defined"):
        sources.compile(USES_ITEM, {"item.proto": PROTO3})


def test_sources_that_cannot_be_written_are_compiled_one_by_one() -> None:
    sources = CompiledSources()
    sources.prepare([(PROTO3, {"a\0b": PROTO3}), (PROTO3, {})])
    assert sources.compile(PROTO3, {}).file
    with pytest.raises(InvalidSchema, match="cannot be written"):
        sources.compile(PROTO3, {"a\0b": PROTO3})


def test_the_memory_has_a_limit(runs: Mock) -> None:
    sources = CompiledSources(bytes_max=1000)
    for number in range(10):
        sources.compile(f"{PROTO3} message M{number} {{}}", {})
    assert 0 < sources._bytes <= 1000
    runs.reset_mock()
    sources.compile(f"{PROTO3} message M9 {{}}", {})
    assert not runs.called
    sources.compile(f"{PROTO3} message M0 {{}}", {})
    assert runs.called
