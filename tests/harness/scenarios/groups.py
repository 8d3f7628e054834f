"""Steps of the scenarios of consumer groups: clients, their coordinator, its log and its clock.

A name is a client's process: it has the last member id and generation that it got, and joins with
the options of its last JoinGroup. `old-a` is an id that `a` had before; an id that no client has
got yet has its instance's name. An outcome without a name answers the step's own request, an
outcome with a name an earlier request. `log` is a batch in `__consumer_offsets`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kafkapy.common.consumer_protocol import subscribed_topics
from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.config import GroupConfig
from kafkapy.coordinator.effects import Append, Producer
from kafkapy.coordinator.groups import messages
from kafkapy.coordinator.groups.group import (
    COMPLETING_REBALANCE,
    PREPARING_REBALANCE,
    STABLE,
    Group,
)
from kafkapy.coordinator.groups.record_codec import (
    OffsetKey,
    read_group_value,
    read_key,
    read_offset_value,
)
from kafkapy.record.builder import RecordData
from tests.harness.cores.group_shell import GroupShell
from tests.harness.scenarios.interpreter import World, duration_ms, pairs, step

UUID_SIZE: Final = 36
JOIN_OPTIONS: Final = frozenset(
    {"group", "instance", "protocols", "rebalance", "session", "topics", "type", "version"}
)


@dataclass
class Client:
    """One consumer process."""

    name: str
    member_id: str = ""
    generation_id: int = -1
    protocol_name: str | None = None
    options: dict[str, str] = field(default_factory=dict)

    @property
    def group_id(self) -> str:
        return self.options.get("group", "g")

    @property
    def protocol_type(self) -> str:
        return self.options.get("type", "consumer").replace("none", "")

    def embedded(self, protocol: str, metadata: bytes) -> bytes:
        """The metadata of one of the client's protocols."""
        return metadata

    def subscription(self) -> bytes:
        return subscription(self.options.get("topics", "t"))

    def expect(self, protocol_type: str | None, protocol_name: str | None) -> None:
        """Fail if an answer does not have the protocol that this client has."""
        assert (protocol_type, protocol_name) == (self.protocol_type, self.protocol_name)

    def join_group(self) -> messages.JoinGroup:
        """A JoinGroup with this client's options."""
        options = self.options
        version = int(options.get("version", 9))
        metadata = self.subscription()
        names = options.get("protocols", "range").split()
        rebalance = options.get("rebalance", "60 s")
        return messages.JoinGroup(
            self.group_id,
            self.member_id,
            self.protocol_type,
            [(name, self.embedded(name, metadata)) for name in names if name != "none"],
            duration_ms(options.get("session", "10 s")),
            -1 if rebalance == "none" else duration_ms(rebalance),
            options.get("instance"),
            client_id=self.name,
            client_host="/127.0.0.1",
            requires_known_member_id=version >= 4,
            supports_skip_assignment=version >= 9,
        )


