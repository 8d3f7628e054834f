"""The clients that can be had on this machine."""

from __future__ import annotations

from dev import fetch_peers
from tests.conformance.go_peer import GoPeer
from tests.conformance.peer import Peer
from tests.conformance.process_peers import ApacheConsolePeer, KafkaJsPeer, KcatPeer
from tests.conformance.python_peers import AioKafkaPeer, ConfluentPeer, KafkaPythonPeer
from tests.harness.processes import apache_kafka


def available() -> list[Peer]:
    """The Python clients always; the programs if they are installed."""
    peers: list[Peer] = [ConfluentPeer(), KafkaPythonPeer(), AioKafkaPeer()]
    if fetch_peers.has_kcat():
        peers.append(KcatPeer())
    if fetch_peers.has_kafkajs():
        peers.append(KafkaJsPeer())
    if fetch_peers.has_go_peers():
        peers += [GoPeer("franz-go"), GoPeer("sarama"), GoPeer("kafka-go")]
    if apache_kafka.installed():
        peers.append(ApacheConsolePeer())
    return peers
