"""Members of both protocols come and go at random, and the group changes its protocol under them.

No partition has two owners, and when it is quiet each has one."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.config import GroupConfig
from tests.harness.cores.consumer_shell import (
    COOPERATIVE,
    ConsumerShell,
    FakeClassicMember,
    FakeConsumer,
    facts,
)

STEPS = 120


class Story:
    """One run from a seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.shell = ConsumerShell(GroupConfig(1))
        self.shell.topics.create("u", 3)
        self.protocol = self.chance.choice(("range", COOPERATIVE))
        self.members: list[FakeConsumer | FakeClassicMember] = []
        self.made = 0
        self.kinds: set[str] = set()

    def step(self) -> None:
        weights: dict[Callable[[], None], int] = {
            self.beat: 60,
            self.come: 8,
            self.leave: 3,
            self.die: 2,
            self.wait: 4,
            self.fail_over: 2,
            self.fail_to_append: 4,
        }
        (action,) = self.chance.choices([*weights], [*weights.values()])
        action()
        self.check()

    def some(self) -> FakeConsumer | FakeClassicMember | None:
        return self.chance.choice(self.members) if self.members else None

    def beat(self) -> None:
        if member := self.some():
            member.beat()

    def come(self) -> None:
        if len(self.members) >= 6:
            return
        self.made += 1
        topics = self.chance.choice((("t",), ("t", "u")))
        if self.chance.random() < 0.5:
            self.members.append(FakeConsumer(self.shell, f"m{self.made}", topics=topics))
        else:
            self.members.append(FakeClassicMember(self.shell, topics, self.protocol))
        self.members[-1].beat()

    def leave(self) -> None:
        if member := self.some():
            member.leave()
            self.members.remove(member)

    def die(self) -> None:
        if member := self.some():
            self.members.remove(member)

    def wait(self) -> None:
        self.shell.advance(self.chance.choice((1_000, 3_000, 10_000, 45_000)))

    def fail_over(self) -> None:
        """Another coordinator loads the log; the waiting requests are refused."""
        self.shell.perform(self.shell.coordinator.unload(0))
        self.shell.fail_over()

    def fail_to_append(self) -> None:
        self.shell.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
        self.beat()
        self.shell.append_error = ErrorCode.NONE

    def check(self) -> None:
        """No partition is owned by two of the members that the group has."""
        group = self.shell.coordinator._core.registry.find("g")
        if group is None:
            return
        self.kinds.add("classic" if group.consumer is None else "consumer")
        assert group.consumer is None or not group.members
        known = group.members if group.consumer is None else group.consumer.members
        owned = [p for m in self.members if m.member_id in known for p in m.partitions]
        assert len(owned) == len({*owned})

    def end(self) -> None:
        """The dead are forgotten and the living have everything, whichever protocol is left."""
        for _ in range(80):
            self.shell.advance(3_000)
            for member in self.members:
                member.beat()
        if not self.members:
            return
        topics = {topic for m in self.members for topic in m.topics or ()}
        known = self.shell.topics.known
        wanted = {(t, index) for t in topics for index in range(known[t].num_partitions)}
        owned = [p for member in self.members for p in member.partitions]
        assert len(owned) == len({*owned})
        assert {*owned} == wanted
        before = self.shell.group()
        after = self.shell.replayed()._core.registry.find("g")
        assert after is not None
        assert (before.generation_id, {*before.members}) == (after.generation_id, {*after.members})
        if before.consumer is not None:
            assert after.consumer is not None
            assert facts(after.consumer) == facts(before.consumer)


@pytest.mark.parametrize("seed", range(40))
def test_a_story(seed: int) -> None:
    story = Story(seed)
    for _ in range(STEPS):
        story.step()
    story.end()


def test_groups_change_their_protocol_in_most_stories() -> None:
    stories = [Story(seed) for seed in range(6)]
    for story in stories:
        for _ in range(STEPS):
            story.step()
    assert sum(len(story.kinds) == 2 for story in stories) > 3