class GroupWorld(World):
    """The clients of one coordinator."""

    def __init__(self, shell: GroupShell | None = None) -> None:
        super().__init__()
        self.shell = shell or GroupShell(GroupConfig(offsets_topic_num_partitions=1))
        self.shell.on_reply = self._on_reply
        self.shell.on_append = self._on_append
        self.clients: dict[str, Client] = {}
        self.token: tuple[str, int] = ("", 0)
        """The last request: its client's name, and its number."""
        self._is_calling = False
        self._names: dict[str, str] = {}
        """The client of each member id."""

    def group(self, group_id: str = "g") -> Group | None:
        return self.shell.coordinator._core.registry.find(group_id)

    # Members.

    def configure(self, client: str, **options: str) -> None:
        """Set options of the client's next JoinGroup, and of those that follow."""
        assert options.keys() <= JOIN_OPTIONS, f"no such option: {options.keys() - JOIN_OPTIONS}"
        self.client(client).options |= options

    @step("{client} joins")
    def joins(self, client: str, **options: str) -> None:
        """JoinGroup, and another one with the id that MEMBER_ID_REQUIRED brings (KIP-394)."""
        self.asks_for_an_id(client, **options)
        if self._outcomes[-1:] == [ErrorCode.MEMBER_ID_REQUIRED.name]:
            self._outcomes.pop()
            self.asks_for_an_id(client)

    @step("{client} asks for an id")
    def asks_for_an_id(self, client: str, **options: str) -> None:
        self.configure(client, **options)
        self._call(client, self.client(client).join_group())

    @step("{client} joins anew")
    def joins_anew(self, client: str, **options: str) -> None:
        """The client has lost its id."""
        self.client(client).member_id = ""
        self.joins(client, **options)

    @step("{client} makes up an id")
    def makes_up_an_id(self, client: str) -> None:
        self.client(client).member_id = client
        self.client(client).generation_id = 1

    @step("{clients...} have joined")
    def have_joined(self, clients: str, instances: str = "", **options: str) -> None:
        """The first members of a group, in this order: CompletingRebalance in generation 1."""
        names = clients.split(" and ")
        for name, instance in zip(names, instances.split() or [""] * len(names), strict=True):
            self.joins(name, **options, **({"instance": instance} if instance else {}))
        group = self.group(self.client(names[0]).group_id)
        assert group is not None
        while group.state is PREPARING_REBALANCE:
            self.shell.advance(3_000)
        self._outcomes.clear()
        assert (group.state, group.generation_id) == (COMPLETING_REBALANCE, 1)
        assert [self.shown(member_id) for member_id in group.members] == names

    @step("{clients...} form a group")
    def form_a_group(self, clients: str, **options: str) -> None:
        """They have joined and synced: Stable. The first has p0, the second p1, and so on."""
        self.have_joined(clients, **options)
        names = clients.split(" and ")
        for name in reversed(names):
            gives = " ".join(f"{each}=p{i}" for i, each in enumerate(names))
            self.syncs(name, giving=gives if name == names[0] else "")
        self._outcomes.clear()
        group = self.group(self.client(names[0]).group_id)
        assert group is not None
        assert group.state is STABLE

    @step("{client} syncs")
    def syncs(self, client: str, giving: str = "", **options: str) -> None:
        shares = pairs(giving).items()
        assignments = {self.client(c).member_id: self.share_bytes(p) for c, p in shares}
        name, kind = options.pop("protocol", None), options.pop("type", None)
        identity = self._identity(client, **options)
        request = messages.SyncGroup(*identity, kind, name, assignments)
        self._call(client, request)

    @step("{client} heartbeats")
    def heartbeats(self, client: str, **options: str) -> None:
        self._call(client, messages.Heartbeat(*self._identity(client, **options)))

    @step("{client} leaves")
    def leaves(self, client: str) -> None:
        self._leave(client, [client])

    @step("LeaveGroup of {members...}")
    def leave_group(self, members: str) -> None:
        """Members by name, as `id/instance`, or as `/instance`, as administrators send it."""
        self._leave("admin", members.split())

    def _leave(self, asker: str, words: list[str]) -> None:
        leaving = []
        for word in words:
            name, _, instance = word.partition("/")
            one = self.clients.get(name, Client(name, name))
            instance = instance or one.options.get("instance", "")
            leaving.append(messages.LeavingMember(one.member_id, instance or None))
        self._call(asker, messages.LeaveGroup(self.client(asker).group_id, leaving))

    @step("the client disconnects")
    def disconnects(self) -> None:
        """The answer to the last request is dropped."""
        self.shell.coordinator.drop_token(self.token)

    # Offsets.

    @step("{client} commits {offsets...}")
    def commits(
        self,
        client: str,
        offsets: str,
        epoch: str = "-1",
        metadata: str | None = None,
        retention: str = "-1 ms",
        producer: str = "",
        **options: str,
    ) -> None:
        """A client that has not joined commits without a group. Transactional commits are those of
        TxnOffsetCommit below version 6.
        """
        group_id, generation_id, member_id, instance_id = self._identity(client, **options)
        rows = {
            partition(name): messages.OffsetToCommit(int(offset), int(epoch), metadata)
            for name, offset in pairs(offsets).items()
        }
        request = messages.CommitOffsets(
            group_id,
            rows,
            generation_id,
            member_id,
            instance_id,
            duration_ms(retention),
            Producer(int(producer), 0) if producer else None,
            may_have_member_epoch=not producer,
        )
        self._call(client, request)

    @step("the transaction of producer {producer} is {outcome}")
    def transaction_ends(self, producer: str, outcome: str) -> None:
        committed = {"committed": True, "aborted": False}[outcome]
        self.shell.coordinator.end_transaction(0, int(producer), committed=committed)

    @step("fetch offsets", "fetch offsets of {partitions...}")
    def fetch_offsets(
        self, partitions: str = "", stable: str | None = None, group: str = "g"
    ) -> None:
        rows = [partition(name) for name in partitions.split()]
        request = messages.FetchOffsets(group, rows or None, require_stable=stable is not None)
        self._call("admin", request)

    @step("delete offsets of {partitions...}")
    def delete_offsets(self, partitions: str) -> None:
        request = messages.DeleteOffsets("g", [partition(name) for name in partitions.split()])
        self._call("admin", request)

    @step("the retention check runs")
    def retention_check(self) -> None:
        self.shell.expire_offsets()

    @step("partitions {partitions...} are deleted")
    def partitions_are_deleted(self, partitions: str) -> None:
        gone = [partition(name) for name in partitions.split()]
        coordinator, time_ms = self.shell.coordinator, self.shell.clock.time_ms()
        self.shell.perform(coordinator.on_partitions_deleted(gone, time_ms))

    # Groups.

    @step("describe {groups...}")
    def describe(self, groups: str) -> None:
        self._call("admin", messages.DescribeGroups(groups.split()))

    @step("list groups")
    def list_groups(self, states: str = "", types: str = "") -> None:
        self._call("admin", messages.ListGroups(states.split(), types.split()))

    @step("delete groups {groups...}")
    def delete_groups(self, groups: str) -> None:
        self._call("admin", messages.DeleteGroups(groups.split()))

    # The broker.

    @step("the broker has {key}={value}")
    def the_broker_has(self, key: str, value: str) -> None:
        core = self.shell.coordinator._core
        core.config = replace(core.config, **{key.replace(".", "_"): int(value)})

    @step("{number} {unit} pass", "{number} {unit} passes")
    def time_passes(self, number: str, unit: str) -> None:
        self.shell.advance(duration_ms(f"{number} {unit}"))

    @step("appends wait")
    def appends_wait(self) -> None:
        self.shell.hold()

    @step("the waiting appends succeed", "the waiting appends fail with {error}")
    def appends_go_on(self, error: str = "NONE") -> None:
        self.shell.release(ErrorCode[error])

    @step("appends succeed", "appends fail with {error}")
    def appends_fail(self, error: str = "NONE") -> None:
        self.shell.append_error = ErrorCode[error]

    @step("another broker takes over")
    def another_broker_takes_over(self) -> None:
        """The other broker loads the log."""
        shell = self.shell
        shell.perform(shell.coordinator.unload(0))
        shell.config = shell.coordinator._core.config
        shell.coordinator = shell.replayed()

    @step("the partition moves away")
    def partition_moves_away(self) -> None:
        self.shell.perform(self.shell.coordinator.unload(0))

    @step("the partition comes back")
    def partition_comes_back(self) -> None:
        self.shell.load(self.shell.coordinator, leader_epoch=6)

    @step("the broker shuts down")
    def shuts_down(self) -> None:
        self.shell.perform(self.shell.coordinator.shutdown())

    @step("the next deadline")
    def next_deadline(self) -> None:
        deadline_ms = self.shell.coordinator.next_deadline_ms()
        self.report("none" if deadline_ms is None else f"in {deadline_ms - self.shell.now_ms} ms")

    @step("the number of waiting requests")
    def waiting(self) -> None:
        self.report(str(len(self.shell.coordinator._core.outbox._token_by_ticket)))

    # Requests and their answers.

    def client(self, name: str) -> Client:
        return self.clients.setdefault(name, self.new_client(name))

    def new_client(self, name: str) -> Client:
        return Client(name)

    def _identity(self, name: str, **options: str) -> tuple[str, int, str, str | None]:
        """Group, generation, member and instance, unless an option says otherwise."""
        one = self.client(name)
        assert options.keys() <= {"generation", "group", "instance"}, options
        generation_id = int(options.get("generation", one.generation_id))
        instance = options.get("instance", one.options.get("instance"))
        instance_id = None if instance == "none" else instance
        return options.get("group", one.group_id), generation_id, one.member_id, instance_id

    def _call(self, name: str, request: Any) -> None:
        """Call the coordinator's method of the request's name."""
        shell = self.shell
        method = re.sub("(?<=[a-z])([A-Z])", r"_\1", type(request).__name__).lower()
        self.token = token = (name, self.token[1] + 1)
        self._is_calling = True
        shell.perform(getattr(shell.coordinator, method)(shell.now_ms, token, request))
        self._is_calling = False
        if token not in shell.replies:
            self.report("waits")

    def _on_reply(self, token: tuple[str, int], result: Any) -> None:
        shown = self._answer(self.client(token[0]), result)
        is_own = self._is_calling and token == self.token
        self.report(shown if is_own else f"{token[0]}: {shown}")

    def _answer(self, one: Client, result: Any) -> str:
        match result:
            case messages.JoinGroupResult():
                return self._joined(one, result)
            case messages.SyncGroupResult(error=ErrorCode.NONE):
                one.expect(result.protocol_type, result.protocol_name)
                return f"gets {self.share(result.assignment) or 'nothing'}"
            case messages.LeaveGroupResult(error=ErrorCode.NONE):
                return " ".join(shown_error(error) for _, error in result.members)
            case messages.CommitOffsetsResult() | messages.DeleteGroupsResult():
                errors = {name: shown_error(error) for name, error in result.errors.items()}
                [error, *others] = set(errors.values())
                return rows(errors) if others else error
            case messages.DeleteOffsetsResult(error=ErrorCode.NONE):
                return rows({name: shown_error(error) for name, error in result.errors.items()})
            case messages.FetchOffsetsResult(error=ErrorCode.NONE):
                return rows({p: shown_offset(offset) for p, offset in result.offsets.items()})
            case messages.DescribeGroupsResult():
                return " | ".join(map(self._described, result.groups))
            case messages.ListGroupsResult(error=ErrorCode.NONE):
                return " ".join(g.group_id for piece in result.groups for g in piece) or "nothing"
            case _:
                return shown_error(result.error)

    def _joined(self, one: Client, result: messages.JoinGroupResult) -> str:
        had_id = bool(one.member_id)
        if result.member_id:
            one.member_id = result.member_id
            self._names[result.member_id] = one.name
        if result.error is not ErrorCode.NONE:
            return result.error.name + (" without id" if had_id and not result.member_id else "")
        one.generation_id, one.protocol_name = result.generation_id, result.protocol_name
        one.expect(result.protocol_type, result.protocol_name)
        for row in result.members:
            if row.member_id in self._names:
                owner = self.clients[self._names[row.member_id]]
                assert row.group_instance_id == owner.options.get("instance")
        members = " ".join(self.shown(row.member_id, row.metadata) for row in result.members)
        leads = result.leader == one.member_id
        role = "leads" if leads else " ".join(["follows", self.shown(result.leader)])
        skips = ", assigns nothing" if result.skip_assignment else ""
        generation = f"generation {result.generation_id}{not_range(result.protocol_name)}"
        return f"{generation}, {role} {members}".rstrip() + skips

    def _described(self, group: messages.DescribedGroup) -> str:
        if group.error is not ErrorCode.NONE:
            return group.error.name
        if group.state != STABLE:
            assert {group.protocol_data, *(m.metadata for m in group.members)} <= {"", b""}
        shares = {self.shown(m.member_id): self.share(m.assignment) for m in group.members}
        return f"{group.state}: {held(shares)}" if shares else group.state

    def _on_append(self, append: Append) -> None:
        deletes = all(record.value is None for record in append.records)
        assert append.required_acks == -1 or deletes
        assert {r.timestamp for r in append.records} == {self.shell.clock.time_ms()}
        batch = ", ".join(self._record(record) for record in append.records)
        producer = f" by producer {append.producer.producer_id}" if append.producer else ""
        self.report(f"log {batch}{producer}")

    def _record(self, record: RecordData) -> str:
        key = read_key(record.key or b"")
        assert key is not None
        of_group = "" if key.group_id == "g" else f"{key.group_id}: "
        if isinstance(key, OffsetKey):
            value = record.value
            shown = " deleted" if value is None else f"={read_offset_value(value).offset}"
            return f"{of_group}{key.topic_partition}{shown}"
        if record.value is None:
            return f"group {key.group_id} deleted"
        group = read_group_value(record.value)
        generation = f"{of_group}generation {group.generation_id}"
        if not group.members:
            assert (group.protocol_name, group.leader_id) == (None, None)
            return f"{generation}, empty"
        shares = {self.shown(m.member_id): self.share(m.assignment) for m in group.members}
        leader = self.shown(group.leader_id or "")
        return f"{generation}{not_range(group.protocol_name)}, leader {leader}: {held(shares)}"

    def share_bytes(self, share: str) -> bytes:
        """The assignment that a leader gives."""
        return share.encode()

    def share(self, assignment: bytes) -> str:
        return assignment.decode()

    # Names.

    def shown(self, member_id: str, metadata: bytes | None = None) -> str:
        """A member by the name of its client, with its topics if they are not `t` alone."""
        name = self._names.get(member_id)
        if name is None:
            shown = member_id[:-UUID_SIZE].rstrip("-") or "nobody"
        else:
            shown = name if self.clients[name].member_id == member_id else f"old-{name}"
        if metadata is not None and metadata != subscription("t"):
            topics = subscribed_topics([metadata])
            shown += "(?)" if topics is None else f"({','.join(sorted(topics))})"
        return shown


