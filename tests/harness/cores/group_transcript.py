"""Runs a transcript of group members: each `> command`, and under it all that then happened.

Clients have names. The ids that a client is given are shown as `a.1`, `a.2`, in order; `i1?` is an
id of instance i1 that no client has heard of. Commands:
    join NAME [instance=I] [v=9] [protocols=p,q] [topics=t] [session=MS] [rebalance=MS]
                                    with NAME's latest id
    sync|heartbeat|leave NAME [id=a.1] [generation=N] [instance=I]
                                    as NAME was last told, unless said otherwise
    sync NAME give a=X b=Y          with the leader's assignment
    leave instance=I                as an administrator
    commit NAME|- PARTITION=OFFSET  `-`: not as a member
    fetch [stable] | describe | delete
    advance MS                      whatever happens, happens at its time
    hold | release [ERROR]          appends wait | are done
    failover                        another broker loads the log
    size N                          sets group.max.size
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.config import GroupConfig
from kafkapy.coordinator.effects import Append
from kafkapy.coordinator.groups.messages import (
    CommitOffsets,
    CommitOffsetsResult,
    DeleteGroups,
    DescribeGroups,
    FetchOffsets,
    Heartbeat,
    HeartbeatResult,
    JoinGroup,
    JoinGroupResult,
    LeaveGroup,
    LeavingMember,
    OffsetToCommit,
    SyncGroup,
    SyncGroupResult,
)
from kafkapy.coordinator.groups.record_codec import (
    OffsetKey,
    read_group_value,
    read_key,
    read_offset_value,
)
from tests.harness.cores.group_shell import REBALANCE_MS, SESSION_MS, T0, T1, GroupShell

PARTITIONS = {str(T0): T0, str(T1): T1}


def run(text: str) -> str:
    """The transcript as it really goes: the commands of `text` with what happened under each."""
    commands = [line for line in text.splitlines() if line.startswith(("> ", "# "))]
    transcript = _Transcript()
    for line in commands:
        transcript.lines.append(line)
        if line.startswith("> "):
            transcript.command(line.removeprefix("> ").split())
    return "\n".join(transcript.lines) + "\n"


class _Transcript:
    def __init__(self) -> None:
        self.shell = GroupShell(GroupConfig(offsets_topic_num_partitions=1))
        self.lines: list[str] = []
        self.member_ids: dict[str, list[str]] = {}
        self.generations: dict[str, int] = {}
        self.clients: dict[Any, str] = {}
        self._logged = 0
        self.shell.on_reply = self.on_reply

    def command(self, words: list[str]) -> None:
        verb, *rest = words
        flags = dict(word.split("=", 1) for word in rest if "=" in word)
        names = [word for word in rest if "=" not in word]
        getattr(self, f"do_{verb}")(names, flags)
        self.log_appended()

    # Commands.

    def do_join(self, names: list[str], flags: dict[str, str]) -> None:
        topics = flags.get("topics", "t").split(",")
        protocols = flags.get("protocols", "range").split(",")
        metadata = b"".join(
            [b"\0\1", len(topics).to_bytes(4), *(b"\0\1" + t.encode() for t in topics)]
        )
        version = int(flags.get("v", 9))
        request = JoinGroup(
            "g",
            self.member_id(names[0], flags),
            "consumer",
            [(p, metadata) for p in protocols],
            int(flags.get("session", SESSION_MS)),
            int(flags.get("rebalance", REBALANCE_MS)),
            group_instance_id=flags.get("instance"),
            client_id=names[0],
            requires_known_member_id=version >= 4,
            supports_skip_assignment=version >= 9,
        )
        self.ask(names[0], self.shell.coordinator.join_group, request)

    def do_sync(self, names: list[str], flags: dict[str, str]) -> None:
        name = names[0]
        gives = {k: v for k, v in flags.items() if k in self.member_ids} if "give" in names else {}
        assignments = {self.member_ids[k][-1]: v.encode() for k, v in gives.items()}
        request = SyncGroup(*self._as_member(name, flags), assignments=assignments)
        self.ask(name, self.shell.coordinator.sync_group, request)

    def do_heartbeat(self, names: list[str], flags: dict[str, str]) -> None:
        request = Heartbeat(*self._as_member(names[0], flags))
        self.ask(names[0], self.shell.coordinator.heartbeat, request)

    def _as_member(self, name: str, flags: dict[str, str]) -> tuple[str, int, str, str | None]:
        generation_id = int(flags.get("generation", self.generations.get(name, -1)))
        return "g", generation_id, self.member_id(name, flags), flags.get("instance")

    def do_leave(self, names: list[str], flags: dict[str, str]) -> None:
        member_id = self.member_id(names[0], flags) if names else ""
        request = LeaveGroup("g", [LeavingMember(member_id, flags.get("instance"))])
        self.ask(names[0] if names else "admin", self.shell.coordinator.leave_group, request)

    def do_commit(self, names: list[str], flags: dict[str, str]) -> None:
        name = names[0]
        offsets = {PARTITIONS[p]: OffsetToCommit(int(o)) for p, o in flags.items()}
        request = CommitOffsets("g", offsets)
        if name != "-":
            request.generation_id = self.generations[name]
            request.member_id = self.member_id(name, {})
        self.ask(name, self.shell.coordinator.commit_offsets, request)

    def do_size(self, names: list[str], _flags: dict[str, str]) -> None:
        core = self.shell.coordinator._core
        core.config = replace(core.config, group_max_size=int(names[0]))

    def do_fetch(self, names: list[str], _flags: dict[str, str]) -> None:
        request = FetchOffsets("g", require_stable="stable" in names)
        self.ask("admin", self.shell.coordinator.fetch_offsets, request)

    def do_describe(self, _names: list[str], _flags: dict[str, str]) -> None:
        self.ask("admin", self.shell.coordinator.describe_groups, DescribeGroups(["g"]))

    def do_delete(self, _names: list[str], _flags: dict[str, str]) -> None:
        self.ask("admin", self.shell.coordinator.delete_groups, DeleteGroups(["g"]))

    def do_advance(self, names: list[str], _flags: dict[str, str]) -> None:
        self.shell.advance(int(names[0]))

    def do_hold(self, _names: list[str], _flags: dict[str, str]) -> None:
        self.shell.hold()

    def do_release(self, names: list[str], _flags: dict[str, str]) -> None:
        self.shell.release(ErrorCode[names[0]] if names else ErrorCode.NONE)

    def do_failover(self, _names: list[str], _flags: dict[str, str]) -> None:
        shell = self.shell
        shell.perform(shell.coordinator.unload(0))
        shell.config = shell.coordinator._core.config
        shell.coordinator = shell.replayed()

    # What happened.

    def ask(self, name: str, method: Any, request: Any) -> None:
        self.shell._tokens += 1
        token = (name, self.shell._tokens)
        self.shell.perform(method(self.shell.now_ms, token, request))
        if token not in self.shell.replies:
            self.say(f"{name} waits")

    def say(self, line: str) -> None:
        self.log_appended()
        self.lines.append(f"{self.shell.now_ms:>6} {line}")

    def member_id(self, name: str, flags: dict[str, str]) -> str:
        ids = self.member_ids.get(name, [])
        if "id" in flags:
            wanted = flags["id"]
            if wanted == "none":
                return ""
            client, _, index = wanted.partition(".")
            return self.member_ids[client][int(index) - 1]
        return ids[-1] if ids else ""

    def shown(self, member_id: str) -> str:
        for name, ids in self.member_ids.items():
            if member_id in ids:
                return f"{name}.{ids.index(member_id) + 1}"
        uuid_size = 37
        return f"{member_id[:-uuid_size]}?" if member_id else "-"

    def on_reply(self, token: Any, result: Any) -> None:
        name = token[0]
        if isinstance(result, JoinGroupResult) and result.member_id:
            ids = self.member_ids.setdefault(name, [])
            if result.member_id not in ids:
                ids.append(result.member_id)
        self.say(f"{name} <- {self.told(name, result)}")

    def told(self, name: str, result: Any) -> str:
        error = getattr(result, "error", ErrorCode.NONE).name
        if isinstance(result, JoinGroupResult):
            return self._told_join(name, result)
        if isinstance(result, SyncGroupResult):
            return (
                f"SyncGroup {result.assignment.decode()!r}"
                if error == "NONE"
                else f"SyncGroup {error}"
            )
        if isinstance(result, HeartbeatResult):
            return f"Heartbeat {error}"
        if isinstance(result, CommitOffsetsResult):
            return "OffsetCommit " + _row({str(p): e.name for p, e in result.errors.items()})
        return f"{type(result).__name__.removesuffix('Result')} {self._told_admin(result)}"

    def _told_join(self, name: str, result: JoinGroupResult) -> str:
        as_whom = self.shown(result.member_id)
        if result.error is not ErrorCode.NONE:
            return f"JoinGroup {result.error.name} as {as_whom}"
        self.generations[name] = result.generation_id
        members = ",".join(self.shown(member.member_id) for member in result.members)
        parts = [
            f"JoinGroup generation {result.generation_id} as {as_whom}",
            f"leader {self.shown(result.leader)}",
            f"{result.protocol_name}",
            *([f"members {members}"] if members else []),
            *(["skips assignment"] if result.skip_assignment else []),
        ]
        return ", ".join(parts)

    def _told_admin(self, result: Any) -> str:
        match type(result).__name__:
            case "LeaveGroupResult":
                return ",".join(error.name for _, error in result.members)
            case "FetchOffsetsResult":
                rows = result.offsets.items()
                return _row({str(p): o.error.name if o.error else o.offset for p, o in rows})
            case "DescribeGroupsResult":
                group = result.groups[0]
                members = [
                    f"{self.shown(m.member_id)}:{m.assignment.decode()}" for m in group.members
                ]
                return " ".join([group.state, group.error.name, *members])
            case _:
                return _row({name: error.name for name, error in result.errors.items()})

    def log_appended(self) -> None:
        new, self._logged = self.shell.appends[self._logged :], len(self.shell.appends)
        for append in new:
            self.lines.append(f"{self.shell.now_ms:>6} log {self._append(append)}")

    def _append(self, append: Append) -> str:
        rows = []
        for record in append.records:
            key = read_key(record.key or b"")
            assert key is not None
            offset = isinstance(key, OffsetKey)
            what = str(key.topic_partition) if isinstance(key, OffsetKey) else f"group {key[0]}"
            if record.value is None:
                rows.append(f"{what} deleted")
            elif offset:
                rows.append(f"{what}={read_offset_value(record.value).offset}")
            else:
                value = read_group_value(record.value)
                members = [f"{self.shown(m[0])}:{m.assignment.decode()}" for m in value.members]
                rows.append(" ".join([f"{what} generation {value.generation_id}", *members]))
        return ", ".join(rows)


def _row(columns: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in columns.items()) or "nothing"
