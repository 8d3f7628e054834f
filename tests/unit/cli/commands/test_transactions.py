"""`kafkapy transactions`: verbs, flags, the tab table; answers are compared with Kafka's tool."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.api_keys import API_VERSIONS, ApiKey
from kafkapy.protocol.messages import describe_producers as producers
from kafkapy.protocol.messages.list_transactions import ListTransactionsResponse, TransactionState
from tests.harness.scripted.cli import kafkapy
from tests.harness.scripted.scripted_broker import ScriptedCluster, metadata

BOOTSTRAP = ("--bootstrap-server", "b:1")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["nonsense"],
            "invalid choice: 'nonsense' (choose from list, describe, describe-producers",
        ),
        (["describe"], "Missing required argument --transactional-id"),
        (["forceTerminateTransaction"], "Missing required argument --transactional-id"),
        (["list", "--transactional-id-pattern", "a("], "a( is an invalid regex."),
        (["describe-producers", "--topic", "t"], "Missing required argument --partition"),
        (["abort", "--topic", "t", "--partition", "0"], "must be identified either with --start-"),
        (["find-hanging"], "requires either --topic or --broker-id to limit the scope"),
        (["find-hanging", "--broker-id", "1", "--partition", "0"], "--partition argument requires"),
    ],
)
def test_wrong_words(words: list[str], said: str) -> None:
    done = kafkapy("transactions", *BOOTSTRAP, *words)
    assert said in done.stderr
    assert (done.stdout, done.status) == ("", 1)


def test_cells_end_with_tabs() -> None:
    state = TransactionState(transactional_id="tx", producer_id=7, transaction_state="Ongoing")
    answer = ListTransactionsResponse(transaction_states=[state])
    cluster = ScriptedCluster({ApiKey.METADATA: metadata(), ApiKey.LIST_TRANSACTIONS: answer})
    done = kafkapy("transactions", *BOOTSTRAP, "list", cluster=cluster)
    assert done.stdout == (
        "TransactionalId\tCoordinator\tProducerId\tTransactionState\t\n"
        "tx             \t1          \t7         \tOngoing         \t\n"
    )
    done = kafkapy("transactions", *BOOTSTRAP, "list", "--output", "json", cluster=cluster)
    assert done.data == [
        {
            "transactional_id": "tx",
            "coordinator": 1,
            "producer_id": 7,
            "transaction_state": "Ongoing",
        }
    ]


def test_a_broker_without_transactions_is_one_line() -> None:
    versions = {k: (v.first, v.last) for k, v in API_VERSIONS.items() if v.first == 0}
    del versions[ApiKey.LIST_TRANSACTIONS]
    cluster = ScriptedCluster({ApiKey.METADATA: metadata()}, versions)
    done = kafkapy("transactions", *BOOTSTRAP, "list", cluster=cluster)
    assert done.stderr == "The broker does not support LIST_TRANSACTIONS\n"
    assert done.status == 1


def test_a_transaction_that_hangs_only_on_the_named_broker_is_found() -> None:
    """The leader has no open transaction: a search at the leader would report a healthy broker."""
    topics = {"t": {0: (2, [1, 2], [1, 2])}}

    def describe(request: Any, port: int) -> producers.DescribeProducersResponse:
        hanging = producers.ProducerState(
            producer_id=7, last_timestamp=0, current_txn_start_offset=42
        )
        states = [hanging] if port == 9001 else []
        partition = producers.PartitionResponse(active_producers=states)
        topic = producers.TopicResponse(name="t", partitions=[partition])
        return producers.DescribeProducersResponse(topics=[topic])

    cluster = ScriptedCluster(
        {
            ApiKey.METADATA: metadata(topics, brokers={1: 9001, 2: 9002}),
            ApiKey.DESCRIBE_PRODUCERS: describe,
            ApiKey.LIST_TRANSACTIONS: ListTransactionsResponse(),
        }
    )
    words = ("find-hanging", "--broker-id", "1", "--output", "json")
    (row,) = kafkapy("transactions", *BOOTSTRAP, *words, cluster=cluster).data
    assert (row["topic"], row["producer_id"], row["start_offset"]) == ("t", 7, 42)


@pytest.mark.parametrize("words", [("--partition", "99"), ("--partition", "0", "--broker-id", "3")])
def test_a_mistyped_partition_or_broker_is_not_reported_as_free_of_hanging_transactions(
    words: tuple[str, ...],
) -> None:
    topics = {"t": {0: (2, [1, 2], [1, 2])}}
    partition = producers.PartitionResponse(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    topic = producers.TopicResponse(name="t", partitions=[partition])
    cluster = ScriptedCluster(
        {
            ApiKey.METADATA: metadata(topics, brokers={1: 9001, 2: 9002, 3: 9003}),
            ApiKey.DESCRIBE_PRODUCERS: producers.DescribeProducersResponse(topics=[topic]),
        }
    )
    done = kafkapy(
        "transactions", *BOOTSTRAP, "find-hanging", "--topic", "t", *words, cluster=cluster
    )
    assert "Failed to describe producers for partition t-" in done.stderr
    assert (done.stdout, done.status) == ("", 1)
