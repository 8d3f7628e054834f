"""The file of `kafkapy zookeeper export`: a line of JSON for each znode, and a checksum.

The first line names the format, the last one has the number of znodes and the SHA-256 of all lines
before it. Parents come before their children; paths begin at the chroot. The fields are described
in docs/reference/znode-file.md.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from kafkapy.common.errors import KafkapyError
from kafkapy.common.java_numbers import INT_MAX
from kafkapy.storage.filesystem import OsFileSystem
from kafkapy.tools.local.private_files import write_privately
from kafkapy.zk.embedded.znode_tree import AccessList, parent_of
from kafkapy.zk.service.node_paths import check_path
from kafkapy.zk.service.refusals import Refused

KIND: Final = "znodes"
FORMAT: Final = 1


class ZnodeFileError(KafkapyError):
    """The file cannot be read or written, or is damaged."""


class ZnodeRow(NamedTuple):
    """A persistent znode. `created` is the number of children that it ever had, which is also the
    number of its next sequential child."""

    path: str
    data: bytes | None
    version: int
    children_created: int
    acl: AccessList


class TreeSnapshot(NamedTuple):
    """The persistent znodes of a tree, sorted by path, and the paths of its ephemeral znodes."""

    rows: list[ZnodeRow]
    ephemerals: list[str]


def write_znodes(file: Path, rows: Sequence[ZnodeRow], source: str) -> str:
    """Write the znodes of `source`, sorted by path, to a file that only its owner can read. Returns
    the SHA-256 of their lines.

    Raises:
        ZnodeFileError: the file exists already, or cannot be written.
    """
    if os.path.exists(file):
        raise ZnodeFileError(f"{file} exists already: name another file")
    # A directory's name need not be UTF-8.
    shown_source = source.encode(errors="surrogateescape").decode(errors="replace")
    header = {"kafkapy": KIND, "format": FORMAT, "source": shown_source}
    body = orjson.dumps(header) + b"\n" + b"".join(map(_line, rows))
    end = {"nodes": len(rows), "sha256": hashlib.sha256(body).hexdigest()}
    try:
        write_privately(file, body + orjson.dumps(end) + b"\n")
        _make_durable(file)
    except OSError as error:
        raise ZnodeFileError(f"Cannot write {file}: {error.strerror}") from error
    return digest(rows)


def read_znodes(file: Path) -> list[ZnodeRow]:
    """The znodes of a file, checked.

    Raises:
        ZnodeFileError: it cannot be read, is incomplete, or was changed.
    """
    try:
        data = file.read_bytes()
    except OSError as error:
        raise ZnodeFileError(f"Cannot read {file}: {error.strerror}") from error
    lines = data.splitlines(keepends=True)
    header = _object(lines[0]) if lines else {}
    if header.get("kafkapy") != KIND:
        raise ZnodeFileError(f"{file} is not a file of `kafkapy zookeeper export`")
    if header.get("format") != FORMAT:
        raise ZnodeFileError(f"{file} has format {header.get('format')}, not {FORMAT}")
    end = _object(lines[-1])
    if "sha256" not in end or not data.endswith(b"\n"):
        raise ZnodeFileError(f"{file} is not whole: its last line has no checksum")
    body = lines[:-1]
    if hashlib.sha256(b"".join(body)).hexdigest() != end["sha256"]:
        raise ZnodeFileError(f"{file} is damaged, or was changed: its checksum is wrong")
    rows = []
    for number, line in enumerate(body[1:], 2):
        try:
            rows.append(_row(orjson.loads(line)))
        except ValueError as error:
            raise ZnodeFileError(f"{file}, line {number}: {error}") from error
    paths = {row.path for row in rows}
    is_whole = len(paths) == len(rows) == end.get("nodes")
    if not is_whole or not {parent_of(path) for path in paths} <= paths:
        raise ZnodeFileError(f"{file} lacks znodes, or has one twice")
    return sorted(rows, key=lambda row: row.path)


def _make_durable(file: Path) -> None:
    """Flush a new file and its directory to disk: users may delete the source after an export."""
    fs = OsFileSystem()
    with closing(fs.open(str(file))) as opened:
        opened.fsync()
    fs.fsync_dir(str(file.parent))


def digest(rows: Iterable[ZnodeRow]) -> str:
    """The SHA-256 of the lines of znodes."""
    found = hashlib.sha256()
    for row in rows:
        found.update(_line(row))
    return found.hexdigest()


def _line(row: ZnodeRow) -> bytes:
    fields = {
        "path": row.path,
        "version": row.version,
        "created": row.children_created,
        "acl": row.acl,
    }
    return orjson.dumps({**fields, **_data(row.data)}) + b"\n"


def _data(data: bytes | None) -> dict[str, str | None]:
    """The field for a node's data: readable text for UTF-8, base 64 for other bytes."""
    try:
        return {"data": None if data is None else data.decode()}
    except UnicodeDecodeError:
        assert data is not None
        return {"base64": base64.b64encode(data).decode()}


def _row(fields: Any) -> ZnodeRow:
    """The znode of a line.

    Raises:
        ValueError: a field is missing, or cannot be that of a znode.
    """
    match fields:
        case {"path": str(path), "version": int(version), "created": int(created), "acl": [*acl]}:
            _check_numbers(version, created)
            _check_path(path)
            return ZnodeRow(path, _data_of(fields), version, created, tuple(map(_entry, acl)))
        case _:
            raise ValueError("a znode has the fields path, version, created and acl")


def _data_of(fields: Mapping[str, Any]) -> bytes | None:
    match fields:
        case {"base64": str(text)}:
            return base64.b64decode(text, validate=True)
        case {"data": str(text)}:
            return text.encode()
        case {"data": None}:
            return None
        case _:
            raise ValueError("a znode has the field data, with a text or null, or base64")


def _entry(entry: Any) -> tuple[int, str, str]:
    match entry:
        case [int(permissions), str(scheme), str(name)]:
            _check_numbers(permissions)
            return permissions, scheme, name
        case _:
            raise ValueError("an entry of an ACL has permissions, scheme and id")


def _check_numbers(*numbers: int) -> None:
    for number in numbers:
        if not -INT_MAX <= number <= INT_MAX:
            raise ValueError(f"{number} has more than 32 bits")


def _check_path(path: str) -> None:
    try:
        check_path(path)
    except Refused:
        raise ValueError(f"no znode may have the path {path!r}") from None


def _object(line: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
