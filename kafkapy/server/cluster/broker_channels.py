"""The controller's channels to the brokers (`kafka.controller.ControllerChannelManager`).

Each broker has a queue and a task that sends its requests in order, one at a time. A request whose
connection fails is sent again, until the controller removes the broker: the controller watches the
broker's znode, the channel does not. A broker that does not respond does not delay other brokers.
The controller's own broker gets its commands directly, so it does not need to listen yet.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final, Protocol

from kafkapy.common.cluster_state import (
    BrokerInfo,
    CommandResult,
    LeaderAndIsrCommand,
    StopReplicaCommand,
    UpdateMetadataCommand,
)
from kafkapy.common.errors import ErrorCode
from kafkapy.common.lasting_work import keep_running
from kafkapy.controller.events import Event, LeaderAndIsrResponse, StopReplicaResponse
from kafkapy.protocol.messages.update_metadata import UpdateMetadataRequest
from kafkapy.protocol.schema import Message
from kafkapy.server.cluster.control_request_codec import (
    LEADER_AND_ISR_VERSION,
    STOP_REPLICA_VERSION,
    UPDATE_METADATA_VERSION,
    leader_and_isr_request,
    leader_and_isr_result,
    stop_replica_request,
    stop_replica_result,
    update_metadata_request,
)
from kafkapy.server.cluster.control_request_handler import Command
from kafkapy.server.interbroker.node_client import NodeClient, NodeUnavailable
from kafkapy.server.security.node_security import PLAINTEXT, NodeSecurity

logger = logging.getLogger("kafka.controller.RequestSendThread")

RETRY_BACKOFF_MS: Final = 100


class Target(Protocol):
    """Applies the control requests of one channel (`ControlRequestHandler` is one)."""

    async def apply(self, command: Command) -> CommandResult: ...


class BrokerChannels:
    """`controller.ports.BrokerSender` of a cluster.

    Fixed: the controller's broker id, the inter-broker listener, the request timeout. `local`
    applies the commands for this broker; `submit` receives the responses as events.
    """

    def __init__(
        self,
        broker_id: int,
        listener: str,
        local: Target,
        submit: Callable[[Event], None],
        *,
        request_timeout_ms: int,
        security: NodeSecurity = PLAINTEXT,
        retry_backoff_ms: int = RETRY_BACKOFF_MS,
    ) -> None:
        self._broker_id = broker_id
        self._listener = listener
        self._local = local
        self._submit = submit
        self._request_timeout_ms = request_timeout_ms
        self._security = security
        self._retry_backoff_ms = retry_backoff_ms
        self._bodies = _MetadataBodies()
        self._channels: dict[int, _Channel] = {}
        self._closing: dict[asyncio.Task[None], None] = {}

    def add_broker(self, broker: BrokerInfo, broker_epoch: int) -> None:
        """Open the channel to a broker. The channel of an earlier registration is replaced."""
        broker_id = broker.broker_id
        self.remove_broker(broker_id)
        if broker_id == self._broker_id:
            self._channels[broker_id] = _Channel(broker_id, self._local, self._submit)
        elif (remote := self._remote(broker)) is not None:
            channel = _Channel(broker_id, remote, self._submit)
            channel.task.add_done_callback(lambda _: remote.client.close())
            self._channels[broker_id] = channel

    def _remote(self, broker: BrokerInfo) -> _RemoteBroker | None:
        endpoint = broker.endpoint(self._listener)
        if endpoint is None:
            logger.error(
                "[Controller id=%d, targetBrokerId=%d] Cannot send to a broker without the listener"
                " %s (inter.broker.listener.name)",
                self._broker_id,
                broker.broker_id,
                self._listener,
            )
            return None
        return _RemoteBroker(
            f"[Controller id={self._broker_id}, targetBrokerId={broker.broker_id}]",
            NodeClient(
                endpoint.host,
                endpoint.port,
                str(self._broker_id),
                request_timeout_ms=self._request_timeout_ms,
                security=self._security,
            ),
            self._listener,
            self._retry_backoff_ms / 1000,
            self._bodies,
        )

    def remove_broker(self, broker_id: int) -> None:
        """Close the channel to a broker. Queued and unanswered requests are dropped."""
        channel = self._channels.pop(broker_id, None)
        if channel is not None:
            channel.task.cancel()
            self._closing[channel.task] = None
            channel.task.add_done_callback(lambda task: self._closing.pop(task, None))

    def send_leader_and_isr(self, broker_id: int, command: LeaderAndIsrCommand) -> None:
        self._send(broker_id, command)

    def send_update_metadata(self, broker_id: int, command: UpdateMetadataCommand) -> None:
        self._send(broker_id, command)

    def send_stop_replica(self, broker_id: int, command: StopReplicaCommand) -> None:
        self._send(broker_id, command)

    def _send(self, broker_id: int, command: Command) -> None:
        channel = self._channels.get(broker_id)
        if channel is not None:
            channel.queue.put_nowait(command)
        else:
            logger.warning(
                "[Controller id=%d] Not sending %s to broker %d, since it is offline.",
                self._broker_id,
                type(command).__name__,
                broker_id,
            )

    async def close(self) -> None:
        """Close all channels, and wait until their tasks have ended."""
        for broker_id in list(self._channels):
            self.remove_broker(broker_id)
        await asyncio.gather(*self._closing, return_exceptions=True)


class _Channel:
    """A broker's queue, and the task that sends the commands and submits the responses."""

    def __init__(self, broker_id: int, target: Target, submit: Callable[[Event], None]) -> None:
        self.queue: asyncio.Queue[Command] = asyncio.Queue()
        self._broker_id = broker_id
        self._target = target
        self._submit = submit
        self._in_flight: Command | None = None
        name = f"The channel to broker {broker_id}"
        work = keep_running(name, self._run, logger)
        self.task = asyncio.get_running_loop().create_task(work)

    async def _run(self) -> None:
        while True:
            command = self._in_flight = self._in_flight or await self.queue.get()
            result = await self._target.apply(command)
            if result.error is not ErrorCode.NONE:
                logger.warning(
                    "Broker %d answered %s with %s",
                    self._broker_id,
                    type(command).__name__,
                    result.error.name,
                )
            if isinstance(command, LeaderAndIsrCommand):
                self._submit(LeaderAndIsrResponse(self._broker_id, command.broker_epoch, result))
            elif isinstance(command, StopReplicaCommand):
                self._submit(StopReplicaResponse(self._broker_id, command, result))
            self._in_flight = None


