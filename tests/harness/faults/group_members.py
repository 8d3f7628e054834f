"""Members that join and leave one group, and their assigned, lost and consumed partitions."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tests.harness.faults.chaos_workload import QUICK_TO_RECONNECT, ClientThread, committed
from tests.harness.faults.fault_cluster import FaultCluster, wait_until

SETTLE_LIMIT_S = 90.0
CONSUME_LIMIT_S = 120.0
FENCED = "FENCED_INSTANCE_ID"


class Member(ClientThread):
    """One instance of a member; `stop` makes it leave, or be away if it is static.

    A fatal error, such as being fenced, ends it.

    With `commits` a record is consumed once its commit was accepted. `accepted` has the offsets of
    accepted commits by partition, in the order of the answers: librdkafka repeats a commit if the
    coordinator was loading or has moved, and a later commit may overtake it. `refused` has the
    partitions of refused commits.
    """

    def __init__(self, topic: str, name: str, settings: dict[str, Any], commits: bool) -> None:
        super().__init__(name)
        self.consumed: list[tuple[int, int]] = []  # (partition, offset)
        self.assigned: set[int] = set()
        self.revocations = 0
        self.fatal: str | None = None
        self.accepted: dict[int, list[int]] = defaultdict(list)
        self.refused: set[int] = set()
        self._commits = commits
        self._consumer = Consumer({**settings, "on_commit": self._on_commit})
        self._consumer.subscribe(
            [topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_revoke
        )
        self.start()

    def run(self) -> None:
        try:
            while not self._stopping.is_set() and self.fatal is None:
                message = self._consumer.poll(0.2)
                if message is None:
                    continue
                error = message.error()
                if error is not None:
                    self.fatal = fatal_name(error)
                    continue
                partition, offset = message.partition(), message.offset()
                assert partition is not None
                assert offset is not None
                if self._commits:
                    self._consumer.commit(message, asynchronous=False)
                self.consumed.append((partition, offset))
        except KafkaException as fault:
            self.fatal = fatal_name(fault.args[0]) or fault.args[0].name()
        finally:
            self._consumer.close()
            self.assigned.clear()

    def _on_commit(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        for each in partitions:
            if each.offset < 0:
                continue  # nothing was to be committed
            if error is None and each.error is None:
                self.accepted[each.partition].append(each.offset)
            else:
                self.refused.add(each.partition)

    def _on_assign(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.assigned |= {p.partition for p in partitions}

    def _on_revoke(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        if not self._stopping.is_set():
            self.revocations += 1
        self.assigned -= {p.partition for p in partitions}


def fatal_name(error: KafkaError) -> str | None:
    """The name of an error that ends a consumer; None of another error.

    If a heartbeat was refused, librdkafka gives the reason only in the text.
    """
    if error.code() == KafkaError._FATAL and "fenced" in error.str():
        return FENCED
    is_fatal = error.fatal() or error.code() in (KafkaError._FATAL, KafkaError.FENCED_INSTANCE_ID)
    return error.name() if is_fatal else None


class Group:
    """A group that reads a topic from the beginning. `instances` are all instances so far."""

    def __init__(
        self,
        cluster: FaultCluster,
        topic: str,
        partitions: int,
        name: str,
        *,
        static: bool = False,
        commits: bool = False,
        **settings: Any,
    ) -> None:
        """With `commits`, members commit after each record, and not automatically."""
        self.name = name
        self.instances: list[Member] = []
        self.members: dict[int, Member] = {}
        self._servers = cluster.bootstrap_servers
        self._topic = topic
        self._partitions = partitions
        self._static = static
        self._commits = commits
        self._settings = {
            "bootstrap.servers": self._servers,
            "group.id": name,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": not commits,
            "auto.commit.interval.ms": 500,
            "session.timeout.ms": 30_000,
            "heartbeat.interval.ms": 500,
            "fetch.wait.max.ms": 100,
            **QUICK_TO_RECONNECT,
            **{key.replace("_", "."): value for key, value in settings.items()},
        }

    def start(self, *numbers: int) -> None:
        """Start members by number; the group.instance.id of a static one contains its number."""
        for number in numbers:
            self.members[number] = self.start_instance(number)

    def start_instance(self, number: int) -> Member:
        """Start another instance of a member, even if one with its number runs."""
        settings = dict(self._settings)
        if self._static:
            settings["group.instance.id"] = f"{self.name}-{number}"
        member = Member(self._topic, f"{self.name}-{number}", settings, self._commits)
        self.instances.append(member)
        return member

    def stop(self, *numbers: int) -> None:
        for number in numbers:
            self.members.pop(number).stop()

    def stop_all(self) -> None:
        """Stop all instances, also those whose number another has."""
        for member in self.instances:
            member.stop()
        self.members.clear()

    def settle(self) -> None:
        """Wait until each partition belongs to one member, and each member has its share."""

        def lacking() -> list[str]:
            shares = {number: set(member.assigned) for number, member in self.members.items()}
            least, most = divmod(self._partitions, len(shares))
            wrong = [
                f"member {number} has {sorted(share)}"
                for number, share in shares.items()
                if not least <= len(share) <= least + bool(most)
            ]
            owned = sorted(p for share in shares.values() for p in share)
            return wrong or ([] if owned == list(range(self._partitions)) else [f"{shares}"])

        wait_until(lacking, SETTLE_LIMIT_S, f"group {self.name} not settled")

    def wait_for_consumption(self, more: int = 100) -> None:
        """Wait until the members have consumed `more` records from now on."""
        wanted = self.consumed + more

        def lacking() -> list[str]:
            return [] if self.consumed >= wanted else [f"{wanted - self.consumed} to go"]

        wait_until(lacking, CONSUME_LIMIT_S, f"group {self.name} consumes nothing")

    @property
    def consumed(self) -> int:
        return sum(len(member.consumed) for member in self.instances)

    @property
    def revocations(self) -> int:
        """Number of times that live members lost partitions."""
        return sum(member.revocations for member in self.members.values())

    def check(self) -> None:
        """Check a group that was stopped: no commit is lost; all records before the commit were
        consumed once, and none after it.

        After a refused commit, records may be consumed again: a member that ends while its
        coordinator is away does not retry the commit. So they may after an earlier commit that
        librdkafka sent again, behind a later one, because its coordinator had moved.
        """
        offsets: dict[int, list[int]] = defaultdict(list)
        for member in self.instances:
            for partition, offset in member.consumed:
                offsets[partition].append(offset)
        commits = committed(self._servers, self.name, self._topic, self._partitions)
        for partition, end in enumerate(commits):
            answers = [member.accepted[partition] for member in self.instances]
            accepted = max((each[-1] for each in answers if each), default=0)
            is_refused = any(partition in member.refused for member in self.instances)
            found = sorted(offsets[partition])
            state = (
                f"group {self.name}, partition {partition}: committed {end}, accepted {accepted},"
                f" {'some' if is_refused else 'none'} refused, consumed {len(found)} records, of"
                f" which {len(set(found))} are different, up to {found[-1:]}; the last answers are"
                f" for {[each[-5:] for each in answers]}"
            )
            assert end >= accepted, f"a commit is lost: {state}"
            reached = max((max(each) for each in answers if each), default=0)
            if is_refused or reached > end:
                found = sorted(set(found))
                end = max(end, len(found) if is_refused else reached)
            assert found == list(range(end)), state
