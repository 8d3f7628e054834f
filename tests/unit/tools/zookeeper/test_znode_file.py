"""The file of znodes: read back as written, and refused where it is not what was written."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkapy.tools.zookeeper.znode_file import (
    ZnodeFileError,
    ZnodeRow,
    digest,
    read_znodes,
    write_znodes,
)

OPEN = ((31, "world", "anyone"),)
ROWS = [
    ZnodeRow("/", b"", 0, 2, OPEN),
    ZnodeRow("/a", None, 3, 1, ((31, "sasl", "kafka"), (1, "world", "anyone"))),
    ZnodeRow("/a/ü", b'{"version":1}', 0, 0, OPEN),
    ZnodeRow("/b", b"\xff\x00", 0, 7, OPEN),
]


def test_a_line_a_znode_and_a_checksum_of_all_before(tmp_path: Path) -> None:
    file = tmp_path / "znodes"
    assert write_znodes(file, ROWS, "zk:2181/kafka") == digest(ROWS)
    head, *lines, end = file.read_text().splitlines(keepends=True)
    assert json.loads(head) == {"kafkapy": "znodes", "format": 1, "source": "zk:2181/kafka"}
    assert json.loads(lines[1]) == {
        "path": "/a",
        "version": 3,
        "created": 1,
        "acl": [[31, "sasl", "kafka"], [1, "world", "anyone"]],
        "data": None,
    }
    assert json.loads(lines[2])["data"] == '{"version":1}'
    assert json.loads(lines[3])["base64"] == "/wA="
    sha256 = hashlib.sha256("".join([head, *lines]).encode()).hexdigest()
    assert json.loads(end) == {"nodes": 4, "sha256": sha256}
    assert file.stat().st_mode & 0o777 == 0o600, "it may hold password hashes"
    assert read_znodes(file) == ROWS


@given(st.none() | st.binary(max_size=30), st.integers(0, 2**31 - 1), st.text(max_size=5))
def test_any_data_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, data: bytes | None, version: int, user: str
) -> None:
    file = tmp_path_factory.mktemp("any") / "znodes"
    rows = [ZnodeRow("/", data, version, 0, ((1, "sasl", user.encode(errors="ignore").decode()),))]
    write_znodes(file, rows, "x")
    assert read_znodes(file) == rows


def test_a_power_cut_after_an_export_takes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[int] = set()
    monkeypatch.setattr(os, "fsync", lambda fd: synced.add(os.fstat(fd).st_ino))
    monkeypatch.chdir(tmp_path)
    file = Path("znodes")
    write_znodes(file, ROWS, "x")
    assert {file.stat().st_ino, tmp_path.stat().st_ino} <= synced
    assert read_znodes(file) == ROWS


def test_a_directory_that_cannot_be_searched_is_named(tmp_path: Path) -> None:
    with pytest.raises(ZnodeFileError, match=r"^Cannot write .*: File name too long$"):
        write_znodes(tmp_path / ("x" * 300) / "znodes", ROWS, "zk")


def test_a_directory_whose_name_is_not_utf_8_is_exported(tmp_path: Path) -> None:
    write_znodes(tmp_path / "znodes", ROWS, "/zk\udcff")
    assert read_znodes(tmp_path / "znodes") == ROWS


def test_a_file_is_not_written_over(tmp_path: Path) -> None:
    file = tmp_path / "znodes"
    file.write_text("mine")
    with pytest.raises(ZnodeFileError, match="exists already"):
        write_znodes(file, ROWS, "x")
    assert file.read_text() == "mine"
    with pytest.raises(ZnodeFileError, match="Cannot write"):
        write_znodes(tmp_path / "no" / "znodes", ROWS, "x")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b'"path":"/b"', b'"path":"/c"', "its checksum is wrong"),
        (b'"format":1', b'"format":2', "has format 2, not 1"),
        (b'"znodes"', b'"topics"', "is not a file of `kafkapy zookeeper export`"),
        (b'{"nodes"', b'{"n"', "lacks znodes"),
    ],
)
def test_what_was_changed_is_told(tmp_path: Path, old: bytes, new: bytes, said: str) -> None:
    file = tmp_path / "znodes"
    write_znodes(file, ROWS, "x")
    file.write_bytes(file.read_bytes().replace(old, new))
    with pytest.raises(ZnodeFileError, match=said):
        read_znodes(file)


def test_a_file_cut_anywhere_is_refused(tmp_path: Path) -> None:
    whole, cut = tmp_path / "znodes", tmp_path / "cut"
    write_znodes(whole, ROWS, "x")
    data = whole.read_bytes()
    for size in range(len(data)):
        cut.write_bytes(data[:size])
        with pytest.raises(ZnodeFileError):
            read_znodes(cut)


def write_by_hand(file: Path, *lines: object, nodes: int) -> None:
    body = "".join(json.dumps(line) + "\n" for line in ({"kafkapy": "znodes", "format": 1}, *lines))
    end = {"nodes": nodes, "sha256": hashlib.sha256(body.encode()).hexdigest()}
    file.write_text(body + json.dumps(end) + "\n")


ROOT = {"path": "/", "version": 0, "created": 1, "acl": [[31, "world", "anyone"]], "data": None}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"data": 5}, "a znode has the field data, with a text or null, or base64"),
        ({"base64": "="}, "padding"),
        ({"version": None}, "a znode has the fields path, version, created and acl"),
        ({"acl": "world"}, "a znode has the fields path, version, created and acl"),
        ({"acl": [[31, "world"]]}, "an entry of an ACL has permissions, scheme and id"),
        ({"acl": [[2**40, "world", "anyone"]]}, "1099511627776 has more than 32 bits"),
        ({"created": 10**15}, "1000000000000000 has more than 32 bits"),
        ({"path": "a"}, "no znode may have the path 'a'"),
        ({"path": "/a//b"}, "no znode may have the path '/a//b'"),
    ],
)
def test_a_znode_that_cannot_be_is_told_before_the_import_writes_any(
    change: dict[str, object], said: str, tmp_path: Path
) -> None:
    file = tmp_path / "znodes"
    write_by_hand(file, ROOT, {**ROOT, "path": "/a", **change}, nodes=2)
    with pytest.raises(ZnodeFileError, match=f"znodes, line 3: .*{re.escape(said)}"):
        read_znodes(file)


def test_a_line_that_is_no_znode_is_told_by_its_number(tmp_path: Path) -> None:
    file = tmp_path / "znodes"
    lines: list[object] = [{"path": "/"}, 5, [], "x"]
    for line in lines:
        write_by_hand(file, line, nodes=1)
        with pytest.raises(ZnodeFileError, match="line 2: a znode has the fields path, version,"):
            read_znodes(file)


def test_a_znode_that_is_there_twice_is_told_before_the_import_writes_any(tmp_path: Path) -> None:
    file = tmp_path / "znodes"
    node = {**ROOT, "path": "/a"}
    for nodes in (2, 3):
        write_by_hand(file, ROOT, node, node, nodes=nodes)
        with pytest.raises(ZnodeFileError, match="lacks znodes, or has one twice"):
            read_znodes(file)


def test_a_node_without_its_parent(tmp_path: Path) -> None:
    file = tmp_path / "znodes"
    write_znodes(file, [ROWS[0], ROWS[2]], "x")
    with pytest.raises(ZnodeFileError, match="lacks znodes"):
        read_znodes(file)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ZnodeFileError, match="Cannot read"):
        read_znodes(tmp_path / "none")
