"""`reassign --execute` over the brokers."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kafkapy.admin.configs import Resource
from kafkapy.admin.log_dirs import Replica
from kafkapy.admin.planning.throttle_plan import planned_moves, throttle_plan
from kafkapy.admin.reassignments import ReassignmentFailed, running_reassignments
from kafkapy.cli.commands.reassign.actions import read_file
from kafkapy.cli.commands.reassign.options import ReassignOptions
from kafkapy.cli.commands.reassign.watch import batch_display
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import CommandFailed, ExitStatus
from kafkapy.cli.framework.interrupts import FirstInterrupt
from kafkapy.cli.framework.options import OutputFormat
from kafkapy.cli.framework.output import show
from kafkapy.cli.views.reassign import (
    VERIFY_REMINDER,
    clearing_lines,
    execute_report,
    log_dir_line,
    restored_line,
    rollback_lines,
    started_line,
    unsaved_line,
)
from kafkapy.common.errors import ApiError, ErrorCode, KafkapyError
from kafkapy.tools.reassign import reassignment
from kafkapy.tools.reassign.batches import BatchProgress, BatchRun
from kafkapy.tools.reassign.states import PartitionState, partition_states
from kafkapy.tools.reassign.throttle_record import ThrottleRecord, Throttles
from kafkapy.tools.reassign.throttles import (
    clear_throttles,
    inter_broker_throttle,
    log_dir_throttle,
    present_throttles,
    set_throttles,
)

if TYPE_CHECKING:
    from kafkapy.client.cluster import Cluster


def execute(cluster: Cluster, options: ReassignOptions, env: Environment) -> ExitStatus:
    """Begin all moves, or move batch after batch."""
    file = read_file(options)
    batches = options.batch_size is not None
    plan = reassignment.prepare(cluster, file, additional=options.additional, resume=batches)
    if options.disallow_replication_factor_change:
        reassignment.check_replication_factors(plan)
    quiet = options.dry_run or options.output is OutputFormat.json
    print_line = _print_nothing if quiet else env.line
    for line in rollback_lines(plan.current):
        print_line(line)
    env.stdout.flush()  # so that users have the rollback if this process is killed
    as_json = options.output is OutputFormat.json and not options.dry_run
    failed: dict[Replica, ApiError] = {}
    status = ExitStatus.SUCCESS
    try:
        throttles = _Throttling(cluster, options, plan, env)
        throttles.begin(print_line)
        if batches:
            status = _run_batches(cluster, options, plan, env, throttles)
        else:
            reassignment.begin(cluster, plan.targets)
            print_line(started_line(plan.targets))
        if status is ExitStatus.SUCCESS:
            failed = _move_log_dirs(cluster, plan, options, print_line)
            if batches and not plan.log_dirs:
                throttles.end(print_line)
        states = _states(cluster, plan) if as_json else []
    except KafkapyError:
        if as_json:
            show(env, execute_report(plan.current, []), options.output)
        raise
    if as_json:
        show(env, execute_report(plan.current, states), options.output)
    if failed:
        raise CommandFailed(_log_dir_failure(failed))
    return status


def _states(cluster: Cluster, plan: reassignment.Execution) -> list[PartitionState]:
    replicas = reassignment.current_replicas(cluster, plan.targets)
    running = running_reassignments(cluster)
    states = partition_states(plan.targets, replicas, {})
    return [state._replace(is_moving=state.partition in running) for state in states]


class _Throttling:
    """The throttles of one execution. Saves earlier throttles, and restores them at the end."""

    def __init__(
        self,
        cluster: Cluster,
        options: ReassignOptions,
        plan: reassignment.Execution,
        env: Environment,
    ) -> None:
        self._cluster = cluster
        self._options = options
        self._plan = plan
        self._env = env
        self._moves = planned_moves(plan.current, plan.targets, plan.running)
        assert options.reassignment_json_file is not None
        self._record = ThrottleRecord(options.reassignment_json_file, plan.cluster_id)
        self._previous: Throttles = {}

    @property
    def is_requested(self) -> bool:
        return self._options.throttle >= 0 or self._options.replica_alter_log_dirs_throttle >= 0

    def begin(self, print_line: Callable[[str], None]) -> None:
        """Set the requested throttles. First save the earlier throttles and the requested ones."""
        options, plan, moves = self._options, self._plan, throttle_plan(self._moves)
        copies: dict[Resource, dict[str, str]] = {}
        dirs: dict[Resource, dict[str, str]] = {}
        if options.throttle >= 0:
            copies = inter_broker_throttle(moves, options.throttle, plan.live)
        if options.replica_alter_log_dirs_throttle >= 0:
            brokers = sorted({replica.broker_id for replica in plan.log_dirs})
            dirs = log_dir_throttle(brokers, options.replica_alter_log_dirs_throttle)
        requested = {r: {**copies.get(r, {}), **dirs.get(r, {})} for r in (*copies, *dirs)}
        self._save_throttles(requested)
        if not self.is_requested:
            return
        print_line(VERIFY_REMINDER)
        if options.throttle >= 0:
            set_throttles(self._cluster, copies)
            print_line(f"The inter-broker throttle limit was set to {options.throttle} B/s")
            for broker_id in sorted(set(moves.brokers) - plan.live):
                self._env.warn(f"Broker {broker_id} is not alive: no throttle was set there.")
        if options.replica_alter_log_dirs_throttle >= 0:
            set_throttles(self._cluster, dirs)
            rate = options.replica_alter_log_dirs_throttle
            print_line(f"The replica-alter-dir throttle limit was set to {rate} B/s")

    def end(self, print_line: Callable[[str], None]) -> None:
        """Remove the throttles and restore the earlier ones, unless partitions still move."""
        if not self.is_requested:
            return
        if running_reassignments(self._cluster):
            self._env.warn("Partitions still move: the throttles stay until --verify.")
            return
        names = sorted({tp.topic for tp in self._moves})
        known = self._cluster.metadata(names, refresh=True)
        live = sorted(known.brokers)
        # A topic may have been deleted meanwhile.
        topics = [name for name in names if known.topics[name].partitions]
        kept = clear_throttles(self._cluster, live, topics, self._previous)
        for line in clearing_lines(live, topics, kept):
            print_line(line)
        if self._options.dry_run:
            return
        if kept:
            self._env.warn(restored_line(kept))
        self._record.settle(live)

    def _save_throttles(self, sets: Throttles) -> None:
        """Save the earlier throttles, and the throttles that this run sets.

        Throttles that are set while partitions move belong to that move, and are removed with it.
        """
        is_dry = self._options.dry_run
        if not sets and (is_dry or self._plan.running):
            return
        present = None
        if not self._plan.running:
            present = self._present()
            if present is None:
                return
        previous = self._record.throttles_to_restore(present, self._plan.live)
        if not (self._plan.running or present or previous or is_dry):
            self._record.remove()
            if not sets:
                return
        self._previous = previous
        if is_dry:
            return
        try:
            self._record.write(previous, sets)
        except OSError as error:
            if previous:
                reason = error.strerror or str(error)
                self._env.warn(unsaved_line(previous, self._record.path, reason))
            return
        if previous and not self._plan.running:
            self._env.warn(
                f"There are throttles already: they are saved in {self._record.path}, and --verify"
                " restores them."
            )

    def _present(self) -> Throttles | None:
        """The throttles that are set. None if they cannot be read, and this run sets none: then
        the moves must not depend on every broker's response.
        """
        topics = sorted({tp.topic for tp in self._moves})
        try:
            return present_throttles(self._cluster, sorted(self._plan.live), topics)
        except ApiError as error:
            if self.is_requested:
                raise
            self._env.warn(
                f"Earlier throttles, which --verify would restore, were not saved: {error}"
            )
            return None


def _run_batches(
    cluster: Cluster,
    options: ReassignOptions,
    plan: reassignment.Execution,
    env: Environment,
    throttles: _Throttling,
) -> ExitStatus:
    """Move batch after batch. The first Ctrl-C or SIGTERM waits for the current batch, the second
    does not."""
    assert options.batch_size is not None
    interrupt = FirstInterrupt(signal.SIGINT, signal.SIGTERM)

    def progress(batch_progress: BatchProgress) -> None:
        show_batches(batch_progress)
        if interrupt.seen and not run.stopping:
            run.stop()
            env.warn("Interrupted: waiting for the current batch. A second signal stops at once.")

    run = BatchRun(
        cluster,
        plan,
        options.batch_size,
        stuck_timeout_ms=options.timeout,
        on_progress=progress,
        pause=threading.Event().wait,
    )
    if options.dry_run:
        run.begin_all()
        return ExitStatus.SUCCESS
    try:
        with interrupt, batch_display(env) as show_batches:
            try:
                run.run()
            except BrokenPipeError:
                # Ctrl-C has also ended the reader of the output (`2>&1 | tee moves.log`).
                env.abandon_output()
                run.stop()
                run.run()
    except (KeyboardInterrupt, SystemExit):
        env.warn(
            "Not waiting: partitions of the last batch still move. The same command continues;"
            " --verify removes the throttles when they are done."
        )
        raise
    except (ReassignmentFailed, ApiError):
        try:
            throttles.end(env.warn)
        except ApiError as error:
            env.warn(f"The throttles stay until --verify: {error}")
        raise
    if run.not_begun:
        env.warn(f"{len(run.not_begun)} partitions are left; the same command continues.")
        throttles.end(env.warn)
        interrupt.raise_if_seen()
        return ExitStatus.INTERRUPTED
    return ExitStatus.SUCCESS


def _move_log_dirs(
    cluster: Cluster,
    plan: reassignment.Execution,
    options: ReassignOptions,
    print_line: Callable[[str], None],
) -> dict[Replica, ApiError]:
    """Begin the moves between log directories. Returns those that did not begin, as errors."""
    if not plan.log_dirs:
        return {}
    failed = reassignment.begin_log_dir_moves(cluster, plan.log_dirs, options.timeout)
    for replica, path in sorted(plan.log_dirs.items()):
        if replica not in failed:
            print_line(log_dir_line(replica, path))
    return failed


def _log_dir_failure(failed: Mapping[Replica, ApiError]) -> str:
    """The error of Kafka's tool for moves between log directories that did not begin."""
    stuck = [r for r, e in sorted(failed.items()) if e.code is ErrorCode.REPLICA_NOT_AVAILABLE]
    lines = [reassignment.log_dir_errors({r: e for r, e in failed.items() if r not in stuck})]
    if stuck:
        plural = "" if len(stuck) == 1 else "s"
        names = ",".join(map(str, stuck))
        lines.append(f"Timed out before log directory move{plural} could be started for: {names}")
    return "\n".join(filter(None, lines))


def _print_nothing(line: str) -> None:
    """Print nothing: one JSON object, or the requests of a dry run, are the whole output."""
