"""Invalid requests to groups of the consumer protocol (KIP-848), requests with unknown topic ids,
and the answers of a broker.

`scripts/conformance --record-groups` records the answers of Apache Kafka 4 in tests/data/groups;
tests/unit/server/test_group_refusals.py compares ours with them. A case has a group of its own, and
its last request is the invalid one. Members choose their ids, so the answers are the same each
time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from kafkapy.common.errors import ErrorCode
from kafkapy.common.uuid import Uuid
from kafkapy.protocol.messages import consumer_group_heartbeat as beats
from kafkapy.protocol.messages import offset_commit as commits
from kafkapy.protocol.messages import offset_fetch as fetches
from kafkapy.protocol.messages import produce
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest
from kafkapy.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkapy.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kafkapy.protocol.messages.sync_group import SyncGroupRequest
from kafkapy.protocol.schema import Message

DATA: Final = Path(__file__).parents[2] / "data" / "groups" / "refusals.json"
TOPICS: Final = ("t", "u")
"""Topics with one partition each."""
_NUMBER: Final = re.compile(r"(?<=group-)\d+|(?<=\()\d+(?=\))")
UNKNOWN_ID: Final = Uuid(bytes([7] * 16))

Ask = Callable[[int, Message], Message]
"""Send a request in a version, and return its response."""
Request = Callable[[str, int], tuple[int, Message]]
"""Returns the version and the request, for a group and the last epoch of a member."""


def beat(member: str, epoch: int, version: int = 1, **fields: Any) -> Request:
    """A heartbeat with this epoch."""
    return lambda group, _: (version, _heartbeat(group, member, epoch, fields))


def stay(member: str, change: int = 0, version: int = 1, **fields: Any) -> Request:
    """A heartbeat with the last epoch plus `change`."""
    return lambda group, epoch: (version, _heartbeat(group, member, epoch + change, fields))


def _heartbeat(
    group: str, member: str, epoch: int, fields: Mapping[str, Any]
) -> beats.ConsumerGroupHeartbeatRequest:
    return beats.ConsumerGroupHeartbeatRequest(
        group_id=group, member_id=member, member_epoch=epoch, **fields
    )


def join(member: str, **fields: Any) -> Request:
    """A heartbeat that joins."""
    known = {
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": ["t"],
        "topic_partitions": [],
    }
    return beat(member, 0, **{**known, **fields})


def joins_by(regex: str) -> Request:
    """A heartbeat that joins with a regular expression."""
    return join("a", subscribed_topic_names=None, subscribed_topic_regex=regex)


def commit(member: str, change: int = 0, version: int = 9) -> Request:
    """A commit of an offset of topic t; from v10 on, by an unknown id. An administrator has no
    member id.
    """
    row = commits.OffsetCommitRequestPartition(committed_offset=1, committed_metadata="")
    topic = commits.OffsetCommitRequestTopic(name="t", topic_id=UNKNOWN_ID, partitions=[row])
    return lambda group, epoch: (
        version,
        commits.OffsetCommitRequest(
            group_id=group, member_id=member, topics=[topic],
            generation_id_or_member_epoch=epoch + change if member else -1,
        ),
    )  # fmt: skip


def fetch(member: str | None, change: int = 0, version: int = 9) -> Request:
    """A fetch of the offset of topic t; from v10 on, by an unknown topic id."""
    topic = fetches.OffsetFetchRequestTopics(name="t", topic_id=UNKNOWN_ID, partition_indexes=[0])
    return lambda group, epoch: (
        version,
        fetches.OffsetFetchRequest(
            groups=[
                fetches.OffsetFetchRequestGroup(
                    group_id=group,
                    member_id=member,
                    member_epoch=epoch + change if member else -1,
                    topics=[topic],
                )
            ]
        ),
    )


def produced(acks: int) -> Request:
    """A batch for a topic id that is unknown."""
    row = produce.PartitionProduceData(index=0, records=b"")
    topic = produce.TopicProduceData(topic_id=UNKNOWN_ID, partition_data=[row])
    return lambda *_: (
        13,
        produce.ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[topic]),
    )


def classic_join(
    group: str, epoch: int, kind: str = "consumer", protocol: str = "range"
) -> tuple[int, Message]:
    """JoinGroup of a member of the classic protocol."""
    offered = JoinGroupRequestProtocol(name=protocol, metadata=b"")
    return 9, JoinGroupRequest(
        group_id=group, session_timeout_ms=30_000, rebalance_timeout_ms=60_000, member_id="z",
        protocol_type=kind, protocols=[offered],
    )  # fmt: skip


def classic_beat(group: str, epoch: int) -> tuple[int, Message]:
    return 4, HeartbeatRequest(group_id=group, generation_id=epoch, member_id="a")


def classic_sync(group: str, epoch: int) -> tuple[int, Message]:
    return 5, SyncGroupRequest(
        group_id=group, generation_id=epoch, member_id="a", protocol_type="consumer",
        protocol_name="range",
    )  # fmt: skip


def classic_leave(group: str, epoch: int) -> tuple[int, Message]:
    members = [MemberIdentity(member_id="z"), MemberIdentity(member_id="", group_instance_id="i")]
    return 5, LeaveGroupRequest(group_id=group, members=members)


OWNED: Final = [beats.TopicPartitions(topic_id=UNKNOWN_ID, partitions=[0])]
A: Final = join("a")
STATIC: Final = join("a", instance_id="i")
NEXT_EPOCH: Final = (A, stay("a", subscribed_topic_names=["t", "u"]))
REGEXES: Final = (
    *("[", "a(", "a)", "*a", "a**", "a{2000}", "[b-a]", "(?=a)b", "(?P<n", "a\\", "\\8"),
    "[[:a:]]",
)

CASES: Final[dict[str, tuple[Request, ...]]] = {
    "unknown assignor": (join("a", server_assignor="mine"),),
    "unknown assignor of a member": (A, stay("a", server_assignor="mine")),
    **{f"regex {regex}": (joins_by(regex),) for regex in REGEXES},
    "bad regex of a member": (A, stay("a", subscribed_topic_regex="[")),
    "epoch of the future": (A, stay("a", 5)),
    "epoch of the past": (*NEXT_EPOCH, stay("a", -1)),
    "epoch of the past with what was never assigned": (
        *NEXT_EPOCH, stay("a", -1, topic_partitions=OWNED)
    ),
    "epoch of the past with nothing": (*NEXT_EPOCH, stay("a", -1, topic_partitions=[])),
    "epoch -3": (A, beat("a", -3)),
    "dynamic member leaves as a static one": (A, beat("a", -2)),
    "unknown member": (A, stay("b")),
    "unknown member leaves": (A, beat("b", -1)),
    "unknown group": (beat("a", 1),),
    "unknown group is left": (beat("a", -1),),
    "no member id": (beat("", 0, rebalance_timeout_ms=1, subscribed_topic_names=["t"]),),
    "no member id in a group": (A, stay("", version=0)),
    "blank instance id": (join("a", instance_id=""),),
    "blank rack": (join("a", rack_id=""),),
    "joins without a rebalance timeout": (join("a", rebalance_timeout_ms=-1),),
    "joins with partitions": (join("a", topic_partitions=OWNED),),
    "joins without saying that it has none": (join("a", topic_partitions=None),),
    "joins without a subscription": (join("a", subscribed_topic_names=None),),
    "instance that is in use": (STATIC, join("b", instance_id="i")),
    "fenced static member": (
        STATIC, beat("a", -2, instance_id="i"), join("b", instance_id="i"),
        stay("a", instance_id="i"),
    ),
    "fenced static member leaves": (
        STATIC, beat("a", -2, instance_id="i"), join("b", instance_id="i"),
        beat("a", -1, instance_id="i"),
    ),
    "unknown instance": (STATIC, stay("a", instance_id="j")),
    "unknown instance leaves": (STATIC, beat("a", -2, instance_id="j")),
    "commit at an epoch of the past": (*NEXT_EPOCH, commit("a", -1)),
    "commit at an epoch of the future": (A, commit("a", 5)),
    "commit of an unknown member": (A, commit("b")),
    "commit of an administrator": (A, commit("")),
    "commit in a version without epochs": (A, commit("a", version=8)),
    "commit in an unknown group": (commit("a"),),
    "commit in an unknown group, v8": (commit("a", version=8),),
    "commit of an unknown topic id": (A, commit("a", version=10)),
    "commit of an unknown topic id, at an epoch of the future": (A, commit("a", 5, version=10)),
    "fetch at an epoch of the past": (*NEXT_EPOCH, fetch("a", -1)),
    "fetch at an epoch of the future": (A, fetch("a", 5)),
    "fetch of an unknown member": (A, fetch("b")),
    "fetch of an unknown topic id": (A, fetch("a", version=10)),
    "fetch of an unknown topic id, at an epoch of the future": (A, fetch("a", 5, version=10)),
    "fetch of an unknown topic id by nobody": (fetch(None, version=10),),
    "produce to an unknown topic id": (produced(1),),
    "classic member of another kind joins": (A, partial(classic_join, kind="connect")),
    "classic heartbeat of a consumer": (A, classic_beat),
    "classic sync of a consumer": (A, classic_sync),
    "classic members leave": (A, classic_leave),
}  # fmt: skip


def answers(ask: Ask) -> dict[str, list[Any]]:
    """The answer to the last request of each case. The others must succeed."""
    found = {}
    for number, (name, requests) in enumerate(CASES.items()):
        epoch = 0
        for request in requests[:-1]:
            answer: Any = ask(*request(f"group-{number}", epoch))
            assert answer.error_code == ErrorCode.NONE, f"{name}: {answer}"
            epoch = max(epoch, answer.member_epoch)
        found[name] = _errors(ask(*requests[-1](f"group-{number}", epoch)))
    return found


def _errors(response: Any) -> list[Any]:
    """The names of the error codes, and the messages."""
    name = type(response).__name__.removesuffix("Response")
    if name == "ConsumerGroupHeartbeat":
        return [_code(response), without_numbers(response.error_message)]
    rows: list[Any] = [response]
    if name == "Produce":
        rows = [row for topic in response.responses for row in topic.partition_responses]
        return [*map(_code, rows), *(row.error_message for row in rows)]
    if name == "OffsetFetch":
        rows = response.groups
        rows += [row for topic in response.groups[0].topics for row in topic.partitions]
    elif name == "OffsetCommit":
        rows = [row for topic in response.topics for row in topic.partitions]
    elif name == "LeaveGroup":
        rows += response.members
    return [_code(row) for row in rows]


def without_numbers(words: str | None) -> str | None:
    """A message with N for the number of the group and for epochs, which differ."""
    return words and _NUMBER.sub("N", words)


def _code(row: Any) -> str:
    return ErrorCode(row.error_code).name


def recorded(file: Path = DATA) -> dict[str, list[Any]]:
    """The answers of Apache Kafka."""
    found: dict[str, list[Any]] = json.loads(file.read_text())
    return found


def write(found: dict[str, list[Any]], file: Path = DATA) -> None:
    """Record the answers of Apache Kafka."""
    lines = [f"{json.dumps(name)}: {json.dumps(said)}" for name, said in found.items()]
    file.parent.mkdir(exist_ok=True)
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n")
