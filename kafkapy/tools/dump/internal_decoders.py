"""Decoders of records of internal topics and of KRaft, for `dump-log-segments`.

Kafka: the children of `DumpLogSegments.MessageParser` that have schemas.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from kafkapy.record.control import ControlRecordType
from kafkapy.record.records import Record
from kafkapy.tools.dump.decoders import DecodedValue, Decoder, UndecodableRecord, json_text
from kafkapy.tools.dump.internal_topics import (
    CONSUMER_ASSIGNMENT,
    CONSUMER_OFFSETS,
    CONSUMER_SUBSCRIPTION,
    SHARE_GROUP_STATE,
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    TRANSACTION_KEY,
    TRANSACTION_STATES,
    TRANSACTION_VALUE,
)
from kafkapy.tools.dump.record_schema import Malformed, Schema, read_struct, read_version

_DELETE: Final = "<DELETE>"


class CoordinatorRecordDecoder:
    """A topic whose keys begin with the type of their record: every record as JSON.

    Kafka: `CoordinatorRecordMessageParser`.
    """

    def __init__(self, schemas: Mapping[int, tuple[Schema, Schema]]) -> None:
        """`schemas` has the schemas of key and value by type."""
        self._schemas = schemas

    def decode(self, record: Record) -> tuple[DecodedValue, DecodedValue]:
        """Decode a record. For an unknown or malformed record, the key is an error message."""
        if record.key is None:
            raise UndecodableRecord(
                f"Failed to decode message at offset {record.offset} using offset topic decoder"
                " (message had a missing key)"
            )
        try:
            kind = read_version(record.key)
            if kind not in self._schemas:
                return f"Unknown record type {kind} at offset {record.offset}, skipping.", None
            key_schema, value_schema = self._schemas[kind]
            key = {"type": str(kind), "data": read_struct(key_schema, kind, record.key)}
            if record.value is None:
                return key, _DELETE
            version = read_version(record.value)
            value = read_struct(value_schema, version, record.value)
        except Malformed as error:
            return f"Error at offset {record.offset}, skipping. {error}", None
        if value.get("protocolType") == "consumer":
            for member in value["members"]:
                _decode_member_field(member, "subscription", CONSUMER_SUBSCRIPTION)
                _decode_member_field(member, "assignment", CONSUMER_ASSIGNMENT)
        return key, {"version": str(version), "data": value}


def _decode_member_field(member: dict[str, Any], name: str, schema: Schema) -> None:
    """Replace a member's bytes with their decoded fields. Bytes of unknown protocols stay
    base64.
    """
    raw = base64.b64decode(member[name])
    try:
        member[name] = read_struct(schema, read_version(raw), raw)
    except Malformed:
        return


class TransactionLogDecoder:
    """`__transaction_state`: each record as text in Kafka's own format."""

    def decode(self, record: Record) -> tuple[DecodedValue, DecodedValue]:
        """The transactional id, and the state of its transaction."""
        if record.key is None:
            raise UndecodableRecord(f"The record at offset {record.offset} has no key")
        try:
            version = read_version(record.key)
            if version > TRANSACTION_KEY.highest:
                return f"unknown::version={version}", None
            found = read_struct(TRANSACTION_KEY, version, record.key)
            key = f"transaction_metadata::transactionalId={found['transactionalId']}"
            if record.value is None:
                return key, _DELETE
            value = read_struct(TRANSACTION_VALUE, read_version(record.value), record.value)
            return key, _transaction_text(value)
        except Malformed as error:
            raise UndecodableRecord(f"The record at offset {record.offset}: {error}") from None


def transaction_state(value: Mapping[str, Any]) -> str:
    """The name of a transaction's state. Raises Malformed for a number without one."""
    status = value["transactionStatus"]
    if not 0 <= status < len(TRANSACTION_STATES):
        raise Malformed(f"transaction status {status} is not known")
    return TRANSACTION_STATES[status]


def transaction_partitions(value: Mapping[str, Any]) -> list[str]:
    """The partitions of a transaction, as `topic-partition`."""
    return [
        f"{row['topic']}-{partition}"
        for row in value["transactionPartitions"] or ()
        for partition in row["partitionIds"]
    ]


def _transaction_text(value: Mapping[str, Any]) -> str:
    return (
        f"producerId:{value['producerId']},producerEpoch:{value['producerEpoch']},"
        f"state={transaction_state(value)},partitions=[{','.join(transaction_partitions(value))}],"
        f"txnLastUpdateTimestamp={value['transactionLastUpdateTimestampMs']},"
        f"txnTimeoutMs={value['transactionTimeoutMs']}"
    )


TOPIC_DECODERS: Final[Mapping[str, Decoder]] = {
    "offsets_decoder": CoordinatorRecordDecoder(CONSUMER_OFFSETS),
    "transaction_log_decoder": TransactionLogDecoder(),
    "share_group_state_decoder": CoordinatorRecordDecoder(SHARE_GROUP_STATE),
}
"""The decoder that each option chooses."""

_SNAPSHOT_SCHEMAS: Final = {
    ControlRecordType.SNAPSHOT_HEADER: ("SnapshotHeader", SNAPSHOT_HEADER),
    ControlRecordType.SNAPSHOT_FOOTER: ("SnapshotFooter", SNAPSHOT_FOOTER),
}


def snapshot_text(kind: ControlRecordType, record: Record) -> str | None:
    """The first or last record of a KRaft snapshot as text; None for other records.

    Raises:
        UndecodableRecord: the record cannot be read.
    """
    if kind not in _SNAPSHOT_SCHEMAS or record.value is None:
        return None
    name, schema = _SNAPSHOT_SCHEMAS[kind]
    try:
        return f"{name} {json_text(read_struct(schema, 0, record.value, start=0))}"
    except Malformed as error:
        raise UndecodableRecord(f"The record at offset {record.offset}: {error}") from None
