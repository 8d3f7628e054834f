"""Which partition a line is about, in both eras, and when it was written."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.tools.state_change_lines import LineFilter, TimeRange, parse_time, partitions_in

OLD = b"[2013-05-01 12:00:00,003] TRACE "
CONTROLLER = b"[2024-01-31 12:00:00,123] INFO [Controller id=1 epoch=2] "
MANY_DIGITS = b"1" * 5000  # `int` refuses them: the command ended with a traceback
BROKER = b"[2024-01-31 12:00:00,123] INFO [Broker id=1] "


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (OLD + b"Controller 0 epoch 1 changed partition [t,1] from A to B", [(b"t", 1)]),
        (OLD + b"Broker 0 handling stop replica for partition [a-b.c_d,  12]", [(b"a-b.c_d", 12)]),
        (OLD + b"Controller 0 epoch 1 received response R for a request sent to broker 1", []),
        (OLD + b"Broker 0 deleted partition t-3 from metadata cache in response", [(b"t", 3)]),
        (CONTROLLER + b"Changed partition a-b-0 state from X to Y", [(b"a-b", 0)]),
        (CONTROLLER + b"Changed partition t-0 from X to Y with state isr=[0, 1]", [(b"t", 0)]),
        (CONTROLLER + b"Partition t-4 state changed to (Leader:0,ISR:0", [(b"t", 4)]),
        (CONTROLLER + b"Sent to leader 1 for partition being reassigned t-7", [(b"t", 7)]),
        (CONTROLLER + b"Sending become-leader LeaderAndIsr request to broker 1 for partition t-7",
         [(b"t", 7)]),
        (CONTROLLER + b"Mark replicas a-0,b-1 on broker 2 as offline", [(b"a", 0), (b"b", 1)]),
        (CONTROLLER + b"Sending UpdateMetadata request to brokers HashSet(0, 1) for 3 partitions",
         []),
        (BROKER + b"Leader t-0 with topic id Some(x) starts at leader epoch 0, ISR [0,1], adding",
         [(b"t", 0)]),
        (BROKER + b"Follower t.u-10 starts at leader epoch 0", [(b"t.u", 10)]),
        (BROKER + b"Skipped the become-leader state change for t-1 with topic id x since [0,1]",
         [(b"t", 1)]),
        (BROKER + b"Received LeaderAndIsr request LeaderAndIsrPartitionState(topicName='t',"
         b" partitionIndex=5, isr=[0,1])", [(b"t", 5)]),
        (BROKER + b"Add 2 partitions and deleted 0 partitions [0,1]", []),
        (OLD + b"Controller 0 epoch 1 changed partition [t," + MANY_DIGITS + b"] from A to B", []),
        (BROKER + b"Follower t-" + MANY_DIGITS + b" starts at leader epoch 0", []),
        (BROKER + b"LeaderAndIsrPartitionState(topicName='t', partitionIndex=" + MANY_DIGITS, []),
        (CONTROLLER + b"Mark replicas a-0,b-" + MANY_DIGITS + b" as offline", [(b"a", 0)]),
    ],
)  # fmt: skip
def test_partitions(line: bytes, expected: list[tuple[bytes, int]]) -> None:
    assert partitions_in(line) == expected


def test_times_are_lenient_as_in_java() -> None:
    assert parse_time("2024-01-31 00:00:00,000") - parse_time("2024-01-30 23:59:59,999") == 1
    assert parse_time("2023-13-01 24:60:60,1000") == parse_time("2024-01-02 01:01:01,000")
    assert parse_time("2024-03-00 00:00:00,000") == parse_time("2024-02-29 00:00:00,000")
    assert parse_time('"2024-01-31 12:00:00,5" and more') == parse_time("2024-1-31 12:0:0,5")
    assert parse_time("0000-00-00 00:00:00,000") < parse_time("0000-01-01 00:00:00,000")
    digits = MANY_DIGITS.decode() + "-01-31 12:00:00,000"
    for text in ("2024-01-31 12:00:00", "yesterday", "2024-01-31T12:00:00,000", digits):
        with pytest.raises(ConfigError, match="Unparseable date"):
            parse_time(text)


def test_both_ends_are_in_the_range() -> None:
    times = TimeRange("2024-01-31 12:00:00,001", "2024-01-31 12:01:00,002")
    dates = [b"12:00:00,000", b"12:00:00,001", b"12:01:00,002", b"12:01:00,003"]
    held = [times.contains(b"2024-01-31 " + date) for date in dates]
    assert held == [False, True, True, False]


def test_what_is_wanted() -> None:
    line = OLD + b"changed partition [t,1] from A to B"
    date = b"2013-05-01 12:00:00,003"
    assert LineFilter().date_of(line) == date
    assert LineFilter(topic="t").date_of(line) == date
    assert LineFilter(topic="t", partitions=[0, 1]).date_of(line) == date
    assert LineFilter(topic="t", partitions=[0]).date_of(line) is None
    assert LineFilter(topic="T").date_of(line) is None
    assert LineFilter(TimeRange(end="2013-05-01 12:00:00,002")).date_of(line) is None
    assert LineFilter().date_of(b"\tat x.y(Z.java:1) [t,1]") is None
    assert LineFilter().date_of(OLD + b"no partition") is None
    beyond = line.replace(b"2013-05-01", b"9999-12-32")
    assert LineFilter().date_of(beyond) is None
    offline = CONTROLLER + b"Mark replicas a-0,b-1 on broker 2 as offline"
    assert LineFilter(topic="b").date_of(offline) is not None
