"""Periodic work of a running broker: retention, flushes, checkpoints, idle connections.

Each step is a few calls on the event loop; fsync and compaction go to a worker thread.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from kafkapy.common.errors import LogDirFailure
from kafkapy.common.system import GilPause
from kafkapy.server.replicas.log_dir_moves import LogDirMoves
from kafkapy.server.scheduler import Scheduler
from kafkapy.storage.disk_errors import StorageShortage
from kafkapy.storage.filesystem import FileSystem
from kafkapy.storage.log_cleaner import LogCleaner

if TYPE_CHECKING:
    from kafkapy.common.ports import Clock
    from kafkapy.server.admin.token_admin import TokenAdmin
    from kafkapy.server.cluster.controller_task import ControllerTask
    from kafkapy.server.config.kafka_config import KafkaConfig
    from kafkapy.server.coordinators.group_service import GroupService
    from kafkapy.server.coordinators.share_service import ShareService
    from kafkapy.server.coordinators.transaction_service import TransactionService
    from kafkapy.server.network.connection_table import ConnectionTable
    from kafkapy.server.replicas.replica_manager import ReplicaManager
    from kafkapy.storage.flush_task import FlushTask

logger = logging.getLogger("kafka.server.KafkaServer")

_DELETE_FILES_MS: Final = 1000
_FLUSH_MS: Final = 1000
_IDLE_CHECK_MAX_MS: Final = 10_000
_LOG_DIR_MOVES_MS: Final = 100
_REQUEST_REPLICAS_MS: Final = 10_000


class Maintenance:
    """The periodic work of one broker."""

    def __init__(
        self,
        config: KafkaConfig,
        replicas: ReplicaManager,
        groups: GroupService,
        transactions: TransactionService,
        shares: ShareService,
        token_admin: TokenAdmin | None,
        controller: ControllerTask,
        fs: FileSystem,
        connections: ConnectionTable,
        clock: Clock,
    ) -> None:
        self._config = config
        self._replicas = replicas
        self._groups = groups
        self._transactions = transactions
        self._shares = shares
        self._token_admin = token_admin
        self._controller = controller
        self._connections = connections
        self._logs = replicas.log_manager
        self._clock = clock
        self._moves = LogDirMoves(replicas, clock)
        self._cleaner = LogCleaner(fs, self._logs, config.get_int("log.cleaner.dedupe.buffer.size"))
        self._scheduler = Scheduler(replicas.log_dir_failed)

    def start(self) -> None:
        """Start the periodic tasks. Kafka's configs set most of the periods."""
        get, every, logs = self._config.get_int, self._scheduler.every, self._logs
        first_ms = get("log.initial.task.delay.ms")
        time_ms = self._clock.time_ms
        every(
            "kafka-log-retention",
            get("log.retention.check.interval.ms"),
            self._delete_old_segments,
            first_ms,
        )
        every(
            "kafka-recovery-point-checkpoint",
            get("log.flush.offset.checkpoint.interval.ms"),
            logs.checkpoint_recovery_points,
            first_ms,
        )
        every(
            "kafka-log-start-offset-checkpoint",
            get("log.flush.start.offset.checkpoint.interval.ms"),
            logs.checkpoint_log_start_offsets,
            first_ms,
        )
        every(
            "highwatermark-checkpoint",
            get("replica.high.watermark.checkpoint.interval.ms"),
            logs.checkpoint_high_watermarks,
        )
        every("kafka-delete-logs", _DELETE_FILES_MS, self._delete_files)
        every("kafka-log-flusher", _FLUSH_MS, self._flush)
        every("replica-alter-log-dirs", _LOG_DIR_MOVES_MS, self._move_logs)
        every(
            "PeriodicProducerExpirationCheck",
            get("producer.id.expiration.check.interval.ms"),
            lambda: self._discard(logs.expire_producers(time_ms())),
        )
        self._start_coordinators()
        every(
            "isr-expiration",
            get("replica.lag.time.max.ms") // 2,
            self._replicas.shrink_isrs,
        )
        every(
            "replicas-without-files", _REQUEST_REPLICAS_MS, self._replicas.request_missing_replicas
        )
        idle_ms = get("connections.max.idle.ms")
        if idle_ms >= 0:
            every(
                "idle-connections",
                max(1, min(idle_ms // 4, _IDLE_CHECK_MAX_MS)),
                self._close_idle_connections,
            )
        if self._config.get_bool("log.cleaner.enable"):
            every("kafka-log-cleaner", max(1, get("log.cleaner.backoff.ms")), self._clean)

    def _start_coordinators(self) -> None:
        get, every = self._config.get_int, self._scheduler.every
        every(
            "delete-expired-group-metadata",
            get("offsets.retention.check.interval.ms"),
            self._groups.expire_offsets,
        )
        every(
            "share-group-state-prune",
            get("share.coordinator.state.topic.prune.interval.ms"),
            self._shares.maintain,
        )
        transactions = self._transactions
        every(
            "transaction-abort",
            get("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
            lambda: transactions.run(transactions.coordinator.abort_timed_out),
        )
        every(
            "transactionalId-expiration",
            get("transaction.remove.expired.transaction.cleanup.interval.ms"),
            lambda: transactions.run(transactions.coordinator.expire_ids),
        )

        if self._token_admin is not None:
            every(
                "delete-expired-tokens",
                get("delegation.token.expiry.check.interval.ms"),
                self._delete_expired_tokens,
                delay_ms=0,
            )

    async def _delete_expired_tokens(self) -> None:
        """Delete expired delegation tokens. Only the active controller does it, for all brokers."""
        admin, controller = self._token_admin, self._controller.controller
        if admin is not None and controller is not None and controller.is_active:
            await admin.delete_expired()

    async def stop(self) -> None:
        await self._scheduler.stop()

    @staticmethod
    def _discard(_: object) -> None:
        """Discard the result of a step; only tests use it."""

    async def _delete_old_segments(self) -> None:
        for _ in self._logs.retention_slices(self._clock.time_ms()):
            await asyncio.sleep(0)  # with many logs, requests are served between the slices

    async def _delete_files(self) -> None:
        for _ in self._logs.deletion_slices(self._clock.time_ms()):
            await asyncio.sleep(0)  # a topic can have thousands of large files

    async def _flush(self) -> None:
        for task in self._logs.flush_due_logs(self._clock.time_ms()):
            work = asyncio.ensure_future(asyncio.to_thread(task.fsync))
            try:
                await asyncio.wait([work])
            except asyncio.CancelledError:
                await asyncio.wait([work])  # the kernel reports a failed write only once
                self._complete_flush(task, work)
                raise
            self._complete_flush(task, work)

    def _complete_flush(self, task: FlushTask, work: asyncio.Future[None]) -> None:
        try:
            work.result()
        except LogDirFailure as failure:
            self._replicas.log_dir_failed(failure)
        except StorageShortage as shortage:
            logger.warning("%s", shortage)
        else:
            task.complete(self._clock.time_ms())

    async def _move_logs(self) -> None:
        """Copy logs between directories, piece by piece, until nothing is left to copy for now."""
        while self._moves.step():
            await asyncio.sleep(0)

    def _close_idle_connections(self) -> None:
        self._connections.close_idle(self._clock.monotonic_ms())

    async def _clean(self) -> None:
        """Clean logs one after another until none is dirty enough, or one fails."""
        while (cleaning := self._cleaner.next_cleaning(self._clock.time_ms())) is not None:
            work = asyncio.ensure_future(asyncio.to_thread(cleaning.run, GilPause()))
            try:
                await asyncio.wait([work])
            except asyncio.CancelledError:
                # The broker stops: the cleaner must not write to a directory whose lock is
                # released.
                cleaning.log.cleaning.abort()
                await asyncio.wait([work])
                raise
            error = work.exception()
            if error is not None:
                self._cleaner.fail(cleaning, error)
                return
            self._cleaner.commit(cleaning, self._clock.time_ms())
