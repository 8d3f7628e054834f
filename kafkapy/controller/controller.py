"""The controller, elected among the brokers, which elects partition leaders (`KafkaController`).

`handle` processes one event to its end. The owner of the queue (`server/cluster/controller_task`,
or a test) calls it for one event after another. It waits only for ZooKeeper.
"""

from __future__ import annotations

import logging

from kafkapy.common.errors import ErrorCode, KafkapyError
from kafkapy.common.ports import Clock, Random
from kafkapy.controller import events
from kafkapy.controller.alter_partition import on_alter_partition, on_isr_change
from kafkapy.controller.broker_changes import (
    on_broker_change,
    on_broker_modification,
    on_leader_and_isr_response,
    on_log_dir_change,
)
from kafkapy.controller.config import ControllerConfig
from kafkapy.controller.context import ControllerContext
from kafkapy.controller.controlled_shutdown import on_controlled_shutdown
from kafkapy.controller.failover import fail_over
from kafkapy.controller.leader_elections import (
    on_auto_rebalance,
    on_elect_leaders,
    on_preferred_election_change,
)
from kafkapy.controller.parts import ControllerParts, Submit
from kafkapy.controller.ports import BrokerSender
from kafkapy.controller.producer_ids import on_allocate_producer_ids
from kafkapy.controller.reassignment_requests import (
    on_alter_partition_reassignments,
    on_list_partition_reassignments,
    on_reassignment_change,
)
from kafkapy.controller.topic_changes import (
    on_partition_modification,
    on_stop_replica_response,
    on_topic_change,
    on_topic_deletion_change,
)
from kafkapy.zk.stores.store import ControllerMoved, ZkStore
from kafkapy.zk.zookeeper import SessionExpired

_log = logging.getLogger("kafka.controller.KafkaController")

NO_CONTROLLER = -1


