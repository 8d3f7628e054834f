"""`kafkapy console-producer`: flags and the precedence of properties."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from kafkapy.cli.commands.console_producer import (
    COMMAND,
    ConsoleProducerOptions,
    producer_properties,
    reader_properties,
)
from kafkapy.tools.console import console_producer
from tests.harness.scripted.cli import kafkapy


def options(**given: Any) -> ConsoleProducerOptions:
    return ConsoleProducerOptions(bootstrap_server="b:1", topic="t", **given)


def test_the_tools_own_defaults() -> None:
    assert producer_properties(options()) == {
        "bootstrap.servers": "b:1",
        "client.id": "console-producer",
        "batch.size": "16384",
        "retries": "3",
        "retry.backoff.ms": "100",
        "linger.ms": "1000",
        "acks": "-1",
        "request.timeout.ms": "1500",
        "metadata.max.age.ms": "300000",
        "max.block.ms": "60000",
        "buffer.memory": "33554432",
        "send.buffer.bytes": "102400",
        "compression.type": "none",
    }


def test_flag_over_property_over_file_over_default(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("acks=0\nlinger.ms=1\nretries=9\nclient.id=file\n")
    found = producer_properties(
        options(
            producer_config=str(file),
            producer_property=["linger.ms=2", "retries=8"],
            message_send_max_retries=7,
        )
    )
    chosen = {name: found[name] for name in ("acks", "linger.ms", "retries", "client.id")}
    assert chosen == {"acks": "0", "linger.ms": "2", "retries": "7", "client.id": "file"}


def test_the_second_name_of_the_batch_size_wins() -> None:
    both = options(batch_size=1, max_partition_memory_bytes=2)
    assert producer_properties(both)["batch.size"] == "2"
    assert producer_properties(options(batch_size=1))["batch.size"] == "1"


def test_kafka_4_has_other_names_for_properties() -> None:
    words = "--topic t --reader-property a=1 --property b=2 --command-property c=3"
    found: ConsoleProducerOptions = COMMAND.read(words.split())
    assert (found.property, found.producer_property) == (["a=1", "b=2"], ["c=3"])


def test_reader_properties(tmp_path: Path) -> None:
    (tmp_path / "r").write_text("parse.key=true\nkey.separator=\\t")
    found = reader_properties(options(reader_config=str(tmp_path / "r"), property=["parse.key=no"]))
    assert found == {"parse.key": "no", "key.separator": "\t"}


class FakeProducer:
    """Takes lines; says what it was made with."""

    made: list[Any] = []  # noqa: RUF012

    def __init__(self, topic: str, properties: dict[str, str], warn: Any) -> None:
        self.lines: list[Any] = []
        self.sent = 0
        self.closed = False
        self.topic = topic
        self.properties = properties
        FakeProducer.made.append(self)

    def wait_for_topic(self) -> None:
        pass

    after = staticmethod(lambda: None)

    def send(self, line: Any, *, sync: bool = False) -> None:
        self.lines.append((line, sync))
        self.sent += 1
        self.after()

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def producers(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    FakeProducer.made = []
    monkeypatch.setattr(console_producer, "ConsoleProducer", FakeProducer)
    return FakeProducer.made


WORDS = ("console-producer", "--topic", "t", "--bootstrap-server", "b:1")


def test_lines_become_records(producers: Any) -> None:
    outcome = kafkapy(*WORDS, "--sync", stdin=b"one\r\ntwo\n\nlast")
    assert (outcome.stdout, outcome.stderr, outcome.status) == ("", "", 0)
    values = [line.value for line, sync in producers[0].lines if sync]
    assert values == [b"one", b"two", b"", b"last"]


@pytest.mark.parametrize(
    "reader",
    ["kafka.tools.ConsoleProducer$LineMessageReader", "org.apache.kafka.tools.LineMessageReader"],
)
def test_kafkas_own_reader_may_be_named(producers: Any, reader: str) -> None:
    assert kafkapy(*WORDS, "--line-reader", reader, stdin=b"one\n").status == 0
    assert [line.value for line, _ in producers[0].lines] == [b"one"]


def test_sigterm_waits_for_what_is_queued(producers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kill = staticmethod(lambda: os.kill(os.getpid(), signal.SIGTERM))
    monkeypatch.setattr(FakeProducer, "after", kill)
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        outcome = kafkapy(*WORDS, stdin=b"one\ntwo\n")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert outcome.status == 143
    assert [line.value for line, _ in producers[0].lines] == [b"one"]
    assert producers[0].closed


def test_people_get_a_prompt(producers: Any) -> None:
    assert kafkapy(*WORDS, stdin=b"a\nb\n", terminal=True).stdout == ">>>"


def test_a_codec_flag_alone_is_gzip(producers: Any) -> None:
    kafkapy(*WORDS, "--compression-codec")
    kafkapy(*WORDS, "--compression-codec", "zstd")
    assert [p.properties["compression.type"] for p in producers] == ["gzip", "zstd"]


def test_a_line_that_cannot_be_read_ends_it(producers: Any) -> None:
    words = ("--property", "parse.key=true", "--property", "key.separator=:")
    outcome = kafkapy(*WORDS, *words, stdin=b"k:v\nbad\nk:w\n")
    assert outcome.stderr == "No key separator found on line number 2: 'bad'\n"
    assert outcome.status == 1
    assert [line.value for line, _ in producers[0].lines] == [b"v"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--bootstrap-server", "b:1"], 'Missing required argument "[topic]"'),
        (["--topic", "t"], 'Missing required argument "[bootstrap-server]"'),
        (["--topic", "t", "--broker-list", "b"], "Please provide valid host:port"),
        (
            [
                "--topic=t",
                "--broker-list=b:1",
                "--property=null.marker=:",
                "--property=parse.headers=true",
            ],
            "headers.key.separator and null.marker may not be equal",
        ),
        (
            ["--topic=t", "--broker-list=b:1", "--line-reader=org.acme.JsonReader"],
            "Line reader org.acme.JsonReader is not known; known are: kafka.tools.ConsoleProducer$",
        ),
    ],
)
def test_wrong_usage(producers: Any, words: list[str], said: str) -> None:
    outcome = kafkapy("console-producer", *words)
    assert outcome.stderr.startswith(said)
    assert (outcome.status, producers) == (1, [])
