"""Topics of the metadata image, and regular expressions as RE2 reads them."""

from __future__ import annotations

from typing import Any

import pytest
import re2

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.uuid import ZERO_UUID, Uuid
from kafkapy.coordinator.groups.topic_source import KnownTopic
from kafkapy.metadata.cache import MetadataCache
from kafkapy.metadata.image import MetadataImage, PartitionImage, TopicImage
from kafkapy.server.cluster.metadata_waiter import MetadataWaiter
from kafkapy.server.coordinators.group_topics import GroupTopics

TOPIC_ID = Uuid(bytes(15) + b"\1")


def topics(start_ms: int = 100) -> GroupTopics:
    partitions = {n: PartitionImage(n, 1, 0, (1,), (1,), (), 0) for n in range(3)}
    cache = MetadataCache()
    cache.image = MetadataImage(
        topics={
            "t": TopicImage("t", TOPIC_ID, partitions),
            "old": TopicImage("old", ZERO_UUID, partitions),
        },
        topic_names_by_id={TOPIC_ID: "t"},
        version=7,
    )
    return GroupTopics(cache, MetadataWaiter(cache), start_ms)


def test_topics_with_an_id_are_found() -> None:
    found = topics()
    assert found.find("t") == KnownTopic(TOPIC_ID, 3)
    assert found.find("old") is None  # members name topics by id
    assert found.find("missing") is None
    assert (found.name_of(TOPIC_ID), found.name_of(ZERO_UUID)) == ("t", None)
    assert [*found.names()] == ["t", "old"]
    assert not found.is_known


def test_the_next_coordinator_knows_that_it_has_not_matched_a_regular_expression() -> None:
    """The version is stored with the match, and each broker counts the changes from its start."""
    assert topics().version != topics(start_ms=101).version


def test_the_whole_name_must_match() -> None:
    matches = topics().pattern("a.*|b")
    assert [name for name in ("a", "ab", "b", "bb", "cab") if matches(name)] == ["a", "ab", "b"]


@pytest.mark.parametrize("regex", ["a(", "[", "a{2,1}", r"(?=a)", r"\1"])
def test_what_re2_cannot_read_is_refused_with_its_reason(regex: str) -> None:
    with pytest.raises(ApiError) as refusal:
        topics().pattern(regex)
    assert refusal.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert refusal.value.message.startswith(
        f"SubscribedTopicRegex `{regex}` is not a valid regular expression: "
    )


def test_a_regular_expression_takes_linear_time() -> None:
    assert not topics().pattern("(a+)+b")("a" * 249)


def test_a_long_regular_expression_is_refused_without_its_text() -> None:
    assert topics().pattern("a" * 2048)("a" * 2048)
    for regex in ("a" * 2049, "é" * 1025):
        with pytest.raises(ApiError) as refusal:
            topics().pattern(regex)
        assert refusal.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
        assert refusal.value.message == "SubscribedTopicRegex has more than 2048 bytes."


@pytest.mark.parametrize("regex", ["(?:.?){1000}z", r"\pL{15}", r"(\pL{100}){9}", r"\pL" * 600])
def test_a_regular_expression_with_a_large_program_is_refused(regex: str) -> None:
    with pytest.raises(ApiError, match=r"not a valid regular expression: pattern too large\.$"):
        topics().pattern(regex)


@pytest.mark.parametrize(
    ("regex", "name"),
    [
        (r"\w{1,249}", "a" * 249),
        (r"[a-zA-Z0-9._-]{1,249}", "orders-1"),
        (r"(?i)\p{L}+\.\p{L}+", "Team.orders"),
        ("|".join(f"(?:team-{number:03}-.*)" for number in range(100)), "team-099-orders"),
    ],
)
def test_usual_regular_expressions_are_within_the_limits(regex: str, name: str) -> None:
    assert topics().pattern(regex)(name)


def test_groups_do_not_add_to_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """To find the text of each group of `(.*)(.*)...`, RE2 took 0.1 s for each topic name."""
    sizes = []

    def compile_and_count(*args: Any, **options: Any) -> Any:
        compiled = compile_regex(*args, **options)
        sizes.append(compiled.programsize)
        return compiled

    compile_regex = re2.compile
    monkeypatch.setattr(re2, "compile", compile_and_count)
    assert topics().pattern("(.*)" * 300)("a" * 249)
    assert sizes[0] < 100
