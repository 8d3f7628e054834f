"""Checks that every client must pass, in scripts/conformance and in its quick part."""

from __future__ import annotations

from collections.abc import Sequence

from tests.conformance.peer import Peer
from tests.conformance.python_peers import ConfluentPeer
from tests.conformance.workload import Received, Row, received_digests, rows, sent_digests
from tests.harness.processes.topics import create_topic

PARTITIONS = 4
# Old timestamps must not be deleted; small segments make many files for DumpLogSegments.
TOPIC_CONFIG = {"retention.ms": "-1", "segment.bytes": "1048576", "index.interval.bytes": "4096"}


def write(servers: str, peer: Peer, topic: str, codec: str, count: int) -> list[Row]:
    """A new topic with `count` records by one client in one codec; what was sent."""
    sent = rows(count, fixed_headers=peer.fixed_headers)
    create_topic(servers, topic, PARTITIONS, TOPIC_CONFIG)
    peer.produce(servers, topic, codec, sent)
    return sent


def check_sequences(sent: Sequence[Row], received: Sequence[Received]) -> None:
    """Nothing lost, doubled, changed or out of order in any partition."""
    assert len(received) == len(sent), f"{len(received)} of {len(sent)} records"
    wanted, got = sent_digests(sent, PARTITIONS), received_digests(received, PARTITIONS)
    different = [partition for partition in wanted if wanted[partition] != got[partition]]
    assert not different, f"partitions {different} differ"


def check_timestamps(sent: Sequence[Row], received: Sequence[Received]) -> None:
    """The broker kept every CreateTime (each is unique in our workload)."""
    assert sorted(row.timestamp for row in sent) == sorted(item.timestamp for item in received)


def read_in_two_lives(
    servers: str, peer: Peer, topic: str, group: str, count: int
) -> list[Received]:
    """Read a third, commit, stop; resume for the rest. The group's commits must end at the end."""
    first = peer.consume(servers, topic, group, count // 3)
    received = first + peer.consume(servers, topic, group, count - count // 3)
    ends = dict.fromkeys(range(PARTITIONS), -1001)
    for record in received:
        ends[record.partition] = max(ends[record.partition], record.offset + 1)
    committed = ConfluentPeer().committed(servers, topic, group, PARTITIONS)
    assert committed == ends, f"committed {committed}, read up to {ends}"
    return received


def check_time_look_up(servers: str, peer: Peer, topic: str, received: Sequence[Received]) -> None:
    """In each partition: the middle record's time leads to the first record that late."""
    for partition in range(PARTITIONS):
        part = sorted(item[1:3] for item in received if item.partition == partition)
        if not part:
            continue
        asked = part[len(part) // 2][1]
        wanted = next(offset for offset, timestamp in part if timestamp >= asked)
        found = peer.offset_for_time(servers, topic, partition, asked)
        assert found == wanted, f"partition {partition}: {found} for time {asked}, not {wanted}"


def check_client(servers: str, peer: Peer, topic: str, codec: str, count: int) -> list[Row]:
    """One client, one codec: write, read through a group in two lives, look up by time."""
    sent = write(servers, peer, topic, codec, count)
    received = read_in_two_lives(servers, peer, topic, f"{topic}-own", count)
    check_sequences(sent, received)
    if peer.sets_timestamps:
        check_timestamps(sent, received)
    check_time_look_up(servers, peer, topic, received)
    return sent


def check_cross_read(servers: str, reader: Peer, topic: str, sent: list[Row]) -> list[Row]:
    """Check that `reader` reads another client's records unchanged; returns `sent`."""
    group = f"{topic}-{reader.name.replace(' ', '-')}"
    check_sequences(sent, reader.consume(servers, topic, group, len(sent)))
    return sent
