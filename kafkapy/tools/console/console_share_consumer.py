"""Reads records as a member of a share group, and acknowledges them when they are printed
(`org.apache.kafka.tools.consumer.ConsoleShareConsumer`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Final

from confluent_kafka import AcknowledgeType, ShareConsumer
from confluent_kafka import Message as RawMessage

from kafkapy.common.errors import KafkapyError
from kafkapy.tools.console.console_consumer import message_of
from kafkapy.tools.console.message_formatter import Message
from kafkapy.tools.librdkafka_client import (
    Reporter,
    make_share_consumer,
    poll_records,
    raise_if_final,
    subscribe,
)

# Short: librdkafka waits outside of Python, so Ctrl-C and --timeout-ms take effect after a poll.
_POLL_S: Final = 0.1


class ConsoleShareConsumer:
    """Prints records of a topic, and acknowledges each with `acknowledge_type`. With
    `rejects_errors`, records
    that cannot be formatted are rejected."""

    def __init__(
        self,
        topic: str,
        properties: Mapping[str, str],
        warn: Callable[[str], None],
        *,
        acknowledge_type: AcknowledgeType = AcknowledgeType.ACCEPT,
        rejects_errors: bool = False,
    ) -> None:
        """
        Raises:
            ConfigError: librdkafka refuses a property.
        """
        self._warn = warn
        self._acknowledge_type = acknowledge_type
        self._rejects_errors = rejects_errors
        self._reporter = Reporter(warn, properties)
        self._consumer: ShareConsumer = make_share_consumer(properties, self._reporter)
        subscribe(self._consumer, [topic])
        self.count = 0

    def run(
        self,
        render: Callable[[Message], bytes],
        out: IO[bytes],
        *,
        max_messages: int | None,
        timeout_ms: int | None,
    ) -> None:
        """Print records until `max_messages`.

        Raises:
            OSError: `out` cannot be written. Unwritten records are not acknowledged.
            TimeoutError: no record for `timeout_ms`.
            ApiError: the consumer cannot continue.
            KafkapyError: a record cannot be formatted, and `rejects_errors` is not set.
        """
        last_record_s = time.monotonic()
        while max_messages is None or self.count < max_messages:
            batch = poll_records(self._consumer, _POLL_S)
            records = [raw for raw in batch if self._is_record(raw)]
            remaining = len(records) if max_messages is None else max_messages - self.count
            self._print_all(records[:remaining], render, out)
            for raw in records[remaining:]:
                self._consumer.acknowledge(raw, AcknowledgeType.RELEASE)
            if records:
                self._consumer.commit_sync()
                last_record_s = time.monotonic()
            elif timeout_ms is not None and (time.monotonic() - last_record_s) * 1000 >= timeout_ms:
                raise TimeoutError

    def _print_all(
        self, records: Sequence[RawMessage], render: Callable[[Message], bytes], out: IO[bytes]
    ) -> None:
        """Print records, then acknowledge them: acknowledged records are not delivered again."""
        acknowledge_types: list[AcknowledgeType] = []
        try:
            for raw in records:
                self.count += 1
                acknowledge_types.append(self._print(raw, render, out))
        finally:
            out.flush()
            for raw, acknowledge_type in zip(records, acknowledge_types, strict=False):
                self._consumer.acknowledge(raw, acknowledge_type)

    def _print(
        self, raw: RawMessage, render: Callable[[Message], bytes], out: IO[bytes]
    ) -> AcknowledgeType:
        try:
            message = message_of(raw)._replace(delivery_count=raw.delivery_count())
            out.write(render(message))
        except KafkapyError as error:
            if not self._rejects_errors:
                raise
            self._warn(f"ERROR Error processing message, rejecting this message: {error}")
            return AcknowledgeType.REJECT
        return self._acknowledge_type

    def _is_record(self, raw: RawMessage) -> bool:
        error = raw.error()
        if error is None:
            return True
        raise_if_final(error)
        self._reporter.report_once(f"WARN {error.str()}")
        return False

    def close(self) -> None:
        """Leave the group. Records that were not acknowledged are released."""
        self._consumer.close()
