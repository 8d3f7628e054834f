"""Loading all logs of a directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import Uuid
from kafkapy.storage.deletion_queue import DeletionQueue
from kafkapy.storage.file_records import FilePool
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.log_dir_loader import LogDir, choose_log, load_log_dir
from kafkapy.storage.producer_log import DEFAULT_PRODUCER_CONFIG
from kafkapy.storage.unified_log import UnifiedLog
from tests.harness.cores.ports import NOW_MS, SeededRandom
from tests.harness.plugins.closing import Disk
from tests.harness.storage.log_builder import LogBuilder

FS = Disk()
HEX = "0123456789abcdef0123456789abcdef"


def load(path: Path) -> tuple[LogDir, list[UnifiedLog]]:
    log_dir = LogDir(str(path), DeletionQueue(FS))
    logs = load_log_dir(
        log_dir,
        FilePool(FS),
        lambda _: LogConfig(),
        SeededRandom(),
        DEFAULT_PRODUCER_CONFIG,
        NOW_MS,
    )
    return log_dir, logs


def stopped(path: Path) -> Path:
    LogBuilder(path).append(count=5).stop()
    return path


def test_a_clean_stop_needs_no_recovery_and_its_marker_is_used_up(tmp_path: Path) -> None:
    _, [log] = load(stopped(tmp_path))
    assert (log.log_end_offset, log.high_watermark, log.recovery_point) == (5, 5, 5)
    assert not (tmp_path / ".kafka_cleanshutdown").exists()


def test_without_the_marker_everything_is_recovered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    stopped(tmp_path)
    (tmp_path / ".kafka_cleanshutdown").unlink()
    (tmp_path / "recovery-point-offset-checkpoint").write_bytes(b"nonsense")
    _, [log] = load(tmp_path)
    assert (log.log_end_offset, log.recovery_point) == (5, 0)
    assert f"Attempting recovery for all logs in {tmp_path}" in caplog.text
    assert "starting without it" in caplog.text


def test_deletions_go_on_moves_begin_anew_and_other_states_are_left_alone(tmp_path: Path) -> None:
    stopped(tmp_path)
    for state in ("delete", "future", "stray"):
        (tmp_path / f"gone-0.{HEX}-{state}").mkdir()
    (tmp_path / "remote-log-index-cache").mkdir()
    (tmp_path / "some-file").touch()
    log_dir, logs = load(tmp_path)
    assert [log.topic_partition for log in logs] == [TopicPartition("orders", 0)]
    assert log_dir.unfinished_moves == [TopicPartition("gone", 0)]
    assert sum(log_dir.deletions.run(NOW_MS + 59_999)) == 1
    assert not (tmp_path / f"gone-0.{HEX}-future").exists()
    assert sum(log_dir.deletions.run(NOW_MS + 60_000)) == 1
    assert not (tmp_path / f"gone-0.{HEX}-delete").exists()
    assert (tmp_path / f"gone-0.{HEX}-stray").exists()


def test_a_foreign_directory_stops_the_start_before_anything_is_touched(tmp_path: Path) -> None:
    stopped(tmp_path)
    (tmp_path / "lost+found").mkdir()
    with pytest.raises(ConfigError, match=r"lost\+found"):
        load(tmp_path)
    assert (tmp_path / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize("content", [None, b"", b"nonsense"])
def test_a_lost_high_watermark_checkpoint_is_started_without(
    tmp_path: Path, content: bytes | None
) -> None:
    """The replicas find the high watermark again; a directory out of service serves nobody."""
    path = stopped(tmp_path) / "replication-offset-checkpoint"
    path.unlink() if content is None else path.write_bytes(content)
    _, [log] = load(tmp_path)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (0, 0, 5)


def test_the_log_start_offset_is_restored(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path).append(count=5)
    builder.log.maybe_increment_log_start_offset(3, "test")
    builder.stop()
    assert (tmp_path / "log-start-offset-checkpoint").read_bytes() == b"0\n1\norders 0 3\n"
    _, [log] = load(tmp_path)
    assert log.log_start_offset == 3


def test_a_partition_in_two_directories(tmp_path: Path) -> None:
    """Each has something that the other has not."""
    _, [first] = load(stopped(tmp_path / "a"))
    LogBuilder(tmp_path / "b").append(count=2).append(count=2).append(count=2).stop()
    _, [second] = load(tmp_path / "b")
    with pytest.raises(ConfigError, match=r"orders-0 is in both .*/a/orders-0 and .*/b/orders-0"):
        choose_log(first, second)


@pytest.mark.parametrize("more", [0, 2])
def test_a_crash_that_came_when_a_copy_had_taken_its_place(tmp_path: Path, more: int) -> None:
    """One of two equal logs goes, or the one that lacks the end."""
    LogBuilder(tmp_path / "a").append(count=3).append(count=2).stop()
    builder = LogBuilder(tmp_path / "b").append(count=3).append(count=2)
    if more:
        builder.append(count=more)
    builder.stop()
    [[first], [second]] = (load(tmp_path / name)[1] for name in "ab")
    kept, _ = choose_log(first, second)
    assert (kept.directory, kept.log_end_offset) == (
        str(tmp_path / ("b" if more else "a") / "orders-0"), 5 + more,
    )  # fmt: skip
    assert choose_log(second, first)[0].log_end_offset == 5 + more


@pytest.mark.parametrize(
    ("count", "starts", "kept"), [(0, (0, 0), 0), (5, (5, 5), 0), (5, (5, 0), 1)]
)
def test_a_crash_that_came_when_a_copy_without_records_had_taken_its_place(
    tmp_path: Path, count: int, starts: tuple[int, int], kept: int
) -> None:
    """The broker did not start. A deletion of records may be known to the copy only."""
    for name, start in zip("ab", starts, strict=True):
        builder = LogBuilder(tmp_path / name)
        if count:
            builder.append(count=count)
            builder.log.maybe_increment_log_start_offset(start, "test")
        builder.stop()
    [[first], [second]] = (load(tmp_path / name)[1] for name in "ab")
    assert choose_log(first, second)[0] is (first, second)[kept]
    first.topic_id = Uuid(bytes(range(16, 32)))  # not the same topic
    with pytest.raises(ConfigError, match="is in both"):
        choose_log(first, second)


def test_directories_of_illegal_topics_are_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stopped(tmp_path)
    names = ("a\nb-0", "a b-0", f"a\nb-1.{HEX}-delete", f"a b-1.{HEX}-future")
    for name in names:
        (tmp_path / name).mkdir()
    log_dir, logs = load(tmp_path)
    assert [log.topic_partition for log in logs] == [TopicPartition("orders", 0)]
    assert (log_dir.unfinished_moves, sum(log_dir.deletions.run(NOW_MS + 60_000))) == ([], 0)
    for name in names:
        assert (tmp_path / name).exists()
        assert repr(name) in caplog.text


@pytest.mark.parametrize(
    "content",
    [
        b"0\n2\na\nb 0 5\norders 0 4\n",
        b"0\n1\norders 0 \xc2\xb2\n",
        b"0\n3\norders 0 4\n",
        b"\xff",
        b"7\n1\norders 0 4\n",
    ],
)
@pytest.mark.parametrize(
    "name",
    ["replication-offset-checkpoint", "recovery-point-offset-checkpoint",
     "log-start-offset-checkpoint"],
)  # fmt: skip
def test_a_damaged_checkpoint_does_not_stop_the_start(
    tmp_path: Path, name: str, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing of it is believed: a newline within a name may have made lines about other topics."""
    stopped(tmp_path)
    (tmp_path / name).write_bytes(content)
    _, [log] = load(tmp_path)
    assert log.log_end_offset == 5
    assert log.high_watermark == (0 if name.startswith("replication") else 5)
    assert f"{name} " in caplog.text
    assert "starting without it" in caplog.text


def test_a_directory_that_is_a_link_is_unlinked_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    stopped(tmp_path / "logs")
    target = tmp_path / "elsewhere"
    target.mkdir()
    (target / "file").touch()
    (tmp_path / "logs" / f"gone-0.{HEX}-delete").symlink_to(target)
    log_dir, _ = load(tmp_path / "logs")
    assert sum(log_dir.deletions.run(NOW_MS + 60_000)) == 1
    assert not (tmp_path / "logs" / f"gone-0.{HEX}-delete").is_symlink()
    assert (target / "file").exists()
