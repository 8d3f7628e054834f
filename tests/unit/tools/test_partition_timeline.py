"""The history of one partition, from log lines in the new and the old format."""

from __future__ import annotations

from kafkapy.tools.partition_timeline import Leadership, bar, duration_text, timeline


def merged(*messages: str) -> list[tuple[bytes, bytes, str]]:
    """Lines a second apart."""
    dates = [f"2024-01-31 12:00:{second:02},000" for second in range(len(messages))]
    return [
        (date.encode(), f"[{date}] INFO {text} (state.change.logger)".encode(), "log")
        for date, text in zip(dates, messages, strict=True)
    ]


C = "[Controller id=1 epoch=2] "
STATE = (
    "LeaderAndIsr(leader=0, leaderEpoch=0, isrWithBrokerEpoch=List(BrokerState(brokerId=0,"
    " brokerEpoch=-1), BrokerState(brokerId=2, brokerEpoch=-1)), leaderRecoveryState=RECOVERED,"
    " partitionEpoch=0)"
)


def test_the_new_era() -> None:
    found = timeline(
        merged(
            C + "Changed partition t-0 state from NonExistentPartition to NewPartition with"
            " assigned replicas 0,2",
            C + f"Changed partition t-0 from NewPartition to OnlinePartition with state {STATE}",
            "[Broker id=0] Leader t-0 with topic id Some(x) starts at leader epoch 0 from offset 0"
            " with partition epoch 0, high watermark 0, ISR [0,2], adding replicas []",
            C + "Changed partition t-0 state from OnlinePartition to OfflinePartition",
            C + "Partition t-0 state changed to (Leader:2,ISR:2,LeaderRecoveryState:RECOVERED,"
            "LeaderEpoch:1,ZkVersion:1,ControllerEpoch:1) after removing replica 0 from the ISR",
            C + "Changed state of replica 0 for partition t-0 from OnlineReplica to OfflineReplica",
        )
    )
    assert [(e.writer, e.leader, e.isr) for e in found.events] == [
        ("Controller 1 epoch 2", None, None),
        ("Controller 1 epoch 2", 0, "0,2"),
        ("Broker 0", 0, "0,2"),
        ("Controller 1 epoch 2", None, None),
        ("Controller 1 epoch 2", 2, "2"),
        ("Controller 1 epoch 2", None, None),
    ]
    assert [e.after_ms for e in found.events] == [0, 1000, 1000, 1000, 1000, 1000]
    assert found.events[3].message == (
        "Changed partition t-0 state from OnlinePartition to OfflinePartition"
    )
    assert found.leaderships == [
        Leadership("2024-01-31 12:00:01,000", "0", 2000),
        Leadership("2024-01-31 12:00:03,000", "none", 1000),
        Leadership("2024-01-31 12:00:04,000", "2", 1000),
    ]


def test_the_old_era() -> None:
    found = timeline(
        merged(
            "Controller 0 epoch 1 changed partition [t,0] from NewPartition to OnlinePartition with"
            " leader 3",
            "Broker 1 cached leader info (LeaderAndIsrInfo:(Leader:4,ISR:4,1,LeaderEpoch:0,"
            "ControllerEpoch:1),ReplicationFactor:2),AllReplicas:0,1) for partition [t,0]",
            "Controller 0 epoch 1 changed partition [t,0] from OnlinePartition to OnlinePartition"
            " with leader 4",
        )
    )
    assert [(e.writer, e.leader, e.isr) for e in found.events] == [
        ("Controller 0 epoch 1", 3, None),
        ("Broker 1", 4, "4,1"),
        ("Controller 0 epoch 1", 4, None),
    ]
    # What a broker has heard of is no election: the leader changes when the controller says so.
    assert [(row.leader, row.duration_ms) for row in found.leaderships] == [("3", 2000), ("4", 0)]


def follower(broker: int, leader: int, epoch: int) -> str:
    return (
        f"[Broker id={broker}] Follower t-0 starts at leader epoch {epoch} from offset 5 with"
        f" partition epoch 1 and high watermark 5. Current leader is {leader}. Previous leader"
        f" Some(0) and previous leader epoch was {epoch - 1}."
    )


def leader(broker: int, epoch: int) -> str:
    return f"[Broker id={broker}] Leader t-0 with topic id Some(x) starts at leader epoch {epoch}"


def test_the_log_of_one_broker_names_the_leader_that_it_follows() -> None:
    """The log of the next leader may be lost. The last leader seemed to lead to the end."""
    found = timeline(merged(leader(0, 3), follower(0, 2, 4), follower(0, 1, 5)))
    assert [event.leader for event in found.events] == [0, 2, 1]
    assert [(row.leader, row.duration_ms) for row in found.leaderships] == [
        *(("0", 1000), ("2", 1000), ("1", 0))
    ]


def test_a_follower_that_is_late_does_not_change_the_leader_back() -> None:
    offline = C + "Changed partition t-0 state from OnlinePartition to OfflinePartition"
    lines = (leader(0, 3), leader(1, 4), follower(2, 0, 3), follower(2, 1, 4), offline)
    found = timeline(merged(*lines, follower(3, 1, 4)))
    assert [row.leader for row in found.leaderships] == ["0", "1", "none"]


def test_nothing() -> None:
    assert timeline([]) == ([], [])


def test_durations_and_bars() -> None:
    texts = [duration_text(ms) for ms in (7, 1500, 61_000, 7_500_000)]
    assert texts == ["7 ms", "1.500 s", "1 min 1 s", "2 h 5 min"]
    assert [len(bar(ms, 100)) for ms in (0, 50, 100)] == [1, 20, 40]


def test_numbers_that_no_log_has_are_no_leaders() -> None:
    """`int` refuses thousands of digits: the command ended with a traceback."""
    digits = "1" * 5000
    (event,) = timeline(
        merged(f"[Broker id={digits}] Leader t-0 starts at leader epoch {digits}, leader={digits}")
    ).events
    assert (event.writer, event.leader) == ("", None)
