"""Loading of partitions of `__transaction_state`, by replay of the log, and unloading."""

from __future__ import annotations

from kafkapy.common.errors import ApiError
from kafkapy.common.topic_partition import TRANSACTION_STATE_TOPIC, TopicPartition
from kafkapy.coordinator.replayed_records import replayed_records
from kafkapy.coordinator.transactions.core import Core, StatePartition
from kafkapy.coordinator.transactions.log_records import read_transaction, read_transaction_key
from kafkapy.record.batch_header import Buffer


def start_loading(core: Core, partition: int, leader_epoch: int) -> bool:
    """Begin to lead a partition at `leader_epoch`. Returns whether its log must be replayed now.

    A partition that is led already is loaded again at a later epoch, because pending appends of the
    earlier epoch may be in the log or not.
    """
    state_partition = core.partitions.get(partition)
    if state_partition is not None and leader_epoch <= state_partition.leader_epoch:
        return False
    unload(core, partition, None)
    core.partitions[partition] = StatePartition(leader_epoch)
    core.log.info("Loading transaction metadata from %s-%d", TRANSACTION_STATE_TOPIC, partition)
    return True


def replay_batches(core: Core, partition: int, records: Buffer) -> None:
    """Apply the whole batches of a buffer. A later record replaces an earlier one.

    Unreadable records are logged and skipped, so that they do not affect others.

    Raises:
        ApiError: CORRUPT_MESSAGE on reaching bytes that cannot begin a batch.
    """
    transactions = core.partitions[partition].transactions
    topic_partition = TopicPartition(TRANSACTION_STATE_TOPIC, partition)
    for header, record in replayed_records(core.log, topic_partition, records):
        if not header.is_control:
            try:
                name = read_transaction_key(record.key or b"")
                if name is None:
                    core.log.warning(
                        "Unknown key at offset %d of %s-%d: skipped, a later Kafka wrote it",
                        record.offset,
                        TRANSACTION_STATE_TOPIC,
                        partition,
                    )
                elif record.value is None:
                    transactions.pop(name, None)
                else:
                    transactions[name] = read_transaction(name, record.value)
            except ApiError as error:
                core.log.error(
                    "Skipped the record at offset %d of %s-%d: %s",
                    record.offset,
                    TRANSACTION_STATE_TOPIC,
                    partition,
                    error.message,
                )


def finish_loading(core: Core, partition: int) -> None:
    """Start to serve the partition's ids.

    `markers.resume` completes the decisions in the log later.
    """
    state_partition = core.partitions[partition]
    state_partition.loading = False
    core.log.info(
        "Finished loading %d transaction metadata from %s-%d",
        len(state_partition.transactions),
        TRANSACTION_STATE_TOPIC,
        partition,
    )


def unload(core: Core, partition: int, leader_epoch: int | None) -> None:
    """Stop coordinating a partition, which another broker leads at `leader_epoch` (None: any).
    Pending appends are answered NOT_COORDINATOR when they end.
    """
    state_partition = core.partitions.get(partition)
    if state_partition is None or (
        leader_epoch is not None and leader_epoch < state_partition.leader_epoch
    ):
        return
    del core.partitions[partition]
    for name in state_partition.transactions:
        core.pending_completions.pop(name, None)
    core.log.info(
        "Unloaded %d transaction metadata of %s-%d",
        len(state_partition.transactions),
        TRANSACTION_STATE_TOPIC,
        partition,
    )
