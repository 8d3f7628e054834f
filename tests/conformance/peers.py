"""The clients that can be had on this machine."""

from __future__ import annotations

from scripts import _kafka, _peers
from tests.conformance.go_peer import GoPeer
from tests.conformance.peer import Peer
from tests.conformance.process_peers import ApacheConsolePeer, KafkaJsPeer, KcatPeer
from tests.conformance.python_peers import AioKafkaPeer, ConfluentPeer, KafkaPythonPeer


def available() -> list[Peer]:
    """The Python clients always; the programs if they are installed."""
    peers: list[Peer] = [ConfluentPeer(), KafkaPythonPeer(), AioKafkaPeer()]
    if _peers.has_kcat():
        peers.append(KcatPeer())
    if _peers.has_kafkajs():
        peers.append(KafkaJsPeer())
    if _peers.has_go_peers():
        peers += [GoPeer("franz-go"), GoPeer("sarama"), GoPeer("kafka-go")]
    if _kafka.installed():
        peers.append(ApacheConsolePeer())
    return peers
