"""The quick part of scripts/conformance: real clients in each codec, and Kafka's own log reader."""

from __future__ import annotations

import re
import struct

import pytest

from tests.conformance import checks, dump_log, peers
from tests.conformance.peer import Peer
from tests.conformance.python_peers import ConfluentPeer
from tests.conftest import BrokerFactory
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import BrokerProcess

COUNT = 600
# Programs that take long to start: the long script runs them in every codec, and as every reader.
QUICK_CODECS = {"Apache Kafka console": ("zstd",)}
SLOW_READERS = ("Apache Kafka console", "kafkajs")

CASES = [
    pytest.param(peer, codec, id=f"{peer.name}-{codec}".replace(" ", "-"))
    for peer in peers.available()
    for codec in QUICK_CODECS.get(peer.name, peer.codecs)
]


@pytest.mark.parametrize(("peer", "codec"), CASES)
def test_client(broker: BrokerProcess, peer: Peer, codec: str) -> None:
    """Write, read through a group in two lives, look up by time; the others read the same."""
    servers = broker.bootstrap_servers
    topic = f"{peer.name}-{codec}".replace(" ", "-")
    sent = checks.check_client(servers, peer, topic, codec, COUNT)
    for reader in peers.available():
        if reader.name not in (peer.name, *SLOW_READERS) and codec in reader.codecs:
            checks.check_cross_read(servers, reader, topic, sent)


if apache_kafka.installed():

    @pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
    def test_dump_log_segments_reads_every_file(broker_factory: BrokerFactory, clean: bool) -> None:
        """Several segments in each codec, groups, an idempotent producer; then Kafka's own tool."""
        broker = broker_factory({"log.segment.bytes": "16384", "log.index.interval.bytes": "1024"})
        servers, peer = broker.bootstrap_servers, ConfluentPeer()
        for codec in peer.codecs:
            sent = checks.write(servers, peer, f"dump-{codec}", codec, 2_500)
            checks.check_cross_read(servers, peer, f"dump-{codec}", sent)
        if not clean:
            broker.kill()
            broker.start()  # recovery writes the indexes and snapshots anew
        assert broker.stop() in (0, 143)
        dumps = {report.what: report for report in dump_log.check_directory(broker.log_dir)}
        offsets = dumps["__consumer_offsets --offsets-decoder"]
        assert offsets.files >= 1
        assert dumps[".snapshot"].files >= 1

    def test_dump_log_segments_would_complain(broker_factory: BrokerFactory) -> None:
        """The check above sees a flipped byte and an index that points nowhere."""
        broker = broker_factory({"log.index.interval.bytes": "1024"})
        peer = ConfluentPeer()
        checks.write(broker.bootstrap_servers, peer, "flipped", "none", 2_000)
        broker.stop()
        segment = max(broker.log_dir.glob("flipped-*/*.log"), key=lambda path: path.stat().st_size)
        content = bytearray(segment.read_bytes())
        content[-1] ^= 0xFF
        segment.write_bytes(content)
        index = segment.with_suffix(".index")
        index.write_bytes(struct.pack(">ii", 1, len(content) + 9))
        said = dump_log.dump("flipped", [segment], "--deep-iteration").complaints
        assert re.search(r"isvalid: false|CRC|(?i:corrupt)", "\n".join(said))
        said = dump_log.dump("astray", [index]).complaints
        assert said
