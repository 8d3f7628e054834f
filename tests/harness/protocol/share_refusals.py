"""Invalid requests to share groups (KIP-932), and to groups of another type, and the answers of a
broker.

`scripts/conformance --record-groups` records the answers of Apache Kafka 4 in tests/data/groups;
tests/integration/test_served_share_groups.py compares ours with them. A case has a group of its
own, and its last request is the invalid one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from kafkapy.common.errors import ErrorCode
from kafkapy.common.uuid import Uuid
from kafkapy.protocol.messages import alter_share_group_offsets as alters
from kafkapy.protocol.messages import consumer_group_heartbeat as consumer
from kafkapy.protocol.messages import delete_share_group_offsets as deletes
from kafkapy.protocol.messages import describe_share_group_offsets as offsets
from kafkapy.protocol.messages import share_acknowledge as acknowledges
from kafkapy.protocol.messages import share_fetch as fetches
from kafkapy.protocol.messages import share_group_describe as describes
from kafkapy.protocol.messages import share_group_heartbeat as beats
from kafkapy.protocol.schema import Message, Struct
from tests.harness.protocol.group_refusals import UNKNOWN_ID, Ask, classic_join, without_numbers

DATA: Final = Path(__file__).parents[2] / "data" / "groups" / "share_refusals.json"
LAST: Final = 2
"""The last offset of partition 0."""
ACCEPT, RELEASE, RENEW = 1, 2, 4


class CaseContext(NamedTuple):
    """The group of a case, its topic, and the last epoch of each member."""

    group: str
    topic: str
    topic_id: Uuid
    epochs: Mapping[str, int]


Request = Callable[[CaseContext], tuple[int, Message]]
"""Returns the version and the request."""


def beat(member: str, epoch: int, **fields: Any) -> Request:
    """A heartbeat with this epoch."""
    return lambda context: (1, _heartbeat(context, member, epoch, fields))


def stay(member: str, change: int = 0, **fields: Any) -> Request:
    """A heartbeat with the member's last epoch plus `change`."""
    return lambda context: (
        1, _heartbeat(context, member, context.epochs.get(member, 1) + change, fields),
    )  # fmt: skip


def _heartbeat(
    context: CaseContext, member: str, epoch: int, fields: dict[str, Any]
) -> beats.ShareGroupHeartbeatRequest:
    return beats.ShareGroupHeartbeatRequest(
        group_id=context.group, member_id=member, member_epoch=epoch, **fields
    )


def join(member: str, **fields: Any) -> Request:
    """A heartbeat that joins."""
    return lambda context: (
        1, _heartbeat(context, member, 0, {"subscribed_topic_names": [context.topic], **fields}),
    )  # fmt: skip


def consumer_join(context: CaseContext) -> tuple[int, Message]:
    """A member of the consumer protocol joins."""
    return 1, consumer.ConsumerGroupHeartbeatRequest(
        group_id=context.group, member_id="c", member_epoch=0, rebalance_timeout_ms=60_000,
        subscribed_topic_names=[context.topic], topic_partitions=[],
    )  # fmt: skip


def alter(offset: int = 0, topic: str | None = None, partition: int = 0) -> Request:
    """Set the offset at which a share partition begins."""

    def made(context: CaseContext) -> tuple[int, Message]:
        row = alters.AlterShareGroupOffsetsRequestPartition(
            partition_index=partition, start_offset=offset
        )
        rows = alters.AlterShareGroupOffsetsRequestTopic(
            topic_name=context.topic if topic is None else topic, partitions=[row]
        )
        return 0, alters.AlterShareGroupOffsetsRequest(group_id=context.group, topics=[rows])

    return made


def delete(topic: str) -> Request:
    """Delete the offsets of a topic."""
    row = deletes.DeleteShareGroupOffsetsRequestTopic(topic_name=topic)
    return lambda context: (
        0, deletes.DeleteShareGroupOffsetsRequest(group_id=context.group, topics=[row]),
    )  # fmt: skip


def describe_offsets(context: CaseContext) -> tuple[int, Message]:
    group = offsets.DescribeShareGroupOffsetsRequestGroup(group_id=context.group, topics=None)
    return 1, offsets.DescribeShareGroupOffsetsRequest(groups=[group])


def describe(context: CaseContext) -> tuple[int, Message]:
    return 1, describes.ShareGroupDescribeRequest(group_ids=[context.group])


class Batch(NamedTuple):
    """Acknowledgements of the offsets from `first` to `last`."""

    first: int
    last: int
    types: tuple[int, ...] = (ACCEPT,)


