"""Executing, verifying and cancelling reassignments."""

from __future__ import annotations

import pytest

from kafkapy.admin.log_dirs import Replica
from kafkapy.admin.reassignments import ReassignmentFailed
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
)
from kafkapy.tools.reassign.partition_files import ReassignmentFile
from kafkapy.tools.reassign.reassignment import (
    begin,
    begin_log_dir_moves,
    cancel_errors,
    cancel_log_dir_moves,
    cancel_moves,
    check_replication_factors,
    current_replicas,
    log_dir_errors,
    log_dir_moves,
    prepare,
    verify,
)
from kafkapy.tools.reassign.states import LogDirState
from tests.harness.scripted.moving_cluster import MovingCluster
from tests.harness.scripted.scripted_broker import metadata

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
R01 = Replica("t", 0, 1)


def connected(moving: MovingCluster) -> Cluster:
    return Cluster("b:9001", connector=moving.scripted.connect)


def file(
    *rows: tuple[TopicPartition, tuple[int, ...]], log_dir: str | None = None
) -> ReassignmentFile:
    return ReassignmentFile(rows, {} if log_dir is None else {R01: log_dir})


def test_what_is_about_to_be_done() -> None:
    moving = MovingCluster({"t": [[1, 2], [2, 3]]})
    plan = prepare(connected(moving), file((T0, (3, 2))), additional=False)
    assert plan.current == {T0: (1, 2)}
    assert plan.targets == {T0: (3, 2)}
    assert plan.live == {1, 2, 3, 4}
    assert moving.running == {}


def test_another_number_of_replicas_is_refused_before_anything_moves() -> None:
    """Also while a move adds replicas, which do not count."""
    moving = MovingCluster({"t": [[1, 2], [2, 3]]})
    begin(connected(moving), {T1: (3, 1)})
    rows = file((T0, (3,)), (T1, (2, 1)))
    plan = prepare(connected(moving), rows, additional=True)
    with pytest.raises(ReassignmentFailed) as refused:
        check_replication_factors(plan)
    assert str(refused.value) == (
        "Error reassigning partition(s):\nt-0: The replication factor is changed from 2 to 1"
    )


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ((T0, (1, 9)), "Unknown broker id 9"),
        ((T0, (1, 4)), "Unknown broker id 4"),
        (
            (TopicPartition("no", 0), (1,)),
            "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: Topic no not found.",
        ),
        (
            (TopicPartition("t", 9), (1,)),
            "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: Unable to find"
            " partition: t-9",
        ),
    ],
)
def test_what_the_cluster_does_not_have(
    asked: tuple[TopicPartition, tuple[int, ...]], said: str
) -> None:
    moving = MovingCluster({"t": [[1, 2]]}, down=[4])
    with pytest.raises(ApiError) as refused:
        prepare(connected(moving), file(asked), additional=False)
    assert refused.value.message == said


def test_another_move_is_an_obstacle_unless_said_otherwise_or_it_is_the_same() -> None:
    moving = MovingCluster({"t": [[1, 2], [2, 3]]})
    moving.begin(T1, [2, 4], 99)
    for asked, resume in ((file((T0, (3, 2))), True), (file((T1, (2, 4))), False)):
        with pytest.raises(ReassignmentFailed, match="existing partition assignment"):
            prepare(connected(moving), asked, additional=False, resume=resume)
    prepare(connected(moving), file((T0, (3, 2))), additional=True)
    prepare(connected(moving), file((T1, (2, 4))), additional=False, resume=True)


def test_refusals_are_told_partition_by_partition() -> None:
    moving = MovingCluster({"t": [[1, 2], [2, 3]]})
    moving.refuse[T1] = (ErrorCode.INVALID_REPLICA_ASSIGNMENT, "not alive")
    with pytest.raises(ReassignmentFailed) as refused:
        begin(connected(moving), {T0: (3, 2), T1: (9,)})
    assert str(refused.value) == "Error reassigning partition(s):\nt-1: not alive"
    assert list(moving.running) == [T0]


def test_a_directory_move_is_asked_for_until_the_replica_is_there() -> None:
    moving = MovingCluster({"t": [[1, 2]]})
    moving.log_dir_errors[T0, 1] = [ErrorCode.REPLICA_NOT_AVAILABLE] * 2
    assert begin_log_dir_moves(connected(moving), {R01: "/e"}, 60_000) == {}
    assert moving.places[T0, 1] == ("/d", "/e")


def test_a_replica_that_never_comes_is_named_after_the_timeout() -> None:
    moving = MovingCluster({"t": [[1, 2]]})
    moving.log_dir_errors[T0, 1] = [ErrorCode.REPLICA_NOT_AVAILABLE] * 1000
    failed = begin_log_dir_moves(connected(moving), {R01: "/e"}, 150)
    assert {r: e.code for r, e in failed.items()} == {R01: ErrorCode.REPLICA_NOT_AVAILABLE}


def test_a_directory_that_is_not_there_is_an_error_at_once() -> None:
    moving = MovingCluster({"t": [[1, 2]]})
    moving.log_dir_errors[T0, 1] = [ErrorCode.LOG_DIR_NOT_FOUND]
    failed = begin_log_dir_moves(connected(moving), {R01: "/e"}, 60_000)
    assert log_dir_errors(failed) == (
        "Error: Failed to alter dir for t-0-1: org.apache.kafka.common.errors."
        "LogDirNotFoundException: The user-specified log directory is not found in the broker"
        " config."
    )


