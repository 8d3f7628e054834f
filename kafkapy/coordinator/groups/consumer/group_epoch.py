"""Updates of a consumer group: regular expressions, topics, the group epoch, and the target."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from kafkapy.common.errors import ApiError
from kafkapy.coordinator.groups.consumer.assignment import EMPTY_ASSIGNMENT
from kafkapy.coordinator.groups.consumer.assignors import ASSIGNORS, AssignedMember
from kafkapy.coordinator.groups.consumer.consumer_group import ConsumerGroup
from kafkapy.coordinator.groups.consumer.log_writes import Changes
from kafkapy.coordinator.groups.consumer.records import (
    ConsumerKey,
    RecordType,
    ResolvedRegex,
    TopicMetadata,
)
from kafkapy.coordinator.groups.core import Core

REGEX_REFRESH_MIN_MS: Final = 10_000
"""The minimum time between two matches of all topics against a regular expression."""
MATCHES_AT_ONCE: Final = 5_000
"""The number of matches, of one topic and one expression, after which a heartbeat leaves the other
expressions to the next ones."""


def bump_epoch(changes: Changes) -> None:
    """Increase the group epoch, so that a new target is computed."""
    changes.put(RecordType.GROUP_EPOCH, changes.group.epoch + 1)


def refresh_topics(core: Core, changes: Changes) -> bool:
    """Update the subscribed topics from the metadata. Returns whether they have changed."""
    group = changes.group
    group.metadata_version = core.topics.version
    topics: dict[str, TopicMetadata] = {}
    for name in sorted(group.subscribed_topics):
        known = core.topics.find(name)
        if known is not None:
            topics[name] = TopicMetadata(known.topic_id, name, known.num_partitions)
    if group.has_topics(topics):
        return False
    changes.put(RecordType.TOPICS, topics)
    return True


def delete_unused_regexes(changes: Changes) -> None:
    """Delete the regular expressions that no member is subscribed to any more."""
    group = changes.group
    if group.regexes:
        used = {member.subscribed_regex for member in group.members.values()}
        for regex in [each for each in group.regexes if each not in used]:
            changes.erase(ConsumerKey(RecordType.REGEX, group.group_id, regex))


def refresh_regexes(
    core: Core, changes: Changes, requested_regex: str | None, is_visible: Callable[[str], bool]
) -> bool:
    """Match the topics for `requested_regex` if it is new, then again for expressions that are due,
    the oldest first. Those beyond `MATCHES_AT_ONCE` keep their topics and stay due. Returns whether
    any match has changed."""
    group, time_ms = changes.group, core.clock.time_ms()
    known = sorted(group.regexes.items(), key=lambda item: item[1].timestamp_ms)
    regexes = [regex for regex, resolved in known if _is_due(core, resolved, time_ms)]
    if requested_regex is not None and requested_regex not in group.regexes:
        regexes.insert(0, requested_regex)
    names = [*core.topics.names()] if regexes else []
    changed, matches_left = False, MATCHES_AT_ONCE
    for regex in regexes:
        if matches_left <= 0:
            break
        before = group.regexes.get(regex)
        topics = _matches(core, regex, names, is_visible)
        matches_left -= len(names)
        changed |= before is None or before.topics != topics
        resolved = ResolvedRegex(topics, core.topics.version, time_ms)
        changes.put(RecordType.REGEX, resolved, regex)
    return changed


def _is_due(core: Core, resolved: ResolvedRegex, time_ms: int) -> bool:
    age_ms = time_ms - resolved.timestamp_ms
    # After the interval, the caller's ACLs are checked again even if no topic has changed.
    if age_ms >= core.config.group_consumer_regex_refresh_interval_ms:
        return True
    return resolved.version != core.topics.version and age_ms >= REGEX_REFRESH_MIN_MS


def _matches(
    core: Core, regex: str, names: Collection[str], is_visible: Callable[[str], bool]
) -> frozenset[str]:
    try:
        matches = core.topics.pattern(regex)
    except ApiError:  # accepted by another broker, with another regex library
        return frozenset()
    return frozenset(name for name in names if matches(name) and is_visible(name))


def assignor_name(group: ConsumerGroup, supported: Collection[str]) -> str:
    """The group's assignor: the one that most members request, else the broker's first."""
    default = next(iter(supported))
    wanted = group.preferred_assignor(default)
    return wanted if wanted in supported else default


def update_target(core: Core, changes: Changes) -> None:
    """Compute the target of the group's epoch."""
    group = changes.group
    counts = {topic.topic_id: topic.num_partitions for topic in group.topics.values()}
    topics = {
        subscription: frozenset(group.topics[name].topic_id for name in names & group.topics.keys())
        for subscription, names in group.subscriptions().items()
    }
    members = {
        member_id: AssignedMember(
            member.instance_id,
            topics[member.subscription],
            group.target.get(member_id, EMPTY_ASSIGNMENT),
        )
        for member_id, member in group.members.items()
    }
    name = assignor_name(group, core.config.assignors)
    for member_id, assignment in ASSIGNORS[name](members, counts).items():
        if assignment != group.target.get(member_id):
            changes.put(RecordType.TARGET, assignment, member_id)
    changes.put(RecordType.TARGET_EPOCH, group.epoch)
    core.log.info(
        "[GroupId %s] Computed a new target assignment for epoch %d with '%s' assignor",
        group.group_id,
        group.epoch,
        name,
    )
