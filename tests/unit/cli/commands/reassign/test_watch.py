"""`reassign --verify --watch`."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from kafkapy.cli.commands.reassign.watch import BARS_MAX, Bars, Lines, progress_line
from kafkapy.cli.framework.environment import Environment
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.tools.reassign.move_progress import MoveProgress, Pace
from tests.harness.scripted.cli import Outcome, kafkapy
from tests.harness.scripted.moving_cluster import MovingCluster

MOVES = '{"partitions":[{"topic":"t","partition":0,"replicas":[2,3]}]}'


def watch(directory: Path, *, terminal: bool) -> Outcome:
    (directory / "moves").write_text(MOVES)
    moving = MovingCluster({"t": [[1, 2]]})
    moving.begin(TopicPartition("t", 0), [2, 3], 2)
    words = ("--bootstrap-server", "b:9002", "--verify", "--watch")
    file = ("--reassignment-json-file", str(directory / "moves"))
    return kafkapy("reassign", *words, *file, cluster=moving.scripted, terminal=terminal)


def test_lines_on_a_pipe_then_the_result(tmp_path: Path) -> None:
    outcome = watch(tmp_path, terminal=False)
    first, second = outcome.stderr.splitlines()
    assert first == "1 move: 0 B of 1000 B, 1000 B left"
    assert second.startswith("1 move: 1000 B of 1000 B, 0 B left, ")
    assert "Reassignment of partition t-0 is completed.\n" in outcome.stdout


def test_a_bar_on_a_terminal(tmp_path: Path) -> None:
    outcome = watch(tmp_path, terminal=True)
    assert "t-0" in outcome.stdout
    assert "1,000/1,000 bytes" in outcome.stdout
    assert "Reassignment of partition t-0 is completed.\n" in outcome.stdout


def test_the_line_tells_rate_and_estimate() -> None:
    line = progress_line(2, 1 << 20, 4 << 20, Pace(512 * 1024.0, 6.0))
    assert line == "2 moves: 1.0 MiB of 4.0 MiB, 3.0 MiB left, 512.0 KiB/s, 6 s left"


def test_a_partition_that_ends_does_not_stop_the_rate_and_the_estimate() -> None:
    """Its bytes were subtracted: 0 B/s, and no time left, while the other partition copied."""
    env = Environment(stdout=io.StringIO(), stderr=io.StringIO())
    lines = Lines(env)
    first, second = (TopicPartition("t", index) for index in range(2))
    lines.update([MoveProgress(first, 900, 1000), MoveProgress(second, 0, 1000)], 0.0)
    lines.update([MoveProgress(second, 300, 1000)], 1.0)
    assert isinstance(env.stderr, io.StringIO)
    line = env.stderr.getvalue().splitlines()[-1]
    assert line == "1 move: 300 B of 1000 B, 700 B left, 400 B/s, 2 s left"


def test_a_partition_beyond_the_longest_moves_gets_no_full_bar() -> None:
    """Its bar is hidden while it moves, and full once it is complete."""
    progress = Progress(console=Console(file=io.StringIO()))
    bars = Bars(progress)
    small = MoveProgress(TopicPartition("small", 0), 10, 100)
    bars.update([small], 0.0)
    (bar,) = progress.tasks
    large = [MoveProgress(TopicPartition("large", n), 0, 1000) for n in range(BARS_MAX)]
    bars.update([small, *large], 0.5)
    assert (bar.completed, bar.total, bar.visible) == (10, 100, False)
    bars.update([small, *large[1:]], 1.0)
    assert (bar.completed, bar.total, bar.visible) == (10, 100, True)
    bars.update(large, 1.5)
    assert (bar.completed, bar.total, bar.visible) == (100, 100, True)
