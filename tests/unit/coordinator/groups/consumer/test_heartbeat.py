"""ConsumerGroupHeartbeat: joining, staying, reconciling, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.common.consumer_protocol import BYTES_MAX
from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.config import GroupConfig
from kafkapy.coordinator.groups.consumer.consumer_group import ConsumerGroupState
from kafkapy.coordinator.groups.consumer.messages import ConsumerHeartbeat
from kafkapy.coordinator.groups.consumer.records import MemberState
from kafkapy.coordinator.groups.group import EMPTY
from tests.harness.cores.consumer_shell import ConsumerShell, FakeConsumer, settle
from tests.harness.cores.group_shell import SUBSCRIBED_T

JOIN: dict[str, Any] = {"rebalance_timeout_ms": 60_000, "subscribed_names": ["t"], "owned": {}}


def test_the_first_member_gets_everything_at_once() -> None:
    shell = ConsumerShell()
    result = FakeConsumer(shell, "m").beat()
    assert (result.member_id, result.member_epoch) == ("m", 1)
    assert result.heartbeat_interval_ms == 5_000
    assert result.assignment == {shell.t: frozenset({0, 1, 2, 3})}
    assert shell.consumers.state is ConsumerGroupState.STABLE


def test_a_changed_interval_is_told_with_the_next_heartbeat() -> None:
    shell = ConsumerShell()
    member = shell.consumer("m")
    group_id = shell.consumers.group_id
    shell.coordinator.configure_group(group_id, {"consumer.heartbeat.interval.ms": 7_000})
    assert member.beat().heartbeat_interval_ms == 7_000
    shell.coordinator.configure_group(group_id, {})
    assert member.beat().heartbeat_interval_ms == 5_000


def test_a_heartbeat_without_news_writes_nothing_and_tells_nothing() -> None:
    shell = ConsumerShell()
    member = shell.consumer("m")
    member.beat()
    written = len(shell.appends)
    result = member.beat()
    assert (result.member_epoch, result.assignment) == (1, None)
    assert len(shell.appends) == written


def test_a_partition_is_revoked_before_it_is_given() -> None:
    shell = ConsumerShell()
    first = shell.consumer("a")
    second = shell.consumer("b")
    assert second.partitions == set()
    assert second.epoch == 2
    told = first.beat()
    assert told.member_epoch == 1
    assert len(first.partitions) == 2
    assert shell.consumers.current["a"].state is MemberState.UNREVOKED_PARTITIONS
    second.beat()
    assert second.partitions == set()  # the first has not said that it is done
    first.beat()
    assert first.epoch == 2
    second.beat()
    assert first.partitions | second.partitions == {("t", n) for n in range(4)}
    assert shell.consumers.state is ConsumerGroupState.STABLE


def test_the_states_of_a_group() -> None:
    shell = ConsumerShell()
    first = shell.consumer("a")
    shell.consumer("b")
    assert shell.consumers.state is ConsumerGroupState.RECONCILING
    first.leave()
    assert shell.consumers.state is ConsumerGroupState.ASSIGNING


def test_a_topic_that_is_made_or_grows_makes_a_new_epoch() -> None:
    shell = ConsumerShell()
    member = shell.consumer("m", topics=("t", "later"))
    shell.topics.grow("t", 6)
    member.beat()
    assert member.epoch == 2
    shell.topics.create("later", 1)
    member.beat()
    assert member.epoch == 3
    assert len(member.partitions) == 7
    shell.topics.create("another", 1)
    member.beat()
    assert member.epoch == 3


def test_a_deleted_topic_is_revoked() -> None:
    shell = ConsumerShell()
    shell.topics.create("u", 2)
    member = shell.consumer("m", topics=("t", "u"))
    shell.topics.delete("u")
    settle([member], 3)
    assert member.partitions == {("t", n) for n in range(4)}
    assert member.epoch == 2


def test_a_new_subscription_replaces_the_old_one() -> None:
    shell = ConsumerShell()
    shell.topics.create("u", 2)
    member = shell.consumer("m")
    member.topics, member.is_synchronized = ("u",), False
    settle([member], 4)
    assert member.partitions == {("u", 0), ("u", 1)}


def test_a_regular_expression_matches_visible_topics_only() -> None:
    shell = ConsumerShell()
    for name in ("ta", "tb", "secret"):
        shell.topics.create(name, 1)
    fields = {**JOIN, "subscribed_names": None, "subscribed_regex": "t.|secret"}
    token = shell.beat("m", 0, **fields, is_visible=lambda name: name != "secret")
    assigned = shell.replies[token].assignment
    assert {shell.topics.name_of(topic) for topic in assigned} == {"ta", "tb"}


def test_a_topic_that_matches_later_is_found() -> None:
    shell = ConsumerShell()
    member = shell.consumer("m", topics=None, regex="t.*")
    shell.topics.create("tt", 1)
    member.beat()
    assert ("tt", 0) not in member.partitions  # topics are matched every 10 s at most
    shell.advance(10_000)
    settle([member], 2)
    assert ("tt", 0) in member.partitions
    shell.topics.delete("tt")
    shell.advance(10_000)
    settle([member], 3)
    assert member.partitions == {("t", n) for n in range(4)}


def test_a_member_gets_partitions_of_a_topic_that_its_regular_expression_matches_late() -> None:
    shell = ConsumerShell()
    named = shell.consumer("named", topics=("u",))
    matching = shell.consumer("matching", topics=None, regex="u.*")
    shell.topics.create("u", 4)
    settle([named, matching])
    assert len(named.partitions) == 4  # the other member's topics were matched just before
    shell.advance(10_000)
    settle([named, matching])
    assert len(named.partitions) == len(matching.partitions) == 2


def test_rights_are_asked_again_after_ten_minutes() -> None:
    shell = ConsumerShell()
    member = shell.consumer("m", topics=None, regex=".*")
    for _ in range(20):
        shell.advance(30_000)
        member.beat()
    shell.beat("m", member.epoch, is_visible=lambda name: False)
    assert shell.consumers.regexes[".*"].topics == {"t"}
    for _ in range(19):
        shell.advance(30_000)
        member.beat()
    shell.advance(30_000)
    shell.beat("m", member.epoch, is_visible=lambda name: False)
    assert shell.consumers.regexes[".*"].topics == set()


def test_most_members_choose_the_assignor() -> None:
    shell = ConsumerShell()
    shell.topics.create("u", 4)
    members = [shell.consumer(m, topics=("t", "u"), assignor="range") for m in "ab"]
    settle(members)
    assert {index for _, index in members[0].partitions} == {0, 1}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"member_id": ""}, "MemberId can't be empty."),
        ({"group_id": " "}, "GroupId can't be empty."),
        ({"instance_id": ""}, "InstanceId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        (
            {"rebalance_timeout_ms": -1},
            "RebalanceTimeoutMs must be provided in first request.",
        ),
        ({"owned": None}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"subscribed_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when"
            " (re-)joining.",
        ),
        ({"member_epoch": -2}, "InstanceId can't be null."),
        ({"member_epoch": -3}, "MemberEpoch is invalid."),
        ({"member_id": "m" * 40_000}, "MemberId and SubscribedTopicRegex have 32767 bytes"),
    ],
)
def test_what_is_not_in_order_is_an_invalid_request(fields: dict[str, Any], message: str) -> None:
    shell = ConsumerShell()
    who = {"group_id": "g", "member_id": "m", "member_epoch": 0}
    heartbeat = ConsumerHeartbeat(**(who | JOIN | fields))
    result = shell.ask(shell.coordinator.consumer_heartbeat, heartbeat)
    assert result.error is ErrorCode.INVALID_REQUEST
    assert result.message.startswith(message)
    assert shell.appends == []


def test_an_unknown_assignor_is_named() -> None:
    shell = ConsumerShell()
    result = shell.replies[shell.beat("m", 0, **JOIN, server_assignor="sticky")]
    assert result.error is ErrorCode.UNSUPPORTED_ASSIGNOR
    assert result.message == (
        "ServerAssignor sticky is not supported. Supported assignors: uniform, range."
    )


def test_a_bad_regular_expression_changes_nothing() -> None:
    shell = ConsumerShell()
    error = shell.refused("m", 0, **{**JOIN, "subscribed_regex": "t("})
    assert error is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert shell.appends == []


@pytest.mark.parametrize("names", [["n" * 7] * 2**17, [""] * 2**20], ids=["long", "many"])
def test_topic_names_beyond_the_limit_are_refused(names: list[str]) -> None:
    """To sort a hundred megabytes of names stopped the coordinator for seconds."""
    shell = ConsumerShell()
    fields = {**JOIN, "subscribed_names": [*names, ""]}
    assert shell.refused("m", 0, **fields) is ErrorCode.INVALID_REQUEST
    assert shell.refused("m", 0, **{**fields, "subscribed_names": names}) is ErrorCode.NONE


def test_version_0_gets_its_member_id() -> None:
    shell = ConsumerShell()
    result = shell.replies[shell.beat("", 0, **JOIN, requires_member_id=False)]
    assert result.error is ErrorCode.NONE
    assert list(shell.consumers.members) == [result.member_id]
    assert shell.refused("", 1, requires_member_id=False) is ErrorCode.INVALID_REQUEST


def test_a_full_group_takes_nobody_in() -> None:
    shell = ConsumerShell(GroupConfig(1, group_consumer_max_size=1))
    member = shell.consumer("m")
    assert shell.refused("n", 0, **JOIN) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert member.beat().error is ErrorCode.NONE


def test_who_is_not_a_member() -> None:
    shell = ConsumerShell()
    assert shell.refused("m", 1) is ErrorCode.GROUP_ID_NOT_FOUND
    shell.consumer("m")
    assert shell.refused("n", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert shell.refused("m", 1, instance_id="i") is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_epoch_of_the_future_or_the_past_is_fenced() -> None:
    shell = ConsumerShell()
    first = shell.consumer("a")
    settle([first, shell.consumer("b")])
    epoch = first.epoch
    assert shell.refused("a", epoch + 1) is ErrorCode.FENCED_MEMBER_EPOCH
    assert shell.refused("a", epoch - 1) is ErrorCode.FENCED_MEMBER_EPOCH
    assert first.beat().error is ErrorCode.NONE


def test_a_member_that_missed_an_answer_goes_on() -> None:
    shell = ConsumerShell()
    first = shell.consumer("a")
    second = shell.consumer("b")
    first.beat()
    first.beat(is_lost=True)
    assert shell.consumers.current["a"].member_epoch == 2
    assert first.epoch == 1
    result = first.beat()
    assert (result.error, result.member_epoch) == (ErrorCode.NONE, 2)
    settle([first, second])
    assert len(first.partitions) == len(second.partitions) == 2


def test_a_member_that_missed_an_answer_may_not_own_more_than_it_was_given() -> None:
    shell = ConsumerShell()
    first = shell.consumer("a")
    everything = first.owned
    shell.consumer("b")
    first.beat()
    first.beat(is_lost=True)
    error = shell.refused("a", 1, owned=everything)
    assert error is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_member_that_forgot_joins_again() -> None:
    shell = ConsumerShell()
    member = shell.consumer("m")
    again = FakeConsumer(shell, "m")
    assert again.beat().assignment == member.owned
    assert again.epoch == member.epoch


def test_a_classic_group_beyond_the_limit_is_not_upgraded() -> None:
    """To read the subscription of one member could stop the coordinator for seconds."""
    shell = ConsumerShell()
    half = SUBSCRIBED_T.ljust(BYTES_MAX // 2, b"\0")
    for upgraded, long in ((False, half + b"\0"), (True, half)):
        members = [shell.join_new(protocols=[("range", each)])[0] for each in (half, long)]
        shell.advance(3_000)
        result = shell.replies[shell.beat("m", 0, **JOIN)]
        assert (result.error is ErrorCode.NONE) is upgraded
        assert ("exceeds 1048576 bytes" in (result.message or "")) is not upgraded
        shell.leave(*members)


def test_an_empty_classic_group_becomes_a_consumer_group_and_keeps_its_offsets() -> None:
    shell = ConsumerShell()
    member_id, _ = shell.join_new()
    shell.advance(6_000)
    shell.sync(member_id, 1, {member_id: b""})
    shell.commit(7, member_id=member_id, generation_id=1)
    shell.leave(member_id)
    shell.consumer("m")
    for coordinator in (shell.coordinator, shell.replayed()):
        group = coordinator._core.registry.find("g")
        assert group is not None
        assert (group.state, group.generation_id) == (EMPTY, 0)
        assert group.consumer is not None
        assert [*group.consumer.members] == ["m"]
        assert len(group.offsets.committed) == 1


def test_a_partition_of_the_log_that_is_not_here() -> None:
    shell = ConsumerShell()
    shell.coordinator.unload(0)
    assert shell.refused("m", 0, **JOIN) is ErrorCode.NOT_COORDINATOR
    shell.coordinator.start_loading(0, 9)
    assert shell.refused("m", 0, **JOIN) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_a_broker_that_does_not_know_its_cluster_yet_takes_nothing_away() -> None:
    shell = ConsumerShell()
    member = shell.consumer("m")
    shell.topics.is_known = False
    shell.topics.version += 1
    known, shell.topics.known = shell.topics.known, {}
    assert shell.refused("m", 1) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    shell.topics.is_known, shell.topics.known = True, known
    assert member.beat().error is ErrorCode.NONE
    assert len(member.partitions) == 4


# Static members.


def test_a_static_member_that_comes_back_has_its_partitions() -> None:
    shell = ConsumerShell()
    first = shell.consumer("a1", instance_id="ia")
    second = shell.consumer("b1", instance_id="ib")
    settle([first, second])
    had, epoch = first.partitions, shell.consumers.epoch
    assert first.leave(-2).member_epoch == -2
    second.beat()
    assert shell.consumers.epoch == epoch
    back = shell.consumer("a2", instance_id="ia")
    assert back.partitions == had
    assert shell.consumers.epoch == epoch
    assert [*shell.consumers.members] == ["b1", "a2"]
    assert shell.consumers.static_members == {"ia": "a2", "ib": "b1"}
    assert shell.refused("a1", epoch, instance_id="ia") is ErrorCode.FENCED_INSTANCE_ID


def test_an_instance_that_is_here_is_not_replaced() -> None:
    shell = ConsumerShell()
    shell.consumer("a1", instance_id="ia")
    assert shell.refused("a2", 0, **JOIN, instance_id="ia") is ErrorCode.UNRELEASED_INSTANCE_ID


def test_a_static_member_that_does_not_come_back_is_removed() -> None:
    shell = ConsumerShell()
    first = shell.consumer("a1", instance_id="ia")
    second = shell.consumer("b1")
    settle([first, second])
    first.leave(-2)
    for _ in range(9):
        shell.advance(5_000)
        second.beat()
    settle([second], 3)
    assert len(second.partitions) == 4


def test_the_first_assignment_of_a_replaced_member_survives_a_failover() -> None:
    shell = ConsumerShell()
    first = shell.consumer("a1", instance_id="ia")
    had = first.partitions
    first.leave(-2)
    shell.fail_over()
    assert shell.consumer("a2", instance_id="ia").partitions == had
