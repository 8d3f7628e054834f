"""Exactly once: a transaction for each task of each micro-batch, which is committed only once.

The transactional id consists of query, batch and partition. So a repeated task, also after a
restart of the query, can look up its transaction at the coordinator. If it was committed, the rows
are not written again. If not, a new transaction fences and aborts the old one.

It depends on five conditions (docs/explanation/spark-guarantees.md): the rows of a batch's
partition are the same when they are computed again, the coordinator has not expired the id
(`transactional.id.expiration.ms`, 7 days), a task ends within `kafka.transaction.timeout.ms`, Spark
does not run two attempts of a task at once (speculation is off), and no other query has a copy of
the checkpoint.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import uuid4

from pyspark import TaskContext

from kafkapy.client.cluster import Cluster
from kafkapy.client.transaction_states import COMPLETE_COMMIT, PREPARE_COMMIT, transaction_state

_COMMITTED: Final = (COMPLETE_COMMIT, PREPARE_COMMIT)  # the decision is made; markers may follow
_QUERY_ID: Final = "sql.streaming.queryId"
_BATCH_ID: Final = "streaming.sql.batchId"


def job_id() -> str:
    """The name of a batch write, created on the driver, so that all its tasks share it."""
    return uuid4().hex


def transactional_id(prefix: str, job: str, context: Any = None) -> str:
    """`prefix-query-batch-partition` for the running task; the `job` of a batch write replaces
    query and batch, also in `foreachBatch`, which may write several times in one batch.

    `context` is the task's `TaskContext`, by default the running one's.
    """
    task = context or TaskContext.get()
    name = job or f"{task.getLocalProperty(_QUERY_ID)}-{task.getLocalProperty(_BATCH_ID)}"
    return f"{prefix}-{name}-{task.partitionId()}"


def is_committed(cluster: Cluster, name: str) -> bool:
    """Whether the transaction was committed before. Raises ApiError."""
    return transaction_state(cluster, name) in _COMMITTED
