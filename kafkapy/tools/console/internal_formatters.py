"""Formats the records of `__consumer_offsets` and `__transaction_state`, for the console consumer.

Kafka 3.9 has two formatters for each kind of record: one writes JSON (`ApiMessageFormatter`), the
other, which is deprecated, text. Records of other kinds are left out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafkapy.common.errors import ConfigError
from kafkapy.tools.dump.decoders import json_text
from kafkapy.tools.dump.internal_decoders import transaction_partitions, transaction_state
from kafkapy.tools.dump.internal_topics import CONSUMER_OFFSETS, TRANSACTION_KEY, TRANSACTION_VALUE
from kafkapy.tools.dump.record_schema import Malformed, Schema, read_struct, read_version

if TYPE_CHECKING:
    from kafkapy.tools.console.message_formatter import Message

_UNKNOWN: Final = "unknown"


class _Kind(NamedTuple):
    """Records of one kind: their schemas by the key's version, and those of all of the topic."""

    schemas: Mapping[int, tuple[Schema, Schema]]
    topic: Mapping[int, tuple[Schema, Schema]]


_OFFSETS: Final = _Kind({n: CONSUMER_OFFSETS[n] for n in (0, 1)}, CONSUMER_OFFSETS)
_GROUPS: Final = _Kind({2: CONSUMER_OFFSETS[2]}, CONSUMER_OFFSETS)
_TRANSACTION_STATE: Final = {0: (TRANSACTION_KEY, TRANSACTION_VALUE)}
_TRANSACTIONS: Final = _Kind(_TRANSACTION_STATE, _TRANSACTION_STATE)


class InternalFormatter(ABC):
    """Formats the records of one kind."""

    def __init__(self, kind: _Kind) -> None:
        self._kind = kind

    def format(self, message: Message) -> bytes:
        """The text of one record; empty for a record of another kind.

        Raises:
            ConfigError: the key or the value cannot be read.
        """
        try:
            text = self._text(message.key, message.value)
        except Malformed as error:
            where = f"{message.topic}-{message.partition} at offset {message.offset}"
            raise ConfigError(f"{where} is no record of this formatter: {error}") from None
        return b"" if text is None else f"{text}\n".encode(errors="replace")

    @abstractmethod
    def _text(self, key: bytes | None, value: bytes | None) -> str | None: ...


class JsonFormatter(InternalFormatter):
    """One JSON object a record. (Kafka writes no line end behind it.)"""

    def _text(self, key: bytes | None, value: bytes | None) -> str | None:
        version = -1 if key is None else read_version(key)
        schemas = self._kind.schemas.get(version)
        if schemas is None and version in self._kind.topic:
            return None
        key_schema, value_schema = schemas or (None, None)
        return json_text({"key": _part(key_schema, key), "value": _part(value_schema, value)})


def _part(schema: Schema | None, data: bytes | None) -> dict[str, Any] | None:
    if data is None:
        return None
    version = read_version(data)
    if schema is None or not 0 <= version <= schema.highest:
        return {"version": version, "data": _UNKNOWN}
    return {"version": version, "data": read_struct(schema, version, data)}


class TextFormatter(InternalFormatter):
    """The key and the fields of the value, as Kafka's Scala classes show them."""

    def __init__(
        self,
        kind: _Kind,
        key_text: Callable[[Mapping[str, Any]], str],
        value_text: Callable[[str, Mapping[str, Any]], str],
    ) -> None:
        super().__init__(kind)
        self._key_text = key_text
        self._value_text = value_text

    def _text(self, key: bytes | None, value: bytes | None) -> str | None:
        version = -1 if key is None else read_version(key)
        if key is None or version not in self._kind.schemas:
            return None
        key_schema, value_schema = self._kind.schemas[version]
        name = self._key_text(read_struct(key_schema, version, key))
        if value is None:
            return f"{name}::NULL"
        fields = read_struct(value_schema, read_version(value), value)
        return f"{name}::{self._value_text(name, fields)}"


def _offset(_: str, value: Mapping[str, Any]) -> str:
    epoch, expires = value.get("leaderEpoch", -1), value.get("expireTimestamp", -1)
    return (
        f"OffsetAndMetadata(offset={value['offset']}, "
        f"leaderEpoch={'Optional.empty' if epoch == -1 else f'Optional[{epoch}]'}, "
        f"metadata={value['metadata']}, commitTimestamp={value['commitTimestamp']}, "
        f"expireTimestamp={_option(None if expires == -1 else expires)})"
    )


def _group(group_id: str, value: Mapping[str, Any]) -> str:
    members = [f"{each['memberId']} -> {_member(value, each)}" for each in value["members"]]
    return (
        f"GroupMetadata(groupId={group_id}, generation={value['generation']}, "
        f"protocolType={_option(value['protocolType'])}, "
        f"currentState={'Stable' if members else 'Empty'}, members=HashMap({', '.join(members)}))"
    )


def _member(group: Mapping[str, Any], member: Mapping[str, Any]) -> str:
    session_ms = member["sessionTimeout"]
    return (
        f"MemberMetadata(memberId={member['memberId']}, "
        f"groupInstanceId={_option(member.get('groupInstanceId'))}, "
        f"clientId={member['clientId']}, clientHost={member['clientHost']}, "
        f"sessionTimeoutMs={session_ms}, "
        f"rebalanceTimeoutMs={member.get('rebalanceTimeout', session_ms)}, "
        f"supportedProtocols=List({group['protocol']}))"
    )


def _transaction(transactional_id: str, value: Mapping[str, Any]) -> str:
    return (
        f"TransactionMetadata(transactionalId={transactional_id}, "
        f"producerId={value['producerId']}, producerEpoch={value['producerEpoch']}, "
        f"txnTimeoutMs={value['transactionTimeoutMs']}, state={transaction_state(value)}, "
        f"pendingState=None, topicPartitions=HashSet({', '.join(transaction_partitions(value))}), "
        f"txnStartTimestamp={value['transactionStartTimestampMs']}, "
        f"txnLastUpdateTimestamp={value['transactionLastUpdateTimestampMs']})"
    )


def _option(value: object) -> str:
    return "None" if value is None else f"Some({value})"


INTERNAL_FORMATTERS: Final[Mapping[str, InternalFormatter]] = {
    "OffsetsMessageFormatter": JsonFormatter(_OFFSETS),
    "GroupMetadataMessageFormatter": JsonFormatter(_GROUPS),
    "TransactionLogMessageFormatter": JsonFormatter(_TRANSACTIONS),
    "GroupMetadataManager$OffsetsMessageFormatter": TextFormatter(
        _OFFSETS, lambda key: f"[{key['group']},{key['topic']},{key['partition']}]", _offset
    ),
    "GroupMetadataManager$GroupMetadataMessageFormatter": TextFormatter(
        _GROUPS, lambda key: str(key["group"]), _group
    ),
    "TransactionLog$TransactionLogMessageFormatter": TextFormatter(
        _TRANSACTIONS, lambda key: str(key["transactionalId"]), _transaction
    ),
}
"""By the class name without its package: `org.apache.kafka.tools.consumer` for JSON, and for text
`kafka.coordinator.group` or `kafka.coordinator.transaction`."""
