"""Compiles .proto source with protoc, which the package grpcio-tools has."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import DecodeError
from google.type import date_pb2

from kafkapy.schemas.parsed_schema import InvalidSchema

# Confluent's clients give the main file of a schema this name.
MAIN_FILE: Final = "default"

_TIME_MAX_S: Final = 5
_OUTPUT: Final = "descriptors"
_SOURCES: Final = "sources"
# The directories 0 to N - 1 are compiled one after the other: to start Python and to load protoc
# takes 0.1 s, and to compile a source some milliseconds.
_PROGRAM: Final = """
import os, sys
from grpc_tools import protoc
root, known = os.getcwd(), os.path.join(os.path.dirname(protoc.__file__), "_proto")
for number in range(int(sys.argv[1])):
    os.chdir(os.path.join(root, str(number)))
    status = protoc.main(["protoc", *sys.argv[2:], "-I" + known])
sys.exit(status)
"""
_WARNING: Final = re.compile(r"^WARNING: |^W\d{4} |: warning: ")

# Confluent's registry knows these files, so that they need no reference.
_META_OPTIONS: Final = {
    "file": "File",
    "message": "Message",
    "field": "Field",
    "enum": "Enum",
    "enum_value": "EnumValue",
}
_KNOWN_SOURCES: Final = {
    "confluent/meta.proto": (
        'syntax = "proto3"; package confluent; import "google/protobuf/descriptor.proto";'
        " message Meta"
        " { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }"
        + "".join(
            f" extend google.protobuf.{extended}Options {{ Meta {name}_meta = 1088; }}"
            for name, extended in _META_OPTIONS.items()
        )
    ),
    "confluent/type/decimal.proto": (
        'syntax = "proto3"; package confluent.type;'
        " message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }"
    ),
}


def compile_source(source: str, references: Mapping[str, str]) -> FileDescriptorSet:
    """The descriptors of a source, which is called `MAIN_FILE`, and of all files that it imports,
    each after those that it imports itself.

    Args:
        source: in proto2, proto3 or an edition.
        references: the sources of the imported files by path. Those of Google's and of Confluent's
            types need none.

    Raises:
        InvalidSchema: protoc reports an error, or takes too long.
    """
    with TemporaryDirectory(prefix="kafkapy-protoc-") as name:
        directory = Path(name)
        _write_sources(directory / "0", source, references)
        _run_protoc(directory, 1)
        return FileDescriptorSet.FromString((directory / "0" / _OUTPUT).read_bytes())


def compile_sources(
    given: Sequence[tuple[str, Mapping[str, str]]],
) -> list[FileDescriptorSet | None]:
    """The descriptors of several sources with their references, in one process and in the time of
    one. There are none of a source that `compile_source` must be asked for, because of an error."""
    with TemporaryDirectory(prefix="kafkapy-protoc-") as name:
        directory = Path(name)
        with suppress(InvalidSchema):
            for number, (source, references) in enumerate(given):
                _write_sources(directory / str(number), source, references)
            _run_protoc(directory, len(given))
        return [_read_output(directory / str(number)) for number in range(len(given))]


def _read_output(directory: Path) -> FileDescriptorSet | None:
    try:
        return FileDescriptorSet.FromString((directory / _OUTPUT).read_bytes())
    except (OSError, DecodeError):
        return None


def _write_sources(directory: Path, source: str, references: Mapping[str, str]) -> None:
    for path, text in {**_KNOWN_SOURCES, **references, MAIN_FILE: source}.items():
        _write_source(directory / _SOURCES, path, text)


def _write_source(root: Path, path: str, text: str) -> None:
    """Write a file below `root`. No import can name one elsewhere, so none is written there."""
    file = root / path
    if ".." in file.parts or not file.is_relative_to(root) or file == root:
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InvalidSchema(f"the reference {path!r} cannot be written: {error}") from error


def _run_protoc(directory: Path, count: int) -> None:
    # Python may import modules from the working directory, so the sources are in another one.
    command = [sys.executable, "-P", "-c", _PROGRAM, str(count), f"-I{_SOURCES}"]
    command.append(f"-Igoogle/type={Path(date_pb2.__file__).parent}")
    command += ["--include_imports", f"--descriptor_set_out={_OUTPUT}", MAIN_FILE]
    try:
        done = subprocess.run(
            command, cwd=directory, capture_output=True, timeout=_TIME_MAX_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise InvalidSchema(f"protoc has not compiled it within {_TIME_MAX_S} s") from error
    if done.returncode:
        raise InvalidSchema(_reasons(done.stderr) or f"protoc failed with {done.returncode}")


def _reasons(output: bytes) -> str:
    """The errors of protoc, on one line."""
    lines = output.decode("utf-8", "replace").splitlines()
    errors = (line for line in lines if not _WARNING.search(line))
    return "; ".join(line.removeprefix(f"{_SOURCES}/") for line in errors)