def fetch(
    epoch: int, *batches: Batch, member: str | None = "a", topic_id: Uuid | None = None,
    partition: int = 0, version: int = 2, **fields: Any,
) -> Request:  # fmt: skip
    """ShareFetch of one partition."""

    def made(context: CaseContext) -> tuple[int, Message]:
        row = fetches.FetchPartition(
            partition_index=partition,
            acknowledgement_batches=_batches(fetches.AcknowledgementBatch, batches),
        )
        topic = fetches.FetchTopic(topic_id=topic_id or context.topic_id, partitions=[row])
        known = {"min_bytes": 1, "max_wait_ms": 0, "max_records": 100, "batch_size": 100}
        return version, fetches.ShareFetchRequest(
            group_id=context.group, member_id=member, share_session_epoch=epoch, topics=[topic],
            **{**known, **fields},
        )  # fmt: skip

    return made


def acknowledge(
    epoch: int, *batches: Batch, member: str | None = "a", topic_id: Uuid | None = None,
    partition: int = 0, version: int = 2, **fields: Any,
) -> Request:  # fmt: skip
    """ShareAcknowledge of one partition."""

    def made(context: CaseContext) -> tuple[int, Message]:
        row = acknowledges.AcknowledgePartition(
            partition_index=partition,
            acknowledgement_batches=_batches(acknowledges.AcknowledgementBatch, batches),
        )
        topic = acknowledges.AcknowledgeTopic(
            topic_id=topic_id or context.topic_id, partitions=[row]
        )
        return version, acknowledges.ShareAcknowledgeRequest(
            group_id=context.group, member_id=member, share_session_epoch=epoch, topics=[topic],
            **fields,
        )  # fmt: skip

    return made


def _batches(kind: Any, batches: Sequence[Batch]) -> list[Any]:
    return [
        kind(first_offset=batch.first, last_offset=batch.last, acknowledge_types=[*batch.types])
        for batch in batches
    ]


A: Final = join("a")
INITIALIZED: Final = alter()
ACQUIRED: Final = (INITIALIZED, fetch(0, max_wait_ms=10_000))
WHOLE: Final = Batch(0, LAST)
SECOND: Final = Batch(1, 1)

