"""protobuf_compiler: protoc runs apart from the files of this machine, and within a time."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from kafkapy.schemas import protobuf_compiler
from kafkapy.schemas.parsed_schema import InvalidSchema
from kafkapy.schemas.protobuf_compiler import compile_source
from tests.unit.schemas.protobuf_sources import PROTO3


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    return directory


def test_imports_come_before_their_importers(temporary: Path) -> None:
    references = {"b.proto": PROTO3 + 'import "dir/c.proto";', "dir/c.proto": PROTO3}
    files = compile_source(PROTO3 + 'import "b.proto";', references).file
    assert [file.name for file in files] == ["dir/c.proto", "b.proto", "default"]
    assert os.listdir(temporary) == []


def test_an_edition_is_compiled() -> None:
    (file,) = compile_source('edition = "2023"; message A { int32 a = 1; }', {}).file
    assert file.syntax == "editions"


@pytest.mark.parametrize("path", ["../outside.proto", "/outside.proto", "a/../../outside.proto"])
def test_no_reference_is_written_outside(tmp_path: Path, temporary: Path, path: str) -> None:
    path = str(tmp_path / "outside.proto") if path.startswith("/") else path
    compile_source(PROTO3, {path: PROTO3, "": PROTO3, ".": PROTO3})
    assert not list(tmp_path.rglob("outside.proto"))
    with pytest.raises(InvalidSchema, match="was not found"):
        compile_source(f'{PROTO3} import "{path}";', {path: PROTO3})
    assert os.listdir(temporary) == []


@pytest.mark.parametrize("path", ["a\0b", "x" * 300, "default/b.proto", "c.proto/d.proto"])
def test_a_path_that_no_file_can_have_is_refused(temporary: Path, path: str) -> None:
    with pytest.raises(InvalidSchema, match=r"the reference .* cannot be written"):
        compile_source(PROTO3, {"c.proto": PROTO3, path: PROTO3})
    assert os.listdir(temporary) == []


@pytest.mark.parametrize("python_path", ["", ":", ".:/nowhere"])
def test_no_reference_replaces_a_python_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, python_path: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", python_path)
    harmful = f"open({str(tmp_path / 'harmful')!r}, 'w')"
    names = ("grpc_tools/__init__.py", "importlib.py", "sitecustomize.py", "re.py")
    compile_source(PROTO3, dict.fromkeys(names, harmful))
    assert not (tmp_path / "harmful").exists()


def test_other_files_of_this_machine_cannot_be_imported() -> None:
    """The directory of Google's types is beside those of other packages."""
    with pytest.raises(InvalidSchema, match="was not found"):
        compile_source(f'{PROTO3} import "google/api/http.proto";', {})


def test_warnings_are_not_reasons() -> None:
    source = 'import "google/protobuf/any.proto"; message A { optional B b = 1; }'
    with pytest.raises(InvalidSchema) as raised:
        compile_source(source, {})
    assert str(raised.value) == 'default:1:58: "B" is not defined.'


def test_text_that_takes_too_long_is_refused(
    monkeypatch: pytest.MonkeyPatch, temporary: Path
) -> None:
    monkeypatch.setattr(protobuf_compiler, "_TIME_MAX_S", 0)
    with pytest.raises(InvalidSchema, match="has not compiled it within 0 s"):
        compile_source(PROTO3, {})
    assert os.listdir(temporary) == []


def test_messages_that_are_nested_deeply_are_refused() -> None:
    with pytest.raises(InvalidSchema, match="maximum recursion limit"):
        compile_source(PROTO3 + "message A {" * 2000 + "}" * 2000, {})
