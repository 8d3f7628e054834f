"""A client's view of a cluster: finds the broker for each request, and retries.

Connections are opened on first use, and kept. Retries cover the cases of Kafka's clients: a leader,
controller or coordinator that moved, or a lost connection; not refused requests.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final, Self

from kafkapy.client.channel import Allocate, Channel, zeroed_buffer
from kafkapy.client.coordinators import GROUP_KEY_TYPE, find_coordinator
from kafkapy.client.metadata import Broker, ClusterMetadata, TopicMetadata, cluster_metadata
from kafkapy.client.offsets import OffsetResult, list_offsets
from kafkapy.client.properties import milliseconds, parse_bootstrap_servers
from kafkapy.client.security import security_from
from kafkapy.client.transport import Connector, connect
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafkapy.protocol.schema import Message

REQUEST_TIMEOUT_MS: Final = 30_000
API_TIMEOUT_MS: Final = 60_000
CONNECT_TIMEOUT_MS: Final = 10_000
RETRY_BACKOFF_MS: Final = 100
LAST_REQUEST_S: Final = 1.0
"""The time of a request at the end of the API timeout. It is enough for a slow broker, so that the
call fails with the broker's error."""

_FIRST_WITHOUT_CREATION: Final = 4  # earlier Metadata requests create the topics that they name

# Errors after which another broker, or the same one later, may succeed.
MOVED_ERRORS: Final = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)


