"""Topics, regular expressions, epochs and targets of a group."""

from __future__ import annotations

from kafkapy.coordinator.config import GroupConfig
from kafkapy.coordinator.groups.consumer.consumer_group import ConsumerGroup
from kafkapy.coordinator.groups.consumer.group_epoch import (
    MATCHES_AT_ONCE,
    assignor_name,
    bump_epoch,
    delete_unused_regexes,
    refresh_regexes,
    refresh_topics,
    update_target,
)
from kafkapy.coordinator.groups.consumer.log_writes import Changes
from kafkapy.coordinator.groups.consumer.messages import all_topics_visible
from kafkapy.coordinator.groups.consumer.records import (
    ConsumerKey,
    MemberMetadata,
    RecordType,
    read_consumer_key,
)
from tests.harness.cores.consumer_shell import ConsumerShell


def changes_with(*members: MemberMetadata) -> Changes:
    group = ConsumerGroup("g")
    for number, member in enumerate(members):
        group.apply(ConsumerKey(RecordType.MEMBER, "g", f"m{number}"), member)
    return Changes(group)


def member(*names: str, regex: str | None = None, assignor: str | None = None) -> MemberMetadata:
    return MemberMetadata(None, None, "c", "/h", names, regex, 1, assignor)


def kinds(changes: Changes) -> list[RecordType]:
    keys = map(read_consumer_key, changes.records)
    return [key.type for key in keys if key is not None]


def test_topics_are_written_when_they_differ() -> None:
    core = ConsumerShell().coordinator._core
    changes = changes_with(member("t", "missing"))
    assert refresh_topics(core, changes)
    assert [*changes.group.topics] == ["t"]
    assert not refresh_topics(core, changes)
    assert kinds(changes) == [RecordType.TOPICS]
    assert changes.group.metadata_version == core.topics.version


def test_a_regular_expression_is_matched_once_for_all_its_members() -> None:
    core = ConsumerShell().coordinator._core
    changes = changes_with(member(regex="t.*"), member(regex="t.*"))
    assert refresh_regexes(core, changes, "t.*", all_topics_visible)
    assert changes.group.subscribed_topics == {"t"}
    assert not refresh_regexes(core, changes, "t.*", all_topics_visible)


def test_a_heartbeat_matches_few_of_many_regular_expressions() -> None:
    """The new one first, then those that were matched longest ago. The others stay as they are."""
    shell = ConsumerShell()
    core = shell.coordinator._core
    for number in range(MATCHES_AT_ONCE // 2 - 1):
        shell.topics.create(f"u{number}", 1)
    regexes = [f"t{number}?" for number in range(5)]
    changes = changes_with(*(member(regex=each) for each in regexes))
    for regex in reversed(regexes):
        assert refresh_regexes(core, changes, regex, all_topics_visible)
        shell.clock.now_ms += 1
    shell.clock.now_ms += core.config.group_consumer_regex_refresh_interval_ms
    matched: list[list[str]] = []
    for requested in ("u0", None, None, None):
        few = Changes(changes.group)
        assert refresh_regexes(core, few, requested, all_topics_visible) is (requested == "u0")
        keys = [key for key in map(read_consumer_key, few.records) if key is not None]
        matched.append([key.name for key in keys])
        assert changes.group.subscribed_topics == {"t"}, "none is forgotten"
    assert matched == [["u0", "t4?"], ["t3?", "t2?"], ["t1?", "t0?"], []]


def test_a_regular_expression_is_matched_with_any_number_of_topics() -> None:
    shell = ConsumerShell()
    for number in range(MATCHES_AT_ONCE + 1):
        shell.topics.create(f"u{number}", 1)
    core = shell.coordinator._core
    changes = changes_with(member(regex="t.*"), member(regex="u.*"))
    refresh_regexes(core, changes, "t.*", all_topics_visible)
    refresh_regexes(core, changes, "u.*", all_topics_visible)
    assert len(changes.group.subscribed_topics) == MATCHES_AT_ONCE + 2


def test_one_that_this_broker_cannot_read_matches_nothing() -> None:
    core = ConsumerShell().coordinator._core
    changes = changes_with(member(regex="t("))
    assert refresh_regexes(core, changes, "t(", all_topics_visible)
    assert changes.group.subscribed_topics == frozenset()


def test_one_that_nobody_uses_is_deleted() -> None:
    core = ConsumerShell().coordinator._core
    changes = changes_with(member("t"))
    refresh_regexes(core, changes, "t.*", all_topics_visible)
    delete_unused_regexes(changes)
    assert changes.group.regexes == {}


def test_a_target_is_computed_for_the_groups_epoch() -> None:
    core = ConsumerShell().coordinator._core
    changes = changes_with(member("t"), member("t"))
    refresh_topics(core, changes)
    bump_epoch(changes)
    update_target(core, changes)
    group = changes.group
    assert group.target_epoch == group.epoch == 1
    assert [len(group.target[m][group.topics["t"].topic_id]) for m in ("m0", "m1")] == [2, 2]
    again = Changes(group)
    bump_epoch(again)
    update_target(core, again)
    assert kinds(again) == [RecordType.GROUP_EPOCH, RecordType.TARGET_EPOCH]


def test_an_assignor_that_is_not_configured_any_more() -> None:
    group = changes_with(member("t", assignor="range")).group
    assert assignor_name(group, ("uniform", "range")) == "range"
    assert assignor_name(group, ("uniform",)) == "uniform"


def test_the_configured_assignors_by_class_or_by_name() -> None:
    package = "org.apache.kafka.coordinator.group.assignor"
    values = {"group.consumer.assignors": [f"{package}.RangeAssignor", "uniform"]}
    assert GroupConfig.from_values(values).assignors == ("range", "uniform")