def test_a_broker_that_does_not_answer_is_named_and_the_others_begin() -> None:
    moving = MovingCluster({"t": [[2, 1]]})
    moving.scripted.refuse = {9002}
    r02 = Replica("t", 0, 2)
    failed = begin_log_dir_moves(connected(moving), {r02: "/e", R01: "/e"}, 0)
    assert {r: e.code for r, e in failed.items()} == {r02: ErrorCode.NETWORK_EXCEPTION}
    assert moving.places == {(T0, 1): ("/d", "/e")}


def test_verify_tells_what_moves_and_whether_all_is_over() -> None:
    moving = MovingCluster({"t": [[1, 2], [2, 3]]})
    moving.begin(T1, [2, 4], 1)
    asked = file((T0, (1, 2)), (T1, (2, 4)), log_dir="/d")
    first = verify(connected(moving), asked)
    assert [state.is_moving for state in first.partitions] == [False, True]
    assert (first.is_over, first.is_complete) == (False, False)
    second = verify(connected(moving), asked)
    assert (second.is_over, second.is_complete) == (True, True)


def test_a_broker_that_has_not_seen_the_end_of_a_move_is_asked_again() -> None:
    """Verify reported that the replicas were others than those of the file."""
    moving = MovingCluster({"t": [[1, 2], [2, 3]]})
    moving.begin(T1, [2, 4], 1)
    moving.stale_answers = 3
    moving.scripted.script[ApiKey.LIST_PARTITION_REASSIGNMENTS](
        ListPartitionReassignmentsRequest(), 9001
    )
    found = verify(connected(moving), file((T0, (1, 2)), (T1, (2, 4))))
    assert (found.is_over, found.is_complete) == (True, True)


def test_replicas_that_stay_others_than_those_of_the_file_are_reported() -> None:
    found = verify(connected(MovingCluster({"t": [[1, 2]]})), file((T0, (2, 3))))
    assert (found.is_over, found.is_complete) == (True, False)


def test_a_topic_that_one_may_not_see_is_not_a_topic_without_replicas() -> None:
    """Verify called the moves cancelled, and execute called the topic unknown."""
    moving = MovingCluster({"t": [[1, 2]]})
    hidden = metadata(brokers={1: 9001}, errors={"t": ErrorCode.TOPIC_AUTHORIZATION_FAILED})
    moving.scripted.script[ApiKey.METADATA] = hidden
    for call in (
        lambda: verify(connected(moving), file((T0, (1, 2)))),
        lambda: prepare(connected(moving), file((T0, (1,))), additional=False),
    ):
        with pytest.raises(ApiError, match="Topic t: Topic authorization failed") as refused:
            call()
        assert refused.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_a_move_elsewhere_keeps_it_from_being_over() -> None:
    moving = MovingCluster({"t": [[1, 2]], "u": [[1]]})
    moving.begin(TopicPartition("u", 0), [2], 99)
    found = verify(connected(moving), file((T0, (1, 2))))
    assert (found.is_over, found.is_complete) == (False, True)


def test_a_broker_that_is_down_is_not_waited_for() -> None:
    moving = MovingCluster({"t": [[1, 2]]}, down=[1])
    cluster = Cluster("b:9002", connector=moving.scripted.connect)
    (move,) = log_dir_moves(cluster, {R01: "/e"})
    assert move.state is LogDirState.NO_BROKER


def test_cancel_stops_what_moves_and_brings_directories_back() -> None:
    moving = MovingCluster({"t": [[1, 2], [2, 3]]})
    moving.begin(T0, [1, 2, 4], 99)  # only adds: Kafka 3.7 to 3.9 miss that
    moving.places[T0, 1] = ("/d", "/e")
    cluster = connected(moving)
    assert cancel_moves(cluster, [T0, T1]) == ([T0], {})
    assert cancel_log_dir_moves(cluster, {R01: "/e"}) == ({R01: "/d"}, {}, [])
    assert moving.running == {}
    assert moving.places[T0, 1] == ("/d", None)
    assert cancel_moves(cluster, [T0]) == ([], {})
    assert cancel_log_dir_moves(cluster, {R01: "/e"}) == ({}, {}, [])


def test_cancel_tells_what_it_could_not_stop() -> None:
    moving = MovingCluster({"t": [[1, 2], [2, 3]]})
    moving.begin(T0, [1, 4], 99)
    moving.begin(T1, [2, 4], 99)
    moving.refuse[T0] = (ErrorCode.NOT_CONTROLLER + 1000, "odd")
    cancelled, refused = cancel_moves(connected(moving), [T0, T1])
    assert cancelled == [T1]
    assert cancel_errors(refused) == "Error cancelling partition reassignment for:\nt-0: odd"


def test_what_is_not_there_has_no_replicas() -> None:
    moving = MovingCluster({"t": [[1, 2]]})
    asked = [T0, TopicPartition("t", 9), TopicPartition("no", 0)]
    assert current_replicas(connected(moving), asked) == {T0: (1, 2)}