class Cluster:
    """A lazily connected cluster; a context manager that closes its connections."""

    def __init__(
        self,
        bootstrap_servers: str,
        properties: Mapping[str, str] | None = None,
        client_id: str = "kafkapy",
        *,
        connector: Connector | None = None,
        allocate: Allocate = zeroed_buffer,
    ) -> None:
        """`allocate` returns the memory for responses.

        Raises:
            ConfigError: a server or property is malformed.
        """
        properties = properties or {}
        self.client_id = properties.get("client.id", client_id)
        self.client_rack = properties.get("client.rack", "")
        request_timeout_ms = milliseconds(properties, "request.timeout.ms", REQUEST_TIMEOUT_MS)
        # As in Kafka, the default is not below the request timeout. Kafka's admin client refuses a
        # lower value; here it bounds each request.
        default = max(API_TIMEOUT_MS, request_timeout_ms)
        self.api_timeout_ms = milliseconds(properties, "default.api.timeout.ms", default)
        self.request_timeout_ms = min(request_timeout_ms, self.api_timeout_ms)
        self._connect_timeout_ms = min(
            milliseconds(properties, "socket.connection.setup.timeout.ms", CONNECT_TIMEOUT_MS),
            self.api_timeout_ms,
        )
        self._backoff_ms = milliseconds(properties, "retry.backoff.ms", RETRY_BACKOFF_MS)
        self._bootstrap = parse_bootstrap_servers(bootstrap_servers)
        self._security = security_from(properties)
        self._connector = connector or connect
        self._allocate = allocate
        self._any_channel: Channel | None = None
        self._channels: dict[int, Channel] = {}
        self._brokers: dict[int, Broker] = {}
        self._topics: dict[str, TopicMetadata] = {}
        self._latest_metadata: ClusterMetadata | None = None
        self._has_connected = False
        self._unresponsive: set[str] = set()  # brokers that hung at the last attempt
        self._deadline_s = math.inf  # of the running call

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        for channel in (
            *self._channels.values(),
            *([self._any_channel] if self._any_channel else ()),
        ):
            channel.close()
        self._channels.clear()
        self._any_channel = None

    def request(
        self,
        message: Message,
        *,
        broker_id: int | None = None,
        timeout_ms: int | None = None,
        min_version: int | None = None,
        max_version: int | None = None,
    ) -> Any:
        """Send a request to one broker (None: any that answers) in the highest common version.

        Raises:
            ApiError: no connection, no response in time, or no common version. The caller handles
              error codes in the response.
        """
        channel = self.channel(broker_id, message)
        version = channel.version_for(message, min_version, max_version)
        limit_ms = self._limit_ms(timeout_ms or self.request_timeout_ms)
        try:
            return channel.exchange(message, version, limit_ms)
        except ApiError as error:
            if error.code is ErrorCode.REQUEST_TIMED_OUT:
                self._avoid(channel.peer)
            raise

    def request_ahead(
        self,
        message: Message,
        broker_id: int,
        *,
        min_version: int | None = None,
        max_version: int | None = None,
    ) -> None:
        """Send the request of a later `request` call with the same message and versions, which then
        only waits.

        This is only a hint: without an open channel nothing is sent. Another request to the broker
        in between closes the channel, and `request` sends the message again.
        """
        channel = self._channels.get(broker_id)
        ready = channel is not None and not channel.closed and not channel.needs_login
        if channel is not None and ready and channel.outstanding_request is None:
            version = channel.version_for(message, min_version, max_version)
            channel.send_ahead(message, version, self._limit_ms(self.request_timeout_ms))

    def drop_ahead(self, message: Message, broker_id: int) -> None:
        """Drop the response to a request that was sent ahead."""
        channel = self._channels.get(broker_id)
        if channel is not None and channel.outstanding_request is message:
            channel.close()

    def channel(self, broker_id: int | None = None, message: Message | None = None) -> Channel:
        """An open channel to a broker, negotiated, without an outstanding response, except that to
        `message`.
        """
        if broker_id is None:
            if self._any_channel is None or self._any_channel.closed:
                self._any_channel = self._open_any()
            return self._ensure_login(self._any_channel)
        channel = self._channels.get(broker_id)
        if (
            channel is not None
            and channel.outstanding_request is not None
            and channel.outstanding_request is not message
        ):
            channel.close()
        if channel is None or channel.closed:
            broker = self.broker(broker_id)
            channel = self._channels[broker_id] = self._open(broker.host, broker.port)
        return self._ensure_login(channel)

    def metadata(
        self, topics: Sequence[str] | None = None, refresh: bool = False, create: bool = False
    ) -> ClusterMetadata:
        """Brokers and topics (None: all). Known topics come from the cache unless `refresh`.

        A missing topic has an error. Only with `create` may brokers create it
        (`auto.create.topics.enable`), as they do for producers.
        """
        known = self._latest_metadata
        if known and topics and not refresh and all(name in self._topics for name in topics):
            chosen = {name: self._topics[name] for name in topics}
            return ClusterMetadata(known.cluster_id, known.controller_id, known.brokers, chosen)
        wanted = None if topics is None else [MetadataRequestTopic(name=n) for n in topics]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=create)
        found: ClusterMetadata = self.retry(
            lambda: self._fetch_metadata(request), is_repeatable=True
        )
        self._cache_metadata(found)
        return found

    def _fetch_metadata(self, request: MetadataRequest) -> ClusterMetadata:
        in_any_version = request.allow_auto_topic_creation or not request.topics
        min_version = None if in_any_version else _FIRST_WITHOUT_CREATION
        found = cluster_metadata(self.request(request, min_version=min_version))
        if not found.brokers:
            # The broker is registered, but has no metadata yet: topics would look deleted.
            raise ApiError(
                ErrorCode.LEADER_NOT_AVAILABLE,
                f"{self.channel().peer} has just started and has no metadata yet",
            )
        return found

    def leader_of(self, topic_partition: TopicPartition) -> int:
        """The leader's id; waits while the partition has none.

        Raises:
            ApiError: UNKNOWN_TOPIC_OR_PARTITION, or the topic's own error;
              LEADER_NOT_AVAILABLE after the API timeout.
        """
        topic, index = topic_partition
        refresh = False
        for _ in self.attempts():
            found = self.metadata([topic], refresh=refresh).topics[topic]
            partition = found.partitions.get(index)
            if partition is not None and partition.leader >= 0:
                return partition.leader
            is_missing = found.error not in MOVED_ERRORS and partition is None
            if is_missing and refresh:
                break
            refresh = True
        if not is_missing:
            message = f"Partition {topic_partition} has no leader"
            raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE, message)
        code = found.error or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        is_unknown = code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        message = f"Partition {topic_partition} does not exist"
        raise ApiError(code, message if is_unknown else f"Topic {topic}: {code.name}")

    def controller_request(
        self, message: Message, *, timeout_ms: int | None = None, min_version: int | None = None
    ) -> Any:
        """Send a request to the controller. Finds it again while the response is NOT_CONTROLLER.

        Checks only the error codes of the response and of its items, one level down. The caller
        handles errors of items.
        """

        def send() -> Any:
            found = self.metadata([], refresh=True)
            if found.controller_id not in found.brokers:  # -1, or one that has stopped
                raise ApiError(ErrorCode.NOT_CONTROLLER, "The cluster has no controller")
            response = self.request(
                message,
                broker_id=found.controller_id,
                timeout_ms=timeout_ms,
                min_version=min_version,
            )
            if ErrorCode.NOT_CONTROLLER in error_codes(response):
                raise ApiError(ErrorCode.NOT_CONTROLLER)
            return response

        return self.retry(send)

    def broker(self, broker_id: int) -> Broker:
        """The address of a broker.

        Raises:
            ApiError: BROKER_NOT_AVAILABLE.
        """
        return self._brokers.get(broker_id) or self._find_broker(broker_id)

    def coordinator_request(
        self,
        key: str,
        message: Message,
        *,
        key_type: int = GROUP_KEY_TYPE,
        min_version: int | None = None,
        max_version: int | None = None,
        is_repeatable: bool = False,
    ) -> Any:
        """Send a request to the coordinator of a group or transactional id. Finds it again while it
        moves or loads. `is_repeatable` is as in `retry`.
        """

        def send() -> Any:
            coordinator = self.retry(
                lambda: find_coordinator(self, key, key_type), is_repeatable=True
            )
            response = self.request(
                message, broker_id=coordinator, min_version=min_version, max_version=max_version
            )
            for code in error_codes(response):
                if code in MOVED_ERRORS:
                    raise ApiError(ErrorCode(code))
            return response

        return self.retry(send, is_repeatable=is_repeatable)

    def list_offsets(
        self, timestamps: Mapping[TopicPartition, int], isolation_level: int = 0
    ) -> dict[TopicPartition, OffsetResult]:
        """Offsets by timestamp, or by -1 (latest), -2 (earliest), -3 (of the largest timestamp).

        Returns an `OffsetResult(offset, timestamp, leader_epoch, error)` for each partition.
        """
        return list_offsets(self, timestamps, isolation_level)

    def add_broker(self, broker: Broker) -> None:
        """Store the address of a broker. Only Metadata contains its rack."""
        known = self._brokers.get(broker.broker_id)
        if known is not None and broker.rack is None:
            broker = Broker(broker.broker_id, broker.host, broker.port, known.rack)
        if known != broker:
            self._brokers[broker.broker_id] = broker
            stale = self._channels.pop(broker.broker_id, None)
            if stale is not None:
                stale.close()

    def invalidate_topics(self, topics: Iterable[str]) -> None:
        """Drop the cached metadata of topics, so that the next use fetches it again."""
        for topic in topics:
            self._topics.pop(topic, None)

    def is_moved_error(self, code: int) -> bool:
        """Whether an error means that the responsible broker must be found again."""
        return code in MOVED_ERRORS

    def is_transient_error(self, code: int) -> bool:
        """Whether a request that may be repeated may succeed later: the responsible broker moves,
        hangs, or is not among the brokers at the moment.
        """
        # Before the first connection, this error means that no bootstrap server can be reached.
        is_missing = code == ErrorCode.BROKER_NOT_AVAILABLE and self._has_connected
        return code in MOVED_ERRORS or code == ErrorCode.REQUEST_TIMED_OUT or is_missing

    def pause(self) -> None:
        """Wait the retry back-off."""
        time.sleep(self._backoff_ms / 1000)

    def retry(self, send: Callable[[], Any], *, is_repeatable: bool = False) -> Any:
        """Repeat a call until the responsible broker answers, or the API timeout has passed. A call
        that may be repeated, such as a read, is also repeated if its end is not known.
        """
        is_passing = self.is_transient_error if is_repeatable else self.is_moved_error
        last: ApiError | None = None
        for _ in self.attempts():
            try:
                return send()
            except ApiError as error:
                if not is_passing(error.code):
                    raise
                last = error
        assert last is not None
        raise last

    def attempts(self) -> Iterable[int]:
        """Count attempts, a back-off apart, until the API timeout has passed. Attempts and requests
        within an attempt end at the same time.
        """
        with self.within(time.monotonic() + self.api_timeout_ms / 1000):
            deadline_s = self._deadline_s
            attempt = 0
            while True:
                yield attempt
                attempt += 1
                if time.monotonic() + self._backoff_ms / 1000 > deadline_s:
                    return
                self.pause()

    @contextmanager
    def within(self, deadline_s: float) -> Iterator[None]:
        """Bound the calls in the block by a deadline on the clock of `time.monotonic`, too. A call
        at the deadline still makes one attempt.
        """
        outer_deadline_s = self._deadline_s
        self._deadline_s = min(outer_deadline_s, deadline_s)
        try:
            yield
        finally:
            self._deadline_s = outer_deadline_s

    def _limit_ms(self, timeout_ms: int) -> int:
        """The time limit of a request, within that of the running call. It is not 0, which would
        make a socket non-blocking.
        """
        left_s = max(self._deadline_s - time.monotonic(), LAST_REQUEST_S)
        return max(1, int(min(timeout_ms, left_s * 1000)))

    def _cache_metadata(self, found: ClusterMetadata) -> None:
        self._latest_metadata = found
        for broker in found.brokers.values():
            self.add_broker(broker)
        for name, topic in found.topics.items():
            if topic.error is ErrorCode.NONE:
                self._topics[name] = topic
            else:
                self._topics.pop(name, None)

    def _find_broker(self, broker_id: int) -> Broker:
        broker = self.metadata([], refresh=True).brokers.get(broker_id)
        if broker is None:
            raise ApiError(ErrorCode.BROKER_NOT_AVAILABLE, f"Broker {broker_id} is not available")
        return broker

    def _avoid(self, peer: str) -> None:
        """Send no requests for any broker to one that hangs, unless no other can be reached."""
        self._unresponsive.add(peer)
        if self._any_channel is not None and self._any_channel.peer == peer:
            self._any_channel.close()

    def _open_any(self) -> Channel:
        """The first bootstrap server, or known broker, that can be reached. The next call tries it
        last: it may hang.
        """
        known = [(broker.host, broker.port) for broker in self._brokers.values()]
        addresses = list(dict.fromkeys((*self._bootstrap, *known)))
        addresses.sort(key=lambda address: _peer(*address) in self._unresponsive)
        last: ApiError | None = None
        for host, port in addresses:
            try:
                channel = self._open(host, port)
            except ApiError as error:
                last = error
            else:
                self._bootstrap.sort(key=(host, port).__eq__)
                return channel
        assert last is not None
        if self._has_connected:
            raise last
        # No broker ever answered: the address is wrong or the broker is down, not failing over.
        raise ApiError(
            ErrorCode.BROKER_NOT_AVAILABLE, f"No bootstrap server can be reached. {last.message}"
        ) from last

    def _open(self, host: str, port: int) -> Channel:
        timeout_ms = self._limit_ms(self._connect_timeout_ms)
        transport = self._connector(host, port, self._security, timeout_ms / 1000)
        channel = Channel(transport, _peer(host, port), self.client_id, self._allocate)
        try:
            channel.negotiate(self._limit_ms(self.request_timeout_ms))
        except ApiError as error:
            if error.code is ErrorCode.REQUEST_TIMED_OUT:
                self._avoid(channel.peer)
            raise
        self._unresponsive.discard(channel.peer)
        if self._security.sasl:
            self._log_in(channel)
        self._has_connected = True
        return channel

    def _log_in(self, channel: Channel) -> None:
        from kafkapy.client.sasl import authenticate

        authenticate(channel, self._security, self._limit_ms(self.request_timeout_ms))

    def _ensure_login(self, channel: Channel) -> Channel:
        if channel.needs_login:
            self._log_in(channel)
        return channel


def _peer(host: str, port: int) -> str:
    return f"{host}:{port}"


def error_codes(response: Any) -> list[int]:
    """The response's own error code and those of its items, one level down."""
    codes = [response.error_code] if hasattr(response, "error_code") else []
    for name in response.__slots__:
        items = getattr(response, name)
        if isinstance(items, list):
            codes += [item.error_code for item in items if hasattr(item, "error_code")]
    return codes
