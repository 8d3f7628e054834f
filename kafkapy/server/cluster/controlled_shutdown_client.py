"""The stopping broker's side of ControlledShutdown (`KafkaServer.controlledShutdown`).

The request is repeated until the broker leads no partition that another broker could lead. The
controller is looked up in ZooKeeper, since the metadata may be stale. If ZooKeeper does not
respond, the controller in the metadata gets one request: maybe only this broker has lost ZooKeeper.
Apache Kafka sends only to that controller (KAFKA-9189), with the usual retries and timeout.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from kafkapy.common.cluster_state import BrokerInfo
from kafkapy.common.errors import ErrorCode, KafkapyError
from kafkapy.controller.events import ControlledShutdown, ControlledShutdownResult, Event
from kafkapy.protocol.messages.controlled_shutdown import ControlledShutdownRequest
from kafkapy.server.cluster.controller_codec import (
    CONTROLLED_SHUTDOWN_VERSION,
    controlled_shutdown_result,
)
from kafkapy.server.interbroker.node_client import NodeClient, NodeUnavailable
from kafkapy.server.interbroker.node_to_controller import request_own_controller
from kafkapy.server.security.node_security import PLAINTEXT, NodeSecurity
from kafkapy.zk.stores.store import ZkStore
from kafkapy.zk.zookeeper import SessionExpired

if TYPE_CHECKING:
    from kafkapy.metadata.cache import MetadataCache
    from kafkapy.server.config.kafka_config import KafkaConfig

logger = logging.getLogger("kafka.server.KafkaServer")

ZOOKEEPER_LIMIT_MS: Final = 2000
_NEW_SESSION_CHECK_S: Final = 0.1


class ZooKeeperTimeout(KafkapyError):
    """ZooKeeper did not respond within the time limit of a stopping broker."""


class ControlledShutdownClient:
    """Sends ControlledShutdown. `submit_event` is the queue of this broker's own controller."""

    def __init__(
        self,
        broker_id: int,
        config: KafkaConfig,
        store: ZkStore,
        metadata: MetadataCache,
        submit_event: Callable[[Event], None],
        security: NodeSecurity = PLAINTEXT,
        *,
        zookeeper_limit_ms: int = ZOOKEEPER_LIMIT_MS,
    ) -> None:
        """`zookeeper_limit_ms` limits the wait for ZooKeeper or, without it, for the controller."""
        self._broker_id = broker_id
        self._listener = config.inter_broker_listener
        self._timeout_ms = config.get_int("controller.socket.timeout.ms")
        self._max_retries = config.get_int("controlled.shutdown.max.retries")
        self._backoff_s = config.get_int("controlled.shutdown.retry.backoff.ms") / 1000
        self._zookeeper_limit_ms = zookeeper_limit_ms
        self._store = store
        self._metadata = metadata
        self._security = security
        self._submit_event = submit_event

    async def run(self, broker_epoch: int) -> bool:
        """Send up to `controlled.shutdown.max.retries` requests. Returns whether the broker may
        stop cleanly.

        Raises:
            ZooKeeperTimeout: ZooKeeper does not answer, so nothing was handed over.
        """
        logger.info("[KafkaServer id=%d] Starting controlled shutdown", self._broker_id)
        for remaining in reversed(range(self._max_retries)):
            if await self._attempt(broker_epoch):
                logger.info("[KafkaServer id=%d] Controlled shutdown succeeded", self._broker_id)
                return True
            if remaining:
                await asyncio.sleep(self._backoff_s)
                logger.warning(
                    "[KafkaServer id=%d] Retrying controlled shutdown after the previous attempt"
                    " failed (%d retries remaining)",
                    self._broker_id,
                    remaining,
                )
        logger.warning(
            "[KafkaServer id=%d] Proceeding to do an unclean shutdown as all the controlled"
            " shutdown attempts failed",
            self._broker_id,
        )
        return False

    async def _attempt(self, broker_epoch: int) -> bool:
        try:
            result = await self._request(broker_epoch)
        except ZooKeeperTimeout:
            if await self._request_by_metadata(broker_epoch):
                return True
            raise
        except KafkapyError as error:
            logger.warning(
                "[KafkaServer id=%d] Error during controlled shutdown: %s", self._broker_id, error
            )
            return False
        if result.error is not ErrorCode.NONE:
            logger.info(
                "[KafkaServer id=%d] Error from controller: %s", self._broker_id, result.error.name
            )
        elif result.remaining:
            logger.info(
                "[KafkaServer id=%d] Remaining partitions to move: [%s]",
                self._broker_id,
                ", ".join(map(str, result.remaining)),
            )
        return result.error is ErrorCode.NONE and not result.remaining

    async def _request(self, broker_epoch: int) -> ControlledShutdownResult:
        """Send the request, and wait for the response while ZooKeeper has the same controller: a
        controller that cannot reach ZooKeeper does not respond.
        """
        controller_id, controller = await self._find_controller()
        if controller_id == self._broker_id:
            response = self._request_own(broker_epoch)
        else:
            limit_ms = self._timeout_ms
            response = self._request_remote(controller_id, controller, broker_epoch, limit_ms)
        request_task = asyncio.ensure_future(response)
        try:
            while not (await asyncio.wait([request_task], timeout=self._zookeeper_limit_ms / 1000))[
                0
            ]:
                if (await self._find_controller())[0] != controller_id:
                    raise NodeUnavailable(f"broker {controller_id} is no longer the controller")
            return request_task.result()
        finally:
            request_task.cancel()
            await asyncio.gather(request_task, return_exceptions=True)

    async def _request_by_metadata(self, broker_epoch: int) -> bool:
        """Whether the controller in the metadata, if it is another broker, has moved all
        leaders."""
        image = self._metadata.image
        if image.controller_id in (self._broker_id, -1):
            return False
        controller, limit_ms = image.brokers.get(image.controller_id), self._zookeeper_limit_ms
        try:
            result = await self._request_remote(
                image.controller_id, controller, broker_epoch, limit_ms
            )
        except NodeUnavailable:
            return False
        return result.error is ErrorCode.NONE and not result.remaining

    async def _find_controller(self) -> tuple[int, BrokerInfo | None]:
        """The controller's id and registration in ZooKeeper.

        If the session has expired, this waits for the broker's new session, within the same limit.
        """
        try:
            async with asyncio.timeout(self._zookeeper_limit_ms / 1000):
                while True:
                    try:
                        return await self._read_controller()
                    except SessionExpired:
                        await asyncio.sleep(_NEW_SESSION_CHECK_S)
        except TimeoutError:
            raise ZooKeeperTimeout(
                f"ZooKeeper did not answer within {self._zookeeper_limit_ms} ms"
            ) from None

    async def _read_controller(self) -> tuple[int, BrokerInfo | None]:
        controller_id = await self._store.election.controller_id()
        if controller_id is None:
            raise NodeUnavailable("there is no controller")
        found = await self._store.brokers.get(controller_id)
        return controller_id, None if found is None else found.broker

    async def _request_remote(
        self, controller_id: int, controller: BrokerInfo | None, broker_epoch: int, limit_ms: int
    ) -> ControlledShutdownResult:
        endpoint = None if controller is None else controller.endpoint(self._listener)
        if endpoint is None:
            raise NodeUnavailable(f"the controller, broker {controller_id}, is not there")
        client = NodeClient(
            endpoint.host,
            endpoint.port,
            str(self._broker_id),
            request_timeout_ms=limit_ms,
            security=self._security,
        )
        request = ControlledShutdownRequest(broker_id=self._broker_id, broker_epoch=broker_epoch)
        try:
            response = await client.request(request, CONTROLLED_SHUTDOWN_VERSION)
        finally:
            client.close()
        return controlled_shutdown_result(response)

    async def _request_own(self, broker_epoch: int) -> ControlledShutdownResult:
        request: Coroutine[Any, Any, ControlledShutdownResult] = request_own_controller(
            self._submit_event,
            lambda reply: ControlledShutdown(self._broker_id, broker_epoch, reply),
        )
        try:
            return await asyncio.wait_for(request, self._timeout_ms / 1000)
        except TimeoutError as late:
            raise NodeUnavailable("this broker's own controller does not answer") from late
