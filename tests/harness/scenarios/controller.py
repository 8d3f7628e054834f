"""Steps of the scenarios of the controller: brokers over one ZooKeeper, which die and return.

Outcomes: the answer to a request, then the changes: the acting controller, and for each partition
its state znode (epoch: leader epoch/partition epoch), its replicas with those that are being added
and removed, and the brokers that hold it if those are not its replicas. A new partition is only
reported if its first replica does not lead, or not all replicas are in sync. `commands` are those
of the step before, with a command to several brokers as one line; `writes` are the states of a
partition in ZooKeeper after each write of that step.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any

from kafkapy.common.cluster_state import RECOVERED, RECOVERING
from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.controller import events
from kafkapy.zk.stores.znodes import (
    ZnodeError,
    encode_partition_state,
    encode_partitions,
    encode_reassignments,
)
from tests.harness.cores.controllers import Cluster
from tests.harness.cores.controllers import topic_id as numbered_topic_id
from tests.harness.cores.znodes import run
from tests.harness.scenarios.interpreter import World, step


class ControllerWorld(World):
    """One cluster; its first broker is the controller until it dies."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster: Cluster
        self._writes: list[dict[str, str]] = []
        """The observable state after each write to ZooKeeper in this step."""
        self._sound: dict[str, str] = {}
        """The original data of broken znodes."""

    def perform(self, text: str) -> list[str]:
        if self._last_facts and not text.startswith(("commands", "writes")):
            self.cluster.take()
            self._writes.clear()
        return super().perform(text)

    def changes(self, before: dict[str, str], after: dict[str, str]) -> list[str]:
        new = [n for n, value in after.items() if before.get(n, self._usual(n)) != value]
        gone = [name for name in before if name not in after and " " not in name]
        return [f"{name}: {after[name]}" for name in new] + [f"{name} is gone" for name in gone]

    # observable state

    def facts(self) -> dict[str, str]:
        brokers = self.cluster.brokers
        active = [b for b, broker in brokers.items() if broker.controller.is_active]
        facts = {"controller": ids(active)}
        topics = self._topics()
        if active and sorted(self.cluster.controller.context.topics) != topics:
            facts["topics of the controller"] = ids(self.cluster.controller.context.topics)
        for name in topics:
            try:
                topic = run(self.cluster.store.topics.get(name))
            except ZnodeError:  # keep the facts of when it could be read
                facts |= {n: v for n, v in self._last_facts.items() if n.startswith(f"{name}-")}
                continue
            assert topic is not None
            wanted = [TopicPartition(name, index) for index in topic.assignment]
            states = run(self.cluster.store.topics.states(wanted))
            for partition in wanted:
                index = partition.partition
                replicas = topic.assignment[index]
                rows = topic.adding_replicas.get(index), topic.removing_replicas.get(index)
                facts[f"{partition} replicas"] = shown_replicas(replicas, *rows)
                if state := states.get(partition):
                    leader = "none" if state.leader < 0 else state.leader
                    epochs = f"epoch {state.leader_epoch}/{state.partition_epoch}"
                    facts[str(partition)] = f"leader {leader}, isr {ids(state.isr)}, {epochs}"
                    if self._holders(partition) != set(replicas) & brokers.keys():
                        facts[f"{partition} held by"] = ids(sorted(self._holders(partition)))
        for partition in {p for broker in brokers.values() for p in broker.replicas}:
            if partition.topic not in topics:
                facts[f"{partition} held by"] = ids(sorted(self._holders(partition)))
        return facts

    def _holders(self, partition: TopicPartition) -> set[int]:
        brokers = self.cluster.brokers
        return {b for b, broker in brokers.items() if partition in broker.replicas}

    def _topics(self) -> list[str]:
        under = "/brokers/topics/"
        paths = (path.removeprefix(under) for path in self.cluster.paths(under))
        return [path for path in paths if "/" not in path]

    def _usual(self, name: str) -> str:
        """The usual value of a new fact, which is not reported."""
        partition, _, kind = name.partition(" ")
        if kind == "replicas":
            return self._last_facts[name] if "+" not in self._last_facts[name] else ""
        replicas = self._last_facts.get(f"{partition} replicas", "")
        return f"leader {replicas.split(',')[0]}, isr {replicas}, epoch 0/0"

    # Brokers.

    @step("brokers {broker_ids...} run")
    def brokers(self, broker_ids: str, **topics: str) -> None:
        """`t 1,2 and 2,1`: topic t has two partitions on these brokers."""
        self.cluster = Cluster(*map(int, broker_ids.split()))
        self.cluster.observers.append(lambda: self._writes.append(self.facts()))
        self._last_facts = self.facts()
        for name, replicas in topics.items():
            self.is_created(name, replicas)

    @step("broker {broker} dies")
    def dies(self, broker: str, unnoticed: str | None = None) -> None:
        self.cluster.brokers[int(broker)].die()
        if unnoticed is None:
            self.cluster.settle()

    @step("broker {broker} returns")
    def returns(self, broker: str, unnoticed: str | None = None) -> None:
        self.cluster.brokers[int(broker)].restart()
        if unnoticed is None:
            self.cluster.settle()

    @step("all notice")
    def all_notice(self) -> None:
        self.cluster.settle()

    @step("brokers {broker_ids...} do not answer", "brokers answer")
    def silent(self, broker_ids: str = "") -> None:
        self.cluster.silent = {int(word) for word in broker_ids.split()}

    @step("broker {broker} answers {error} for {partition}")
    def answers(self, broker: str, error: str, partition: str) -> None:
        self.cluster.errors[int(broker), parsed(partition)] = ErrorCode[error]

    @step("broker {broker} reports a failed log directory")
    def reports_failure(self, broker: str) -> None:
        run(self.cluster.store.requests.notify_log_dir_failure(int(broker)))
        self.cluster.settle()

    @step("brokers have {key}={value}")
    def brokers_have(self, key: str, value: str) -> None:
        name = key.replace(".", "_")
        for broker in self.cluster.brokers.values():
            kind = type(getattr(broker.config, name))
            setattr(broker.config, name, value == "true" if kind is bool else kind(value))

    @step("broker {broker} serves {partition}")
    def serves(self, broker: str, partition: str) -> None:
        image, wanted = self.cluster.brokers[int(broker)].metadata.image, parsed(partition)
        topic = image.topics.get(wanted.topic)
        if topic is None:
            self.report("nothing")
        else:
            assert topic.topic_id == numbered_topic_id(7)
            row = topic.partitions[wanted.partition]
            self.report(f"leader {row.leader}, offline {ids(row.offline_replicas)}")

    @step("broker {broker} shuts down")
    def shuts_down(self, broker: str, epoch: str = "") -> None:
        """ControlledShutdown; `epoch old`: with the broker epoch of an earlier registration."""
        known = self.cluster.brokers.get(int(broker))
        broker_epoch = known.broker_epoch - 1 if epoch and known else -1
        result = self._submit(events.ControlledShutdown, int(broker), broker_epoch)
        left = " ".join(map(str, result.remaining))
        self.report(f"remaining {left}" if left else shown_error(result.error))

    # Topics.

    @step("topic {name} is created on {replicas...}")
    def is_created(self, name: str, replicas: str) -> None:
        rows = dict(enumerate(numbers(row) for row in replicas.split(" and ")))
        self.cluster.create_topic(name, rows)

    @step("topic {name} gets a partition on {replicas}")
    def gets_a_partition(self, name: str, replicas: str) -> None:
        topic = run(self.cluster.store.topics.get(name))
        assert topic is not None
        topic.assignment[len(topic.assignment)] = numbers(replicas)
        run(self.cluster.store.topics.update(topic))
        self.cluster.settle()

    @step("topic {name} has {key}={value}")
    def topic_has(self, name: str, key: str, value: str) -> None:
        run(self.cluster.store.configs.set("topics", name, {key: value}))

    @step("topic {name} is deleted")
    def is_deleted(self, name: str) -> None:
        self.cluster.delete_topic(name)

    @step("unclean elections")
    def unclean_elections(self) -> None:
        self.report(str(self.cluster.controller.context.unclean_elections))

    @step("deletions that wait")
    def deletions_that_wait(self) -> None:
        self.report(" ".join(sorted(self.cluster.controller.context.topics_ineligible)) or "none")

    # The ISR, elections and reassignments.

    @step("the leader of {partition} asks for ISR {isr}")
    def asks_for_isr(
        self,
        partition: str,
        isr: str,
        topic: str | None = None,
        topic_id: str = "0",
        leader_epoch: str = "",
        partition_epoch: str = "",
        stale: str | None = None,
        recovering: str | None = None,
    ) -> None:
        """AlterPartition with the controller's epochs; `stale`: with an older broker epoch."""
        wanted = parsed(partition)
        state = self.cluster.controller.context.leadership[wanted]
        item = events.AlterPartitionItem(
            wanted.topic if topic is None else topic.replace("none", ""),
            numbered_topic_id(int(topic_id)),
            wanted.partition,
            int(leader_epoch or state.leader_epoch),
            numbers(isr),
            RECOVERED if recovering is None else RECOVERING,
            int(partition_epoch or state.partition_epoch),
        )
        broker_epoch = self.cluster.brokers[state.leader].broker_epoch - (stale is not None)
        # A failure after the answer causes a second answer, which is ignored.
        result, *_ = self._replies(events.AlterPartition, state.leader, broker_epoch, [item])
        if result.error is not ErrorCode.NONE:
            self.report(f"{result.error.name} for all")
        for row, error, found in result.rows:
            if error is not ErrorCode.NONE:
                self.report(error.name)
            else:
                assert (row, found.isr) == (item, item.new_isr)

    @step("an older leader of {partition} writes ISR {isr}")
    def writes_isr(self, partition: str, isr: str, unnoticed: str | None = None) -> None:
        """As with inter.broker.protocol.version below 2.7."""
        wanted = parsed(partition)
        state = replace(self.cluster.controller.context.leadership[wanted], isr=numbers(isr))
        path = f"/brokers/topics/{wanted.topic}/partitions/{wanted.partition}/state"
        self.znode_is_written(path, encode_partition_state(state).decode())
        if unnoticed is None:
            changed = encode_partitions([wanted, TopicPartition("gone", 0)])
            self.znode_is_written("/isr_change_notification/isr_change_0", changed.decode())

    @step("followers catch up")
    def followers_catch_up(self) -> None:
        self.cluster.catch_up()

    @step("elect {kind} leaders", "elect {kind} leaders of {partitions...}")
    def elect(self, kind: str, partitions: str = "") -> None:
        wanted = [parsed(name) for name in partitions.split()] or None
        results = self._submit(events.ElectLeaders, wanted, events.ElectionType[kind.upper()])
        self._say_each(results, lambda result: f"leader {result.leader}")

    @step("the rebalance timer fires")
    def rebalance_timer(self) -> None:
        self.cluster.submit(events.AutoRebalance())

    @step("unclean elections are enabled", "unclean elections are enabled for {topic}")
    def unclean_enabled(self, topic: str | None = None) -> None:
        self.cluster.submit(events.UncleanElectionEnabled(topic))

    @step("reassign {targets...}")
    def reassign(self, targets: str) -> None:
        """`t-0 to 4,5 and t-1 to 6`; `none` cancels, `nobody` is an empty list."""
        results = self._submit(events.AlterPartitionReassignments, parsed_targets(targets))
        self._say_each(results, lambda result: "")

    @step("list reassignments", "list reassignments of {partitions...}")
    def list_reassignments(self, partitions: str = "") -> None:
        wanted = [parsed(name) for name in partitions.split() if name != "nothing"]
        found = self._submit(events.ListPartitionReassignments, wanted if partitions else None)
        rows = [f"{p} {shown_replicas(*replicas)}" for p, replicas in sorted(found.items())]
        self.report(" | ".join(rows) or "none")

    @step("an old tool reassigns {targets...}")
    def old_tool_reassigns(self, targets: str) -> None:
        data = encode_reassignments(parsed_targets(targets))
        self.znode_is_written("/admin/reassign_partitions", data.decode())

    # ZooKeeper and commands.

    @step("znode {path} is written")
    def znode_is_written(self, path: str, data: str) -> None:
        zookeeper = self.cluster.store.zookeeper
        is_there = path in self.cluster.server.tree.nodes
        run((zookeeper.set if is_there else zookeeper.create)(path, data.encode()))
        self.cluster.settle()

    @step("znode {path} is broken")
    def znode_is_broken(self, path: str) -> None:
        self._sound[path] = self.cluster.data(path)
        self.znode_is_written(path, "[broken")

    @step("znode {path} is mended")
    def znode_is_mended(self, path: str) -> None:
        self.znode_is_written(path, self._sound[path])

    @step("znode {path}")
    def znode(self, path: str) -> None:
        there = path in self.cluster.server.tree.nodes
        self.report(self.cluster.data(path) if there else "none")

    @step("children of {path}")
    def children(self, path: str) -> None:
        self.report(" ".join(self.cluster.paths(f"{path}/")) or "none")

    @step("writes to {partition}")
    def writes(self, partition: str) -> None:
        rows = (
            f"{seen[f'{partition} replicas']}: {seen[partition].partition(', epoch')[0]}"
            for seen in self._writes
        )
        for row, _ in groupby(rows):
            self.report(row)

    @step("commands", "commands of {kind}")
    def commands(self, kind: str = "") -> None:
        sent = [line.partition(" ") for line in self.cluster.take() if kind in line]
        runs = [
            (to, tuple(command for _, _, command in of_broker))
            for to, of_broker in groupby(sent, key=lambda parts: parts[0])
        ]
        for commands, same in groupby(runs, key=lambda run: run[1]):
            brokers = ids(to for to, _ in same)
            for command in commands:
                self.report(f"{brokers} {command}")
        if not runs:
            self.report("none")

    def _submit(self, event: Callable[..., Any], *fields: Any) -> Any:
        [reply] = self._replies(event, *fields)
        return reply

    def _replies(self, event: Callable[..., Any], *fields: Any) -> list[Any]:
        replies: list[Any] = []
        self.cluster.submit(event(*fields, replies.append))
        return replies

    def _say_each(self, results: Mapping[TopicPartition, Any], done: Callable[[Any], str]) -> None:
        for partition, result in sorted(results.items()):
            if result.error is not ErrorCode.NONE:
                message = f": {result.message}" if result.message else ""
                message = re.sub("(?<=cannot be read):.*", "", message)
                self.report(f"{partition} {result.error.name}{message}")
            elif shown := done(result):
                self.report(f"{partition} {shown}")


def parsed(name: str) -> TopicPartition:
    topic, _, index = name.rpartition("-")
    return TopicPartition(topic, int(index))


def numbers(text: str) -> tuple[int, ...]:
    return () if text == "nobody" else tuple(map(int, text.split(",")))


def parsed_targets(text: str) -> dict[TopicPartition, Any]:
    rows = (row.split(" to ") for row in text.split(" and "))
    return {parsed(name): None if to == "none" else numbers(to) for name, to in rows}


def ids(values: Iterable[object]) -> str:
    return ",".join(map(str, values)) or "none"


def shown_replicas(
    replicas: Iterable[int], adding: Iterable[int] | None, removing: Iterable[int] | None
) -> str:
    """`replicas +adding -removing`."""
    signs = (("", replicas), ("+", adding), ("-", removing))
    return " ".join(f"{sign}{ids(row)}" for sign, row in signs if row)


def shown_error(error: ErrorCode) -> str:
    return "ok" if error is ErrorCode.NONE else error.name
