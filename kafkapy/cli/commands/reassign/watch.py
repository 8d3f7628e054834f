"""Progress of long reassignments: bars on a terminal, lines on stderr otherwise."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from kafkapy.admin.reassignments import running_reassignments
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.interrupts import FirstInterrupt
from kafkapy.cli.views.reassign import bytes_text
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.tools.reassign.batches import BatchProgress
from kafkapy.tools.reassign.move_progress import MoveProgress, Pace, PaceMeter, measure_moves
from kafkapy.tools.reassign.partition_files import ReassignmentFile
from kafkapy.tools.reassign.reassignment import log_dir_moves
from kafkapy.tools.reassign.states import LogDirState

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from kafkapy.client.cluster import Cluster

INTERVAL_S: Final = 0.5
BARS_MAX: Final = 20


def watch(cluster: Cluster, file: ReassignmentFile, env: Environment) -> None:
    """Show the moves of a file until all are complete. Ctrl-C ends the watch, not the moves."""
    pause = threading.Event()
    targets = file.targets
    with FirstInterrupt() as interrupt, _display(env) as display:
        while not interrupt.seen:
            running = {tp: m for tp, m in running_reassignments(cluster).items() if tp in targets}
            replicas = {
                move.replica: move.target
                for move in log_dir_moves(cluster, file.log_dirs)
                if move.state in (LogDirState.MOVING, LogDirState.MOVING_ELSEWHERE)
            }
            if not running and not replicas:
                return
            display.update(measure_moves(cluster, running, replicas), time.monotonic())
            pause.wait(INTERVAL_S)


class Lines:
    """Progress for pipes: one line for each measurement, with the sum of all moves."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._meter = PaceMeter()
        self._totals: dict[TopicPartition, int] = {}

    def update(self, moves: Sequence[MoveProgress], now_s: float) -> None:
        done = sum(move.done_bytes for move in moves)
        total = sum(move.total_bytes for move in moves)
        self._totals |= {move.partition: move.total_bytes for move in moves}
        # The rate includes the bytes of completed moves, which are listed no more.
        ended = sum(self._totals.values()) - total
        pace = self._meter.add(now_s, done + ended, total + ended)
        self._env.warn(progress_line(len(moves), done, total, pace))


class Bars:
    """Progress for terminals: a bar for each partition, for at most BARS_MAX moving partitions at a
    time, those with the most bytes left. Bars of other moving partitions are hidden.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[object, TaskID] = {}

    def update(self, moves: Sequence[MoveProgress], now_s: float) -> None:
        largest = sorted(moves, key=lambda m: m.done_bytes - m.total_bytes)[:BARS_MAX]
        shown_moves = {move.partition: move for move in sorted(largest)}
        moving = {move.partition for move in moves}
        for partition, task in self._tasks.items():
            if partition in moving:
                self._progress.update(task, visible=partition in shown_moves)
            else:
                # It is done: its bar stays full until the watch ends.
                total = self._progress.tasks[self._progress.task_ids.index(task)].total
                self._progress.update(task, completed=total or 0, visible=True)
        for partition, move in shown_moves.items():
            if partition not in self._tasks:
                self._tasks[partition] = self._progress.add_task(str(partition), total=0)
            self._progress.update(
                self._tasks[partition], completed=move.done_bytes, total=move.total_bytes
            )


@contextlib.contextmanager
def _display(env: Environment) -> Iterator[Lines | Bars]:
    if not env.on_terminal:
        yield Lines(env)
        return
    from rich import progress as bars
    from rich.console import Console

    columns: list[Any] = [
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.DownloadColumn(binary_units=True),
        bars.TransferSpeedColumn(),
        bars.TimeRemainingColumn(),
    ]
    with bars.Progress(*columns, console=Console(file=env.stdout)) as progress:
        yield Bars(progress)


@contextlib.contextmanager
def batch_display(env: Environment) -> Iterator[Callable[[BatchProgress], None]]:
    """The display of a run in batches: a function that shows the number of moved partitions."""
    if not env.on_terminal:
        reported: set[int] = set()

        def print_count(batch_progress: BatchProgress) -> None:
            if batch_progress.done not in reported:
                reported.add(batch_progress.done)
                env.warn(f"{batch_progress.done} of {batch_progress.total} partitions moved")

        yield print_count
        return
    from rich import progress as bars
    from rich.console import Console

    columns: list[Any] = [
        bars.TextColumn("{task.completed} of {task.total} partitions"),
        bars.BarColumn(),
        bars.TimeElapsedColumn(),
        bars.TextColumn("{task.description}"),
    ]
    with bars.Progress(*columns, console=Console(file=env.stdout)) as progress:
        task = progress.add_task("", total=None)

        def draw(batch_progress: BatchProgress) -> None:
            moving = ", ".join(map(str, batch_progress.waiting[:3])) + (
                " ..." if batch_progress.waiting[3:] else ""
            )
            progress.update(
                task, completed=batch_progress.done, total=batch_progress.total, description=moving
            )

        yield draw


def progress_line(moves: int, done_bytes: int, total_bytes: int, pace: Pace) -> str:
    """`3 moves: 1.0 MiB of 4.0 MiB, 3.0 MiB left, 512.0 KiB/s, 6 s left`."""
    remaining_bytes = max(0, total_bytes - done_bytes)
    parts = [
        f"{bytes_text(done_bytes)} of {bytes_text(total_bytes)}",
        f"{bytes_text(remaining_bytes)} left",
    ]
    if pace.bytes_per_s is not None:
        parts.append(f"{bytes_text(pace.bytes_per_s)}/s")
    if pace.seconds_left is not None:
        parts.append(f"{pace.seconds_left:.0f} s left")
    return f"{moves} move{'' if moves == 1 else 's'}: " + ", ".join(parts)
