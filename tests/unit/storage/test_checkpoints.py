"""The small files, byte for byte as Apache Kafka 3.9 writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import Uuid
from kafkapy.storage import checkpoints
from kafkapy.storage.checkpoints import MalformedFile, MetaProperties
from kafkapy.storage.filesystem import OsFileSystem

DIGITS = b"1" * 5000  # Python's int reads 4300
FS = OsFileSystem()
TOPIC_ID = Uuid.parse("MkTOHvxMQvKKvbLuMTfA3g")
CLUSTER_ID = "Xx-zWCnSR1SxTDpdzLZ1xA"


def test_offset_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "recovery-point-offset-checkpoint"
    offsets = {TopicPartition("orders", 0): 12, TopicPartition("a.b-c", 7): 0}
    checkpoints.write_offsets(FS, str(path), offsets)
    assert path.read_bytes() == b"0\n2\norders 0 12\na.b-c 7 0\n"
    assert checkpoints.read_offsets(FS, str(path)) == offsets
    checkpoints.write_offsets(FS, str(path), {})
    assert path.read_bytes() == b"0\n0\n"
    assert checkpoints.read_offsets(FS, str(tmp_path / "none")) == {}
    assert sorted(p.name for p in tmp_path.iterdir()) == [path.name]


def test_leader_epoch_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_bytes(checkpoints.encode_epochs([(0, 0), (3, 100)]))
    assert path.read_bytes() == b"0\n2\n0 0\n3 100\n"
    assert checkpoints.read_epochs(FS, str(path)) == [(0, 0), (3, 100)]
    path.write_bytes(checkpoints.encode_epochs([]))
    assert path.read_bytes() == b"0\n0\n"


@pytest.mark.parametrize(
    "content",
    [
        *(b"1\n0\n", b"0\nx\n", b"0\n2\na 0 1\n", b"0\n1\na 0\n", b"0\n1\na 0 x\n", b"\xff\xfe"),
        *(b"0\n%s\n" % DIGITS, b"0\n1\na %s 1\n" % DIGITS, b"0\n1\na 0 %s\n" % DIGITS),
        b"0\n1\na 0 9223372036854775808\n",
    ],
)
def test_a_malformed_checkpoint_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "some-checkpoint"
    path.write_bytes(content)
    with pytest.raises(MalformedFile, match="some-checkpoint"):
        checkpoints.read_offsets(FS, str(path))


def test_a_file_that_kafka_has_made_and_not_filled_is_one_without_entries(tmp_path: Path) -> None:
    """A kill -9 leaves it so; the log must open."""
    path = tmp_path / "checkpoint"
    path.touch()
    assert checkpoints.read_offsets(FS, str(path)) == {}
    assert checkpoints.read_epochs(FS, str(path)) == []


@pytest.mark.parametrize(
    "content",
    [b"0\n1\n1\n", b"0\n1\n-1 0\n", b"0\n1\n1 x\n", b"0\n1\n1 %s\n" % DIGITS],
)
def test_a_malformed_epoch_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_bytes(content)
    with pytest.raises(MalformedFile, match="leader-epoch-checkpoint"):
        checkpoints.read_epochs(FS, str(path))


def test_partition_metadata_ends_without_a_newline(tmp_path: Path) -> None:
    path = tmp_path / "partition.metadata"
    path.write_bytes(checkpoints.encode_partition_metadata(TOPIC_ID))
    assert path.read_bytes() == b"version: 0\ntopic_id: MkTOHvxMQvKKvbLuMTfA3g"
    assert checkpoints.read_partition_metadata(FS, str(path)) == TOPIC_ID
    assert checkpoints.read_partition_metadata(FS, str(tmp_path / "none")) is None
    for broken in (b"version: 0\n", b"topic_id: short"):
        path.write_bytes(broken)
        with pytest.raises(MalformedFile, match=r"partition\.metadata"):
            checkpoints.read_partition_metadata(FS, str(path))


def test_meta_properties(tmp_path: Path) -> None:
    path = tmp_path / "meta.properties"
    checkpoints.write_meta_properties(FS, str(path), 3, CLUSTER_ID, 1_700_000_000_000)
    assert path.read_text().splitlines() == [
        "#",
        "#Tue Nov 14 22:13:20 UTC 2023",
        "broker.id=3",
        "version=0",
        f"cluster.id={CLUSTER_ID}",
    ]
    assert checkpoints.read_meta_properties(FS, str(path)) == MetaProperties(3, CLUSTER_ID)
    path.write_text("#x\n!y\n\ncluster.id = abc\\=\nversion=0\n")
    assert checkpoints.read_meta_properties(FS, str(path)) == MetaProperties(None, "abc=")
    assert checkpoints.read_meta_properties(FS, str(tmp_path / "none")) is None


@pytest.mark.parametrize("content", ["version=1\nnode.id=1\n", "broker.id=1\n", ""])
def test_meta_properties_of_another_kind_of_broker(tmp_path: Path, content: str) -> None:
    path = tmp_path / "meta.properties"
    path.write_text(content)
    with pytest.raises(ConfigError, match=r"meta\.properties"):
        checkpoints.read_meta_properties(FS, str(path))


def test_clean_shutdown_marker(tmp_path: Path) -> None:
    path = tmp_path / ".kafka_cleanshutdown"
    assert checkpoints.read_clean_shutdown(FS, str(path)) is None
    checkpoints.write_clean_shutdown(FS, str(path), 77)
    assert path.read_bytes() == b'{"version":0,"brokerEpoch":77}'
    assert checkpoints.read_clean_shutdown(FS, str(path)) == 77
    for old in (b"", b"[]", b'{"version":0}'):
        path.write_bytes(old)
        assert checkpoints.read_clean_shutdown(FS, str(path)) == -1