def partition(name: str) -> TopicPartition:
    topic, _, index = name.rpartition("-")
    return TopicPartition(topic, int(index))


def subscription(topics: str) -> bytes:
    """A consumer's subscription v0 to these topics; `opaque` is one that cannot be read."""
    if topics == "opaque":
        return b"opaque"
    names = [len(topic).to_bytes(2) + topic.encode() for topic in topics.split()]
    return b"".join([b"\0\0", len(names).to_bytes(4), *names, bytes(4)])


def not_range(protocol_name: str | None) -> str:
    """The protocol, if it is not the default of the clients."""
    return "" if protocol_name == "range" else f" {protocol_name}"


def shown_error(error: ErrorCode) -> str:
    return "ok" if error is ErrorCode.NONE else error.name


def shown_offset(row: messages.FetchedOffset) -> str:
    if row.error is not ErrorCode.NONE:
        return row.error.name
    if row.offset < 0:
        return "none"
    epoch = "" if row.leader_epoch < 0 else f"@{row.leader_epoch}"
    return f"{row.offset}{epoch}" + (f"({row.metadata})" if row.metadata else "")


def rows(columns: Mapping[Any, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in columns.items()) or "nothing"


def held(shares: dict[str, str]) -> str:
    """Members and their assignments; a member without one is only named."""
    return " ".join(f"{name}={share}" if share else name for name, share in shares.items())