class Controller:
    """The controller of one broker, active or not."""

    def __init__(
        self,
        config: ControllerConfig,
        store: ZkStore,
        sender: BrokerSender,
        submit: Submit,
        clock: Clock,
        random: Random,
    ) -> None:
        """`submit` queues an event, without waiting; watches call it too."""
        self._parts = ControllerParts(config, store, sender, submit)
        self._broker_id = config.broker_id
        self._store = store
        self._clock = clock
        self._random = random
        self._controller_id = NO_CONTROLLER

    @property
    def is_active(self) -> bool:
        """Whether this broker is the controller, in its own view."""
        return self._controller_id == self._broker_id

    @property
    def controller_id(self) -> int:
        """The controller's id in this broker's view; -1 for none."""
        return self._controller_id

    @property
    def context(self) -> ControllerContext:
        """The controller's context, for metrics and tests: read only."""
        return self._parts.context

    async def handle(self, event: events.Event) -> None:
        """Process one event to its end.

        Raises no expected error: a stale controller resigns. After a fault the controller steps
        down or, if its failover was complete, logs the fault and continues.
        """
        try:
            await self._dispatch(event)
        except ControllerMoved as moved:
            _log.info("[Controller id=%d] %s: resigning", self._broker_id, moved)
            self.refuse(event)
            await self._on_controller_moved()
        except SessionExpired:
            # The event SessionExpired follows, and resigns; nothing can be done before.
            self.refuse(event)
        except KafkapyError as error:
            _log.error("[Controller id=%d] Error processing %s: %s", self._broker_id, event, error)
            self.refuse(event)

    def refuse(self, event: events.Event) -> None:
        """Answer NOT_CONTROLLER to an event that will not be processed."""
        match event:
            case events.AlterPartition(reply=reply):
                reply(events.AlterPartitionResult(ErrorCode.NOT_CONTROLLER))
            case events.ControlledShutdown(reply=reply_shutdown):
                # Kafka answers its ControllerMovedException's own code here.
                reply_shutdown(events.ControlledShutdownResult(ErrorCode.STALE_CONTROLLER_EPOCH))
            case (
                events.ElectLeaders()
                | events.AlterPartitionReassignments()
                | events.ListPartitionReassignments()
                | events.AllocateProducerIds()
            ):
                event.reply(ErrorCode.NOT_CONTROLLER)
            case _:
                return

    async def _dispatch(self, event: events.Event) -> None:
        match event:
            case events.Startup() | events.ControllerChange():
                await self._resign_if_moved()
                await self._elect()
            case events.Shutdown() if self.is_active:
                # The session ends after the logs are closed, which may take a minute. Another
                # broker must take over before.
                await self._abdicate()
            case events.SessionExpired() | events.Shutdown():
                self._controller_id = NO_CONTROLLER
                self._resign()
            case _ if not self.is_active:
                self.refuse(event)
            case _:
                await self._process(event)

    async def _process(self, event: events.Event) -> None:
        parts = self._parts
        match event:
            case events.BrokerChange():
                await on_broker_change(parts)
            case events.BrokerModification(broker_id):
                await on_broker_modification(parts, broker_id)
            case events.TopicChange():
                await on_topic_change(parts, self._random)
            case events.PartitionModification(topic):
                await on_partition_modification(parts, topic)
            case events.TopicDeletionChange():
                await on_topic_deletion_change(parts, self._random)
            case events.PreferredElectionChange():
                await on_preferred_election_change(parts)
            case events.ReassignmentChange():
                await on_reassignment_change(parts)
            case events.LogDirChange():
                await on_log_dir_change(parts)
            case events.IsrChange():
                await on_isr_change(parts)
            case events.AutoRebalance():
                await on_auto_rebalance(parts)
            case events.UncleanElectionEnabled(topic):
                await parts.partitions.trigger_online(topic)
            case events.LeaderAndIsrResponse():
                await on_leader_and_isr_response(parts, event)
            case events.StopReplicaResponse():
                await on_stop_replica_response(parts, event)
            case events.AlterPartition():
                await on_alter_partition(parts, event)
            case events.ControlledShutdown():
                await on_controlled_shutdown(parts, event)
            case events.ElectLeaders():
                await on_elect_leaders(parts, event)
            case events.AlterPartitionReassignments():
                await on_alter_partition_reassignments(parts, event)
            case events.ListPartitionReassignments():
                on_list_partition_reassignments(parts, event)
            case events.AllocateProducerIds():
                await on_allocate_producer_ids(parts, event)

    async def _on_controller_moved(self) -> None:
        try:
            await self._resign_if_moved()
            if self.is_active:
                # A partition's state has a later epoch, and no other broker is the controller:
                # `/controller_epoch` was deleted. Each election increments it.
                await self._abdicate()
        except KafkapyError as error:
            _log.error("[Controller id=%d] Cannot resign: %s", self._broker_id, error)
        if self._controller_id == NO_CONTROLLER:
            self._parts.submit(events.ControllerChange())

    async def _resign_if_moved(self) -> None:
        """Read the controller's id, and resign if this broker was the controller and no longer
        is.
        """
        was_active = self.is_active
        watch = self._parts.watch(events.ControllerChange())
        found = await self._store.election.controller_id(watch)
        self._controller_id = NO_CONTROLLER if found is None else found
        if was_active and not self.is_active:
            self._resign()

    async def _elect(self) -> None:
        """Try to become the controller if there is none, then take over."""
        if self._controller_id != NO_CONTROLLER:
            return
        context = self._parts.context
        now_ms = self._clock.time_ms()
        context.fence = await self._store.election.elect(self._broker_id, now_ms)
        self._controller_id = self._broker_id
        _log.info(
            "[Controller id=%d] %d successfully elected as the controller. Epoch incremented to"
            " %d and epoch zk version is now %d",
            self._broker_id,
            self._broker_id,
            context.fence.controller_epoch,
            context.fence.zk_version,
        )
        try:
            await fail_over(self._parts, self._random)
        except (ControllerMoved, SessionExpired):
            raise
        except KafkapyError as error:
            _log.error("[Controller id=%d] Failover failed: %s", self._broker_id, error)
            await self._abdicate()

    async def _abdicate(self) -> None:
        fence = self._parts.context.fence
        self._controller_id = NO_CONTROLLER
        self._resign()
        await self._store.election.delete_controller(fence)

    def _resign(self) -> None:
        """Clear all state. Watches that still fire find an inactive controller."""
        parts = self._parts
        for broker_id in parts.context.broker_ids:
            parts.sender.remove_broker(broker_id)
        parts.context.reset()
        _log.info("[Controller id=%d] Resigned", self._broker_id)
