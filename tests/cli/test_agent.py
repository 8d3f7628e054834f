"""`kafkapy agent`, as a process, into a broker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.processes.topics import QUIET, create_topic
from tests.harness.processes.waiting import wait_until
from tests.harness.scripted.cli import kafkapy

KAFKAPY = str(Path(sys.executable).parent / "kafkapy")


class Reader:
    """Everything of a topic's only partition, as it comes."""

    def __init__(self, servers: str, topic: str) -> None:
        self._consumer = Consumer({"bootstrap.servers": servers, "group.id": "test", **QUIET})
        self._consumer.assign([TopicPartition(topic, 0, 0)])
        self.lines: list[str] = []
        self.headers: list[dict[str, bytes]] = []

    def has(self, *lines: str) -> bool:
        for message in self._consumer.consume(100, timeout=0.2):
            self.lines.append((message.value() or b"").decode())
            self.headers.append(dict(message.headers() or ()))
        return self.lines == list(lines)

    def close(self) -> None:
        self._consumer.close()


def test_lines_arrive_while_files_grow_and_rotate(broker: BrokerProcess, tmp_path: Path) -> None:
    create_topic(broker.bootstrap_servers, "lines")
    log = tmp_path / "app.log"
    log.write_text("one\n")
    words = ["--bootstrap-server", broker.bootstrap_servers, "--topic", "lines", "--poll-ms", "20"]
    words += ["--state", str(tmp_path / "state"), str(tmp_path / "app.log*")]
    reader = Reader(broker.bootstrap_servers, "lines")
    with subprocess.Popen([KAFKAPY, "agent", *words], stdout=subprocess.PIPE, text=True) as agent:
        try:
            wait_until(lambda: reader.has("one"), "the first line")
            log.rename(tmp_path / "app.log.1")
            log.write_text("two\n")
            wait_until(lambda: reader.has("one", "two"), "the line after the rotation")
        finally:
            os.kill(agent.pid, signal.SIGTERM)
        said, _ = agent.communicate(timeout=60)
    assert (agent.returncode, said) == (0, "2 lines to lines\n")
    log.write_text("two\nthree\n")
    again = subprocess.run([KAFKAPY, "agent", *words, "--once"], timeout=60)
    assert again.returncode == 0
    wait_until(lambda: reader.has("one", "two", "three"), "what was written meanwhile")
    reader.close()
    assert reader.headers[2] == {"file": str(log).encode(), "offset": b"4"}


def test_more_files_than_descriptors(broker: BrokerProcess, tmp_path: Path) -> None:
    """The agent ended with "This is a bug in kafkapy"."""
    create_topic(broker.bootstrap_servers, "many")
    for number in range(2000):
        (tmp_path / f"{number:04}.log").write_text(f"{number:04}\n")
    words = ["--bootstrap-server", broker.bootstrap_servers, "--topic", "many", "--once"]
    words += ["--state", str(tmp_path / "state"), str(tmp_path / "*.log")]
    limited = ["bash", "-c", 'ulimit -n 1024 && exec "$@"', "bash", KAFKAPY, "agent", *words]
    done = subprocess.run(limited, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("2000 lines to many\n", "")
    reader = Reader(broker.bootstrap_servers, "many")
    expected = [f"{number:04}" for number in range(2000)]
    wait_until(lambda: reader.has(*expected), "a line of each file")
    reader.close()


def test_words_that_are_missing(tmp_path: Path) -> None:
    servers = ("--bootstrap-server", "b:1")
    assert 'Missing required argument "[topic]"' in kafkapy("agent", *servers, "f").stderr
    state = ("--topic", "t", "--state", str(tmp_path / "s"))
    assert "Name the files to follow" in kafkapy("agent", *servers, *state).stderr
    (tmp_path / "s").write_text("?")
    refused = kafkapy("agent", *servers, *state, "f")
    assert refused.status != 0
    assert "is no state of an agent" in refused.stderr


def test_no_start_sends_lines_that_the_next_start_would_send_again(tmp_path: Path) -> None:
    """Their positions cannot be saved. Under a service manager, the topic would be flooded."""
    (tmp_path / "state.part").mkdir()
    state = tmp_path / "state"
    words = ["--bootstrap-server", "127.0.0.1:1", "--topic", "t", "--once", "/nope/*"]
    done = kafkapy("agent", *words, "--state", str(state))
    assert f"Cannot write {state}: " in done.stderr
    assert done.status == 1


def test_an_interval_that_is_none_is_refused(tmp_path: Path) -> None:
    """0 kept a core busy, and a negative one ended in a traceback."""
    words = ["--bootstrap-server", "127.0.0.1:1", "--topic", "t", "--once", "/nope/*"]
    for interval, said in [("0", "at least 1"), ("-5", "at least 1"), ("9" * 18, "Cannot parse")]:
        done = kafkapy("agent", *words, "--state", str(tmp_path / "s"), "--poll-ms", interval)
        assert said in done.stderr
        assert done.status == 1
