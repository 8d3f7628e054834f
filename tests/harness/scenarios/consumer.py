"""Steps of the scenarios of groups that change their protocol: those of `groups`, and consumers.

The only topic is `t`, with four partitions. A name is a process of the classic protocol or of the
consumer protocol: it joins with `joins` or with `beats`. An assignment is the numbers of its
partitions. Once `the log is shown`, `log` is a batch; `-` stands before a tombstone.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kafkapy.common.consumer_protocol import encode_assignment, read_assignment
from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.config import GroupConfig
from kafkapy.coordinator.effects import Append
from kafkapy.coordinator.groups import messages
from kafkapy.coordinator.groups.consumer.assignment import Assignment
from kafkapy.coordinator.groups.consumer.messages import (
    ConsumerHeartbeat,
    ConsumerHeartbeatResult,
    DescribeConsumerGroups,
    DescribeConsumerGroupsResult,
)
from kafkapy.coordinator.groups.consumer.records import (
    CurrentAssignment,
    MemberMetadata,
    Value,
    read_consumer_key,
    read_value,
)
from kafkapy.record.builder import RecordData
from tests.harness.cores.consumer_shell import ConsumerShell, topic_id
from tests.harness.scenarios.groups import Client, GroupWorld, shown_error
from tests.harness.scenarios.interpreter import step


@dataclass
class MigratingClient(Client):
    """One process, of either protocol, and the partitions that it has."""

    epoch: int = 0
    owned: set[int] = field(default_factory=set)

    def embedded(self, protocol: str, metadata: bytes) -> bytes:
        """The protocol `odd` embeds other bytes if it is not the client's first."""
        is_first = self.options.get("protocols", "").startswith(protocol)
        return b"opaque" if protocol == "odd" and not is_first else metadata

    def subscription(self) -> bytes:
        """Version 1 if the client is cooperative: it has the owned partitions."""
        data = super().subscription()
        if not self.options.get("protocols", "").startswith("cooperative"):
            return data
        owned = sorted(self.owned)
        rows = struct.pack(f">ih1si{len(owned)}i", 1, 1, b"t", len(owned), *owned)
        return b"\0\1" + data[2:] + rows

    def lose(self) -> None:
        """Reset the state, as in a new process."""
        self.member_id, self.generation_id, self.epoch, self.owned = "", -1, 0, set()


