"""Answers requests: reads the topic, decides, and writes the records of the decision.

An answer is given once its records are in the topic. If another registry wrote meanwhile, the
request is decided again.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from kafkapy.client.batch_producer import DeliveryError, RecordTooLarge
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError
from kafkapy.schemas.records import Record
from kafkapy.schemas.registry import Decision
from kafkapy.schemas.registry_state import RegistryState
from kafkapy.schemas.rest_api import Call, RestApi
from kafkapy.schemas.rest_errors import RestError, only_reads, too_large
from kafkapy.schemas.schemas_topic import BEGINNING, SchemasTopic, create_if_missing

log: Final = logging.getLogger("kafkapy.schemas")

Handler = Callable[[RestApi, Call], Decision]

# Answers that never change: a schema keeps its id and its GUID. An import may give the id of a
# removed schema to another one, which `follow` finds.
_IMMUTABLE: Final = (
    *(RestApi.schema, RestApi.schema_text, RestApi.schema_of_guid),
    *(RestApi.root, RestApi.types, RestApi.contexts, RestApi.cluster),
)
_ATTEMPTS: Final = 8
_WRITE_LIMIT_S: Final = 20.0


# Clients of registries wait for half a minute at most.
API_TIMEOUT: Final = {"default.api.timeout.ms": "10000"}


@contextmanager
def open_registry(
    cluster: Cluster, properties: Mapping[str, str], topic_name: str
) -> Iterator[RegistryService]:
    """A registry that has read its topic, which is created if it does not exist. `properties` are
    those of a client, with bootstrap.servers.

    Raises:
        ConfigError: the topic has several partitions.
        ApiError: the topic can be neither created nor read.
    """
    create_if_missing(cluster, topic_name)
    topic = SchemasTopic(cluster, properties, topic_name)
    try:
        service = RegistryService(topic, cluster.metadata([]).cluster_id or "")
        service.load()
        yield service
    finally:
        topic.close()


class RegistryService:
    """One registry. Not thread-safe, except for `answer_known`."""

    def __init__(self, topic: SchemasTopic, cluster_id: str) -> None:
        self._topic = topic
        self._cluster_id = cluster_id
        self._state = RegistryState()
        self._api = RestApi(self._state, cluster_id)
        self._read_s = -math.inf  # when the latest read began that did not fail
        self._failed_s = -math.inf  # when the latest read failed
        self._failure: ApiError | None = None

    @property
    def subjects(self) -> int:
        """The number of subjects."""
        return len(self._state.subjects)

    def load(self) -> None:
        """Read the topic. Raises ApiError."""
        self._apply(self._topic.read_stable())

    def answer_known(self, handler: Handler, call: Call) -> Any:
        """The answer that no record can change, None if there is none. Also while Kafka is down."""
        if handler in _IMMUTABLE and "fetchMaxId" not in call.query:
            try:
                return self._decide(handler, call).answer
            except RestError:
                return None
        return None

    def follow(self) -> None:
        """Read the records of other registries, so that `answer_known` has it."""
        try:
            self._refresh(time.monotonic())
        except ApiError as error:
            log.info("The topic of schemas cannot be read: %s", error)
        except Exception:  # else the registry never follows again
            log.exception("The topic of schemas cannot be read")

    def answer(self, handler: Handler, call: Call, asked_s: float = math.inf) -> Any:
        """The answer to a request of the time `asked_s`. A later read of the topic serves it too.

        Raises:
            RestError: the request is refused, 40301 because its user may only read; 50001 Kafka
                does not take the records, or cannot be read; 500 a bug, which is logged.
        """
        try:
            self._refresh(asked_s)
            decision = self._decide(handler, call)
            if not decision.records:
                return decision.answer
            if not call.may_write:
                raise only_reads()
            return self._write(handler, call, decision)
        except ApiError as error:
            raise RestError(50001, f"Error in the backend data store: {error.message}") from error

    def _refresh(self, asked_s: float) -> None:
        """Read the topic, unless a later read has succeeded. Raises ApiError, also if a read has
        failed since: each takes until its timeout while Kafka hangs."""
        if self._read_s > asked_s:
            return
        if self._failure is not None and self._failed_s > asked_s:
            raise ApiError(self._failure.code, self._failure.message)
        began_s = time.monotonic()
        try:
            self._apply(self._topic.read_stable())
        except ApiError as error:
            self._failed_s, self._failure = time.monotonic(), error
            raise
        self._read_s = began_s

    def _decide(self, handler: Handler, call: Call) -> Decision:
        try:
            return handler(self._api, call)
        except RestError:
            raise
        except Exception as error:  # else the client waits for ever, or gets a page of text
            log.exception("A request failed: %s", handler.__name__)
            raise RestError(500, f"Internal Server Error: {type(error).__name__}") from None

    def _write(self, handler: Handler, call: Call, decision: Decision) -> Any:
        """Write a decision as the only writer. It is made again if there are new records. A write
        with an unknown outcome is looked for in the topic."""
        is_attempted = False
        failure, attempt = "", 0
        deadline_s = time.monotonic() + _WRITE_LIMIT_S
        while attempt < _ATTEMPTS and time.monotonic() < deadline_s:
            try:
                transaction = self._topic.begin()
                new = self._topic.read_all()
                self._apply(new)
                if is_attempted and set(decision.records) <= set(new):
                    return decision.answer
                if new:
                    decision = self._decide(handler, call)
                if decision.records:
                    is_attempted = True
                    self._topic.write(transaction, decision.records)
                    self._apply(self._topic.read_all())
                return decision.answer
            except RecordTooLarge:
                raise too_large() from None
            except (ApiError, DeliveryError) as error:
                log.info("A write of schemas is tried again: %s", error)
                failure = str(error)
            self._topic.pause(attempt)
            attempt += 1
        raise RestError(50001, f"Error in the backend data store: {failure}")

    def _apply(self, records: list[Record]) -> None:
        for record in records:
            if record is BEGINNING:
                log.warning(
                    "The topic of schemas was created again, or lost records: it is read again"
                )
                self._state = RegistryState()
                self._api = RestApi(self._state, self._cluster_id)
            else:
                self._state.apply(record)