class _RemoteBroker:
    """A broker over its connection. Commands are sent again until a response comes."""

    def __init__(
        self,
        prefix: str,
        client: NodeClient,
        listener: str,
        retry_backoff_s: float,
        bodies: _MetadataBodies,
    ) -> None:
        self.client = client
        self._prefix = prefix
        self._listener = listener
        self._retry_backoff_s = retry_backoff_s
        self._bodies = bodies

    async def apply(self, command: Command) -> CommandResult:
        match command:
            case LeaderAndIsrCommand():
                request = leader_and_isr_request(command, self._listener)
                response = await self._send_until_answered(request, LEADER_AND_ISR_VERSION)
                return leader_and_isr_result(response, command)
            case StopReplicaCommand():
                response = await self._send_until_answered(
                    stop_replica_request(command), STOP_REPLICA_VERSION
                )
                return stop_replica_result(response)
            case UpdateMetadataCommand():
                body = self._bodies.request(command)
                response = await self._send_until_answered(body, UPDATE_METADATA_VERSION)
                return CommandResult(ErrorCode(response.error_code))

    async def _send_until_answered(self, request: Message, version: int) -> Any:
        last_reason = ""
        while True:
            try:
                return await self.client.request(request, version)
            except NodeUnavailable as error:
                reason = str(error)
                logger.log(
                    logging.DEBUG if reason == last_reason else logging.WARNING,
                    "%s Cannot send %s: %s. Trying again until the broker is gone.",
                    self._prefix,
                    type(request).__name__,
                    reason,
                )
                last_reason = reason
            await asyncio.sleep(self._retry_backoff_s)


class _MetadataBodies:
    """The last UpdateMetadata as a message. All brokers get the same rows, which are converted
    once."""

    def __init__(self) -> None:
        self._command: UpdateMetadataCommand | None = None
        self._request = UpdateMetadataRequest()

    def request(self, command: UpdateMetadataCommand) -> UpdateMetadataRequest:
        cached = self._command
        if (
            cached is None
            or cached.partitions is not command.partitions
            or cached.live_brokers is not command.live_brokers
        ):
            self._command = command
            self._request = update_metadata_request(command)
        return UpdateMetadataRequest(
            controller_id=command.controller_id,
            controller_epoch=command.controller_epoch,
            broker_epoch=command.broker_epoch,
            topic_states=self._request.topic_states,
            live_brokers=self._request.live_brokers,
        )