class ConsumerWorld(GroupWorld):
    """The clients of one coordinator and one group."""

    def __init__(self) -> None:
        super().__init__(ConsumerShell(GroupConfig(offsets_topic_num_partitions=1)))
        self._shows_log = False

    def new_client(self, name: str) -> MigratingClient:
        return MigratingClient(name)

    def process(self, name: str) -> MigratingClient:
        client = self.client(name)
        assert isinstance(client, MigratingClient)
        return client

    @step("the log is shown")
    def the_log_is_shown(self) -> None:
        self._shows_log = True

    @step("the policy is {policy}")
    def the_policy_is(self, policy: str) -> None:
        self._configure(group_consumer_migration_policy=policy)

    @step("groups have {number} members at most")
    def groups_have(self, number: str) -> None:
        self._configure(group_max_size=int(number))

    @step("consumer groups have {number} members at most")
    def consumer_groups_have(self, number: str) -> None:
        self._configure(group_consumer_max_size=int(number))

    def _configure(self, **configs: Any) -> None:
        core = self.shell.coordinator._core
        core.config = replace(core.config, **configs)

    @step("the broker has no metadata", "the broker has metadata: {known}")
    def the_broker_has_no_metadata(self, known: str = "") -> None:
        assert isinstance(self.shell, ConsumerShell)
        self.shell.topics.is_known = bool(known)

    # Members of the classic protocol.

    @step("{client} syncs")
    def syncs(self, client: str, giving: str = "", **options: str) -> None:
        super().syncs(client, giving, **self._protocol(client) | options)

    def _protocol(self, name: str) -> dict[str, str]:
        client = self.client(name)
        return {"type": client.protocol_type, "protocol": client.protocol_name or ""}

    @step("{client} rejoins")
    def rejoins(self, client: str, **options: str) -> None:
        """Unless it is cooperative, it revokes everything first. Then it takes its assignment."""
        process = self.process(client)
        if not process.options.get("protocols", "").startswith("cooperative"):
            process.owned = set()
        self.joins(client, **options)
        if process.generation_id >= 0 and self._outcomes[-1].startswith("generation"):
            self.syncs(client)

    @step("{client} revokes {partitions}")
    def revokes(self, client: str, partitions: str) -> None:
        self.process(client).owned -= numbers(partitions)

    # Members of the consumer protocol.

    @step("{client} beats")
    def beats(
        self, client: str, instance: str = "", epoch: str = "", assignor: str = "", regex: str = ""
    ) -> None:
        """ConsumerGroupHeartbeat of a process that revokes partitions at once."""
        process = self.process(client)
        if instance:
            process.options["instance"] = instance
        if not process.member_id:
            process.member_id = client
            self._names[client] = client
        request = ConsumerHeartbeat(
            "g",
            process.member_id,
            int(epoch or process.epoch),
            process.options.get("instance"),
            rebalance_timeout_ms=60_000,
            subscribed_names=process.options.get("topics", "t").split(),
            subscribed_regex=regex or None,
            server_assignor=assignor or None,
            owned=owned_of(process.owned),
            client_id=client,
        )
        self._call(client, request)

    @step("{client} goes")
    def goes(self, client: str) -> None:
        self._go(client, -1)

    @step("{client} restarts")
    def restarts(self, client: str) -> None:
        """A static consumer leaves and comes back as another process."""
        self._go(client, -2)

    def _go(self, client: str, epoch: int) -> None:
        process = self.process(client)
        instance_id = process.options.get("instance")
        self._call(client, ConsumerHeartbeat("g", process.member_id, epoch, instance_id))
        process.lose()

    @step("the consumer group is described")
    def describe_consumers(self) -> None:
        self._call("admin", DescribeConsumerGroups(["g"]))

    # Answers and the log.

    def _call(self, name: str, request: Any) -> None:
        if isinstance(request, ConsumerHeartbeat):
            shell = self.shell
            self.token = token = (name, self.token[1] + 1)
            self._is_calling = True
            shell.perform(shell.coordinator.consumer_heartbeat(shell.now_ms, token, request))
            self._is_calling = False
            if token not in shell.replies:
                self.report("waits")
        else:
            super()._call(name, request)

    def _answer(self, one: Client, result: Any) -> str:
        assert isinstance(one, MigratingClient)
        match result:
            case ConsumerHeartbeatResult(error=ErrorCode.NONE):
                return self._beaten(one, result)
            case ConsumerHeartbeatResult(message=str()):
                return f"{result.error.name}: {result.message}"
            case messages.SyncGroupResult(error=ErrorCode.NONE):
                one.owned = numbers(self.share(result.assignment))
            case messages.ListGroupsResult(error=ErrorCode.NONE):
                return " ".join(f"{g.group_type} {g.state}" for few in result.groups for g in few)
            case DescribeConsumerGroupsResult():
                [group] = result.groups
                if group.error is not ErrorCode.NONE:
                    return f"{shown_error(group.error)}: {group.message}"
                kinds = {m.member_id: "classic" if m.is_classic else "" for m in group.members}
                members = " ".join(f"{self.shown(m)} {kind}".rstrip() for m, kind in kinds.items())
                return f"{group.state}, epoch {group.epoch}: {members}"
        return super()._answer(one, result)

    def _beaten(self, one: MigratingClient, result: ConsumerHeartbeatResult) -> str:
        if result.member_epoch < 0:
            return "ok"
        one.epoch = result.member_epoch
        if result.assignment is None:
            return f"epoch {one.epoch}"
        one.owned = set(result.assignment.get(topic_id(1), ()))
        return f"epoch {one.epoch}, has {shown_numbers(one.owned)}"

    def share_bytes(self, share: str) -> bytes:
        if share == "custom":
            return encode_assignment({"t": {0}}, 0)[:-4] + b"\0\0\0\1u"  # with user data
        return encode_assignment({"t": numbers(share)}, 0)

    def share(self, assignment: bytes) -> str:
        found = read_assignment(assignment).partitions
        return ",".join(str(each.partition) for each in found)

    def _on_append(self, append: Append) -> None:
        if self._shows_log:
            self.report(f"log {', '.join(self._record(record) for record in append.records)}")

    def _record(self, record: RecordData) -> str:
        key = read_consumer_key(record.key or b"")
        if key is None:
            return super()._record(record)
        kind = key.type.name.lower().replace("_", " ")
        words = f"{kind} {self.shown(key.name)}" if key.name else kind
        if record.value is None:
            return f"-{words}"
        return f"{words}{self._value(read_value(key, record.value))}"

    def _value(self, value: Value) -> str:
        match value:
            case int():
                return f" {value}"
            case MemberMetadata():
                return "" if value.classic is None else " classic"
            case CurrentAssignment():
                waits = "" if value.state.name == "STABLE" else f" {value.state.name}"
                return f" {value.member_epoch}{waits}{assigned(value.assigned)}"
            case Mapping() if topic_id(1) in value:
                return assigned(value)  # type: ignore[arg-type]
        return ""


def numbers(text: str) -> set[int]:
    """The partitions of `0,1`; `p0` is the partition of the first member of `form a group`."""
    return {int(each.removeprefix("p")) for each in text.split(",") if each}


def shown_numbers(partitions: set[int] | frozenset[int]) -> str:
    return ",".join(map(str, sorted(partitions))) or "nothing"


def owned_of(partitions: set[int]) -> Assignment:
    return {topic_id(1): frozenset(partitions)} if partitions else {}


def assigned(assignment: Assignment) -> str:
    return f" {shown_numbers(assignment[topic_id(1)])}" if assignment else ""