CASES: Final[dict[str, tuple[Request, ...]]] = {
    "unknown member": (A, stay("b")),
    "unknown member leaves": (A, beat("b", -1)),
    "unknown group": (beat("a", 1),),
    "unknown group is left": (beat("a", -1),),
    "epoch of the future": (A, stay("a", 5)),
    "epoch of the past": (
        A, join("b"), stay("a"), join("c"), stay("a"), stay("a", -2)
    ),
    "epoch -3": (A, beat("a", -3)),
    "leaves as a static member": (A, beat("a", -2)),
    "no member id": (join(""),),
    "blank rack": (join("a", rack_id=""),),
    "joins without a subscription": (beat("a", 0),),
    "joins with an empty subscription": (join("a", subscribed_topic_names=[]),),
    "share member in a consumer group": (consumer_join, A),
    "share heartbeat in a consumer group": (consumer_join, stay("c")),
    "consumer in a share group": (A, consumer_join),
    "classic member in a share group": (A, lambda context: classic_join(context.group, 0)),
    "describe an unknown group": (describe,),
    "describe a consumer group": (consumer_join, describe),
    "offsets of an unknown group": (describe_offsets,),
    "offsets of a consumer group": (consumer_join, describe_offsets),
    "alter with members": (A, INITIALIZED),
    "alter of a consumer group": (consumer_join, INITIALIZED),
    "alter of an unknown topic": (alter(topic="nowhere"),),
    "alter of an unknown partition": (alter(partition=9),),
    "alter without a topic": (alter(topic=""),),
    "delete of an unknown group": (delete("t"),),
    "delete of an unknown topic": (INITIALIZED, delete("nowhere")),
    "delete with members": (A, delete("t")),
    "acknowledge before anything is acquired": (
        INITIALIZED, fetch(0, max_records=0), acknowledge(1, WHOLE)
    ),
    "acknowledge beyond the last": (*ACQUIRED, acknowledge(1, Batch(0, LAST + 1))),
    "acknowledge far beyond the last": (*ACQUIRED, acknowledge(1, Batch(50, 60))),
    "acknowledge before the first": (
        alter(offset=1), fetch(0, max_wait_ms=10_000), acknowledge(1, Batch(0, 0))
    ),
    "acknowledge what was accepted": (*ACQUIRED, acknowledge(1, SECOND), acknowledge(2, SECOND)),
    "acknowledge what was finished": (
        *ACQUIRED, acknowledge(1, Batch(0, 0)), acknowledge(2, Batch(0, 0))
    ),
    "acknowledge what was released": (
        *ACQUIRED, acknowledge(1, Batch(1, 1, (RELEASE,))), acknowledge(2, SECOND)
    ),
    "acknowledge what another has": (
        *ACQUIRED, fetch(0, member="b"), acknowledge(1, WHOLE, member="b")
    ),
    "accept a part that another has": (
        *ACQUIRED, fetch(0, member="b"), acknowledge(1, SECOND, member="b")
    ),
    "acknowledge with a fetch what was accepted": (
        *ACQUIRED, acknowledge(1, SECOND), fetch(2, SECOND)
    ),
    "unknown kind": (*ACQUIRED, acknowledge(1, Batch(0, LAST, (9,)))),
    "negative kind": (*ACQUIRED, acknowledge(1, Batch(0, LAST, (-1,)))),
    "no kind": (*ACQUIRED, acknowledge(1, Batch(0, LAST, ()))),
    "kinds of fewer records": (*ACQUIRED, acknowledge(1, Batch(0, LAST, (ACCEPT, ACCEPT)))),
    "kinds of more records": (*ACQUIRED, acknowledge(1, Batch(0, 0, (ACCEPT, ACCEPT)))),
    "no batch": (*ACQUIRED, acknowledge(1)),
    "first behind last": (*ACQUIRED, acknowledge(1, Batch(1, 0))),
    "negative offset": (*ACQUIRED, acknowledge(1, Batch(-1, 0))),
    "batches that overlap": (*ACQUIRED, acknowledge(1, Batch(0, 1), Batch(1, LAST))),
    "batches out of order": (*ACQUIRED, acknowledge(1, Batch(1, 1), Batch(0, 0))),
    "renewal in version 1": (*ACQUIRED, acknowledge(1, Batch(0, 0, (RENEW,)), version=1)),
    "renewal that is not announced": (*ACQUIRED, acknowledge(1, Batch(0, 0, (RENEW,)))),
    "acceptance that is announced as a renewal": (
        *ACQUIRED, acknowledge(1, Batch(0, 0), is_renew_ack=True)
    ),
    "renewal that fetches": (
        *ACQUIRED, fetch(1, Batch(0, 0, (RENEW,)), is_renew_ack=True)
    ),
    "acknowledge an unknown topic": (*ACQUIRED, acknowledge(1, WHOLE, topic_id=UNKNOWN_ID)),
    "acknowledge an unknown partition": (*ACQUIRED, acknowledge(1, WHOLE, partition=9)),
    "acknowledge in a new session": (*ACQUIRED, acknowledge(0, WHOLE)),
    "acknowledge in an unknown session": (INITIALIZED, acknowledge(1, WHOLE)),
    "acknowledge at another epoch": (*ACQUIRED, acknowledge(7, WHOLE)),
    "acknowledge without a member": (INITIALIZED, acknowledge(1, WHOLE, member=None)),
    "acknowledge with an empty member": (INITIALIZED, acknowledge(1, WHOLE, member="")),
    "close an unknown session": (INITIALIZED, acknowledge(-1, WHOLE)),
    "fetch at another epoch": (*ACQUIRED, fetch(7)),
    "fetch in an unknown session": (INITIALIZED, fetch(1)),
    "fetch at the end of an unknown session": (INITIALIZED, fetch(-1)),
    "fetch without a member": (INITIALIZED, fetch(0, member=None)),
    "fetch with an empty member": (INITIALIZED, fetch(0, member="")),
    "fetch of an unknown topic": (INITIALIZED, fetch(0, topic_id=UNKNOWN_ID)),
    "fetch of an unknown partition": (INITIALIZED, fetch(0, partition=9)),
    "acknowledge with the first fetch": (INITIALIZED, fetch(0, WHOLE)),
}  # fmt: skip


def answers(ask: Ask, topic: str, topic_id: Uuid) -> dict[str, list[Any]]:
    """The answer to the last request of each case. The others must succeed."""
    found = {}
    for number, (name, requests) in enumerate(CASES.items()):
        context = CaseContext(f"share-group-{number}", topic, topic_id, epochs := {})
        for request in requests[:-1]:
            answer: Any = ask(*request(context))
            codes = [word for word in _errors(answer) if word in ErrorCode.__members__]
            assert set(codes) == {"NONE"}, f"{name}: {answer}"
            if isinstance(answer, beats.ShareGroupHeartbeatResponse):
                epochs[answer.member_id] = answer.member_epoch
        found[name] = [*map(without_numbers, _errors(ask(*requests[-1](context))))]
    return found


def _errors(value: Any) -> list[Any]:
    """The names of all error codes in a response, each with its message."""
    if isinstance(value, list):
        return [word for row in value for word in _errors(row)]
    if not isinstance(value, Struct):
        return []
    found: list[Any] = []
    for name in value.__slots__:
        field = getattr(value, name)
        if name.endswith("error_code"):
            found += [ErrorCode(field).name, getattr(value, name.replace("code", "message"), None)]
        else:
            found += _errors(field)
    return found
