"""Members, topics and coordinators come and go at random: no partition has two owners, and when it
is quiet each has one. No coordinator takes back what another one has told a member."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.config import GroupConfig
from kafkapy.coordinator.groups.consumer.consumer_group import ConsumerGroupState
from tests.harness.cores.consumer_shell import (
    SESSION_MS,
    ConsumerShell,
    FakeConsumer,
    facts,
    settle,
)

STEPS = 150
PATTERNS = ("t", "t.*", "u.*", ".*")


class Story:
    """One run from a seed. Members that are silent are still running: they come back."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.shell = ConsumerShell(GroupConfig(1))
        self.consumers: list[FakeConsumer] = []
        self.made = 0
        self.epoch = 0

    def step(self) -> None:
        weights: dict[Callable[[], None], int] = {
            self.beat: 60,
            self.miss_an_answer: 6,
            self.come: 6,
            self.leave: 2,
            self.die: 2,
            self.wait: 6,
            self.forget: 1,
            self.change_topics: 3,
            self.subscribe: 2,
            self.fail_over: 2,
            self.fail_to_append: 2,
        }
        (action,) = self.chance.choices([*weights], [*weights.values()])
        action()
        self.check()

    def some(self) -> FakeConsumer | None:
        return self.chance.choice(self.consumers) if self.consumers else None

    def beat(self) -> None:
        if consumer := self.some():
            consumer.beat()

    def miss_an_answer(self) -> None:
        consumer = self.some()
        if consumer and consumer.epoch:
            consumer.beat(is_lost=True)

    def come(self) -> None:
        if len(self.consumers) < 6:
            self.made += 1
            instance_id = f"i{self.made}" if self.chance.random() < 0.3 else None
            consumer = FakeConsumer(self.shell, f"m{self.made}", instance_id=instance_id)
            self.consumers.append(consumer)
            self.subscribe(consumer)
            consumer.beat()

    def leave(self) -> None:
        consumer = self.some()
        if consumer and consumer.epoch:
            if consumer.instance_id is not None and self.chance.random() < 0.5:
                consumer.leave(-2)
                self.made += 1
                consumer.member_id = f"m{self.made}"
            else:
                consumer.leave()
                self.consumers.remove(consumer)

    def die(self) -> None:
        if consumer := self.some():
            self.consumers.remove(consumer)

    def wait(self) -> None:
        self.shell.advance(self.chance.choice((1_000, 10_000, 30_000, SESSION_MS)))

    def forget(self) -> None:
        if consumer := self.some():
            consumer.reset()

    def change_topics(self) -> None:
        topics = self.shell.topics
        name = self.chance.choice(("t", "u", "u2"))
        if name not in topics.known:
            topics.create(name, self.chance.randrange(1, 5))
        elif self.chance.random() < 0.5:
            topics.delete(name)
        else:
            topics.grow(name, topics.known[name].num_partitions + 1)

    def subscribe(self, consumer: FakeConsumer | None = None) -> None:
        consumer = consumer or self.some()
        if consumer:
            consumer.topics = self.chance.sample(("t", "u", "u2"), self.chance.randrange(1, 4))
            consumer.regex = self.chance.choice(PATTERNS) if self.chance.random() < 0.3 else ""
            consumer.is_synchronized = False

    def fail_over(self) -> None:
        if not self.shell.group_is_known():
            return
        before = facts(self.shell.consumers)
        is_saved = not self.shell.consumers.unsaved
        shell = self.shell
        shell.fail_over(kept=self.chance.randint(shell.replicated, len(shell.log)))
        if is_saved:
            assert facts(shell.consumers) == before
        else:
            self.epoch = 0
            self.check_told()

    def check_told(self) -> None:
        """The coordinator knows each epoch that a member was told, unless it was fenced since."""
        members = self.shell.consumers.current if self.shell.group_is_known() else {}
        for consumer in self.consumers:
            known = members.get(consumer.member_id)
            assert known is None or consumer.epoch <= known.member_epoch or not consumer.epoch

    def fail_to_append(self) -> None:
        self.shell.append_error = self.chance.choice(
            (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT)
        )
        for _ in range(self.chance.randint(1, 3)):
            self.beat()
        self.shell.append_error = ErrorCode.NONE

    def check(self) -> None:
        """No partition is owned by two of the members that the group has."""
        if not self.shell.group_is_known():
            return
        group = self.shell.consumers
        assert group.epoch >= self.epoch
        assert group.target_epoch <= group.epoch
        self.epoch = group.epoch
        owned = [
            (topic_id, index)
            for consumer in self.consumers
            if consumer.member_id in group.members
            for topic_id, indexes in consumer.owned.items()
            for index in indexes
        ]
        assert len(owned) == len({*owned})

    def end(self) -> None:
        """The dead are forgotten and the living reconcile: each partition has its owner."""
        self.shell.advance(SESSION_MS)
        self.shell.advance(SESSION_MS)
        if not self.consumers:
            return
        settle(self.consumers, 3)
        self.shell.advance(10_000)
        settle(self.consumers)
        group = self.shell.consumers
        assert group.state is ConsumerGroupState.STABLE
        assert {*group.members} == {consumer.member_id for consumer in self.consumers}
        known = self.shell.topics.known
        wanted = {
            (name, index)
            for name in group.subscribed_topics & known.keys()
            for index in range(known[name].num_partitions)
        }
        owned = [partition for consumer in self.consumers for partition in consumer.partitions]
        assert len(owned) == len(wanted)
        assert {*owned} == wanted
        self.fail_over()


@pytest.mark.parametrize("seed", range(60))
def test_a_story(seed: int) -> None:
    story = Story(seed)
    for _ in range(STEPS):
        story.step()
    story.end()
