"""The controller's queue and the task that empties it, one event at a time.

The controller catches expected errors. Any other exception ends the task and is fatal for the
broker (`on_fatal`): a controller that cannot elect leaders must not stay active.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from kafkapy.common.ports import Clock, Random
from kafkapy.controller.config import ControllerConfig
from kafkapy.controller.controller import Controller
from kafkapy.controller.events import (
    AlterPartition,
    AlterPartitionReassignments,
    AutoRebalance,
    BrokerChange,
    ControlledShutdown,
    ControllerChange,
    ElectLeaders,
    Event,
    IsrChange,
    LeaderAndIsrResponse,
    LogDirChange,
    PreferredElectionChange,
    ReassignmentChange,
    SessionExpired,
    Shutdown,
    Startup,
    TopicChange,
    TopicDeletionChange,
    UncleanElectionEnabled,
)
from kafkapy.controller.ports import BrokerSender
from kafkapy.server.counts.metrics import RequestMetrics
from kafkapy.zk.stores.store import ZkStore

_FIRST_REBALANCE_S: Final = 5.0

# `ControllerState.rateAndTimeMetricName` without its ending.
TIMED_EVENTS: Final[dict[type[Event], str]] = {
    ControllerChange: "ControllerChange",
    BrokerChange: "LeaderElection",
    TopicChange: "TopicChange",
    TopicDeletionChange: "TopicDeletion",
    ReassignmentChange: "AlterPartitionReassignment",
    AlterPartitionReassignments: "AlterPartitionReassignment",
    AutoRebalance: "AutoLeaderBalance",
    PreferredElectionChange: "ManualLeaderBalance",
    ElectLeaders: "ManualLeaderBalance",
    ControlledShutdown: "ControlledShutdown",
    IsrChange: "IsrChange",
    AlterPartition: "IsrChange",
    LeaderAndIsrResponse: "LeaderAndIsrResponseReceived",
    LogDirChange: "LogDirChange",
    UncleanElectionEnabled: "UncleanLeaderElectionEnable",
}

_log = logging.getLogger("kafka.controller.ControllerEventManager")


class ControllerTask:
    """Owns the queue. The controller's sender, its watches and the request handlers call
    `submit`."""

    def __init__(
        self, config: ControllerConfig, store: ZkStore, clock: Clock, random: Random
    ) -> None:
        self.on_fatal: Callable[[BaseException], None] = lambda _: None
        self._config = config
        self._store = store
        self._clock = clock
        self._random = random
        self._events: deque[Event] = deque()
        self._wake = asyncio.Event()
        self._started = asyncio.Event()
        self._controller: Controller | None = None
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._stopped = False
        self.event_times = RequestMetrics()

    @property
    def controller(self) -> Controller | None:
        """The controller, once started. Metrics and handlers check whether it is active."""
        return self._controller

    @property
    def queue_size(self) -> int:
        """The number of queued events (`EventQueueSize`)."""
        return len(self._events)

    async def start(self, sender: BrokerSender, rebalance_interval_s: float | None = None) -> None:
        """Start, and return after the first election and, if this broker won it, the failover.

        The broker must be registered. With an interval, leader imbalance is checked after 5 s and
        then at each interval.
        """
        self._controller = Controller(
            self._config, self._store, sender, self.submit, self._clock, self._random
        )
        self.submit(Startup())
        self._task = asyncio.get_running_loop().create_task(self._run(self._controller))
        self._task.add_done_callback(self._on_task_done)
        await self._started.wait()
        if rebalance_interval_s is not None:
            self._schedule_rebalance(_FIRST_REBALANCE_S, rebalance_interval_s)

    async def stop(self, limit_s: float | None = None) -> bool:
        """Handle the queued events, resign and end. Returns False if this exceeds the limit.

        After the limit, the task still ends as soon as ZooKeeper responds or the session ends.
        """
        if self._timer is not None:
            self._timer.cancel()
        if self._task is None:
            return True
        if not self._stopped:
            self.submit(Shutdown())
            self._stopped = True
        _, unfinished = await asyncio.wait([self._task], timeout=limit_s)
        if unfinished:
            return False
        self._task = None
        return True

    def submit(self, event: Event) -> None:
        """Queue an event. Called in the loop's thread.

        The end of a session refuses all queued events; after `stop`, all events are refused.
        """
        if self._stopped:
            self._refuse(event)
            return
        if isinstance(event, SessionExpired):
            while self._events:
                self._refuse(self._events.popleft())
        self._events.append(event)
        self._wake.set()

    def allow_unclean_elections(self, allowed: bool) -> None:
        """Set the broker's unclean.leader.election.enable. A change to true starts an election for
        partitions without a leader at once."""
        is_newly_allowed = allowed and not self._config.unclean_leader_election_enable
        self._config.unclean_leader_election_enable = allowed
        if is_newly_allowed:
            self.submit(UncleanElectionEnabled())

    async def _run(self, controller: Controller) -> None:
        while True:
            while not self._events:
                self._wake.clear()
                await self._wake.wait()
            event = self._events.popleft()
            started_s = self._clock.monotonic_ms() / 1000
            await controller.handle(event)
            if controller.is_active and (name := TIMED_EVENTS.get(type(event))) is not None:
                elapsed_s = self._clock.monotonic_ms() / 1000 - started_s
                self.event_times.observe(name, elapsed_s)
            self._started.set()
            if isinstance(event, Shutdown):
                return

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        self._started.set()
        fault = None if task.cancelled() else task.exception()
        if fault is not None:
            _log.critical("The controller failed", exc_info=fault)
            self._stopped = True
            self.on_fatal(fault)

    def _refuse(self, event: Event) -> None:
        if self._controller is not None:
            self._controller.refuse(event)

    def _schedule_rebalance(self, delay_s: float, interval_s: float) -> None:
        def on_due() -> None:
            self.submit(AutoRebalance())
            self._schedule_rebalance(interval_s, interval_s)

        self._timer = asyncio.get_running_loop().call_later(delay_s, on_due)
