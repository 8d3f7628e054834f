"""`kafkapy console-consumer`: flags, groups, how it ends."""

from __future__ import annotations

import errno
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkapy.cli.commands.console_consumer import (
    COMMAND,
    ConsoleConsumerOptions,
    check,
    consumer_properties,
    formatter_properties,
)
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import UsageError
from kafkapy.schemas.records import SchemaType
from kafkapy.schemas.registry_client import RegisteredSchema, RegistryClient
from kafkapy.tools.console import console_consumer
from kafkapy.tools.console.console_consumer import EARLIEST, LATEST, Source
from kafkapy.tools.console.message_formatter import Message
from tests.harness.scripted.cli import kafkapy


def options(**given: Any) -> ConsoleConsumerOptions:
    return ConsoleConsumerOptions(**({"bootstrap_server": "b:1", "topic": "t"} | given))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"topic": None}, "Exactly one of --include/--topic is required"),
        ({"include": "x"}, "Exactly one of --include/--topic is required"),
        ({"bootstrap_server": None}, "bootstrap-server"),
        ({"topic": None, "include": "x", "partition": 1}, "The topic is required when partition"),
        ({"offset": "1"}, "The partition is required when offset is specified"),
        ({"partition": 0, "offset": "1", "from_beginning": True}, "from-beginning and offset"),
        ({"partition": 0, "offset": "x"}, "The provided offset value 'x' is incorrect"),
        ({"partition": 0, "offset": "-1"}, "The provided offset value '-1' is incorrect"),
        ({"partition": 0, "offset": "\u00b2"}, "The provided offset value '\u00b2' is incorrect"),
        ({"partition": 0, "offset": str(2**63)}, "The provided offset value '9223372036854775808'"),
        ({"isolation_level": "x"}, "--isolation-level x is not a level"),
        ({"topic": None, "include": "a("}, r"a\( is an invalid regex"),
        ({"topic": None, "include": "a{99999999999}"}, "is an invalid regex"),
    ],
)
def test_wrong_usage(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        check(options(**given))


def test_kafka_4_has_other_names_for_properties() -> None:
    words = "--topic t --formatter-property a=1 --property b=2 --command-property c=3"
    found: ConsoleConsumerOptions = COMMAND.read(words.split())
    assert (found.property, found.consumer_property) == (["a=1", "b=2"], ["c=3"])


def test_whitelist_is_include() -> None:
    old = options(topic=None, whitelist="a.*")
    check(old)
    assert old.include == "a.*"


def test_without_a_group_nothing_is_committed() -> None:
    found = consumer_properties(options())
    assert found["group.id"].startswith("console-consumer-")
    assert found["enable.auto.commit"] == "false"
    assert found["auto.offset.reset"] == "latest"
    assert found["isolation.level"] == "read_uncommitted"


def test_with_a_group_the_default_is_to_commit(tmp_path: Path) -> None:
    found = consumer_properties(options(group="g", from_beginning=True))
    assert found["group.id"] == "g"
    assert "enable.auto.commit" not in found
    assert found["auto.offset.reset"] == "earliest"


def test_places_must_agree_on_the_group(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("group.id=b\nclient.id=file")
    file = str(tmp_path / "f")
    same = options(group="b", consumer_config=file, consumer_property=["group.id=b"])
    assert consumer_properties(same)["client.id"] == "file"
    with pytest.raises(UsageError, match="Detected group ids: 'a', 'b'"):
        consumer_properties(options(group="a", consumer_config=file))


def test_what_cannot_go_together() -> None:
    with pytest.raises(UsageError, match="group and partition cannot be specified together"):
        consumer_properties(options(group="g", partition=0))
    words = ["auto.offset.reset=latest"]
    with pytest.raises(UsageError, match=r"--from-beginning and 'auto\.offset\.reset=latest'"):
        consumer_properties(options(from_beginning=True, consumer_property=words))
    words = ["auto.offset.reset=earliest"]
    found = consumer_properties(options(consumer_property=words))
    assert found["auto.offset.reset"] == "earliest"


def test_formatter_properties(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("print.key=true\nprint.value=true")
    found = formatter_properties(
        options(
            formatter_config=str(tmp_path / "f"),
            property=["print.value=false", "key.deserializer=X"],
            key_deserializer="LongDeserializer",
        )
    )
    assert found == {
        "print.key": "true",
        "print.value": "false",
        "key.deserializer": "LongDeserializer",
    }


class FakeConsumer:
    """Hands out `records`, then does what `after` does."""

    records: list[Message] = []  # noqa: RUF012
    after: Callable[[], None]
    made: list[Any] = []  # noqa: RUF012

    def __init__(self, source: Source, properties: dict[str, str], warn: Any) -> None:
        self.source = source
        self.closed = self.gave_back = False
        FakeConsumer.made.append(self)

    def messages(self, timeout_ms: int | None, idle: Callable[[], None]) -> Iterator[Message]:
        self.timeout_ms = timeout_ms
        yield from self.records
        idle()
        type(self).after()

    def reset_unwritten_offsets(self) -> None:
        assert not self.closed
        self.gave_back = True

    def close(self) -> None:
        self.closed = True


def record(offset: int, value: bytes | None) -> Message:
    return Message("t", 0, offset, 99, "CreateTime", b"k", value, [("h", b"\xff")])


def time_out() -> None:
    raise TimeoutError


@pytest.fixture
def consumers(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    FakeConsumer.made = []
    FakeConsumer.records = [record(0, b"one"), record(1, None), record(2, b"three")]
    FakeConsumer.after = staticmethod(time_out)
    monkeypatch.setattr(console_consumer, "ConsoleConsumer", FakeConsumer)
    return FakeConsumer.made


WORDS = ("console-consumer", "--topic", "t", "--bootstrap-server", "b:1")
TIMED_OUT = "ERROR Error processing message, terminating consumer process: TimeoutException\n"


def test_a_timeout_is_success(consumers: Any) -> None:
    outcome = kafkapy(*WORDS, "--timeout-ms", "5")
    assert outcome.stdout == "one\nnull\nthree\n"
    assert outcome.stderr == TIMED_OUT + "Processed a total of 3 messages\n"
    assert outcome.status == 0
    assert consumers[0].closed


@pytest.mark.parametrize(("limit", "lines"), [("0", ""), ("2", "one\nnull\n")])
def test_max_messages(consumers: Any, limit: str, lines: str) -> None:
    outcome = kafkapy(*WORDS, "--max-messages", limit)
    assert outcome.stdout == lines
    assert outcome.stderr == f"Processed a total of {limit} messages\n"


@pytest.mark.parametrize("words", [("--max-messages", "-1"), ("--timeout-ms", "-1")])
def test_minus_1_is_no_limit(consumers: Any, words: tuple[str, ...]) -> None:
    outcome = kafkapy(*WORDS, *words)
    assert outcome.stderr == TIMED_OUT + "Processed a total of 3 messages\n"
    assert consumers[0].timeout_ms is None


def test_a_record_that_cannot_be_shown(consumers: Any) -> None:
    words = (*WORDS, "--value-deserializer", "LongDeserializer")
    outcome = kafkapy(*words)
    assert outcome.status == 1
    assert outcome.stderr.splitlines()[0] == "Processed a total of 1 messages"
    assert "Size of data received by the deserializer is not 8" in outcome.stderr
    outcome = kafkapy(*words, "--skip-message-on-error")
    assert outcome.status == 0
    assert outcome.stderr.count("skipping this message") == 3
    assert outcome.stderr.endswith("Processed a total of 3 messages\n")


@pytest.mark.parametrize(
    ("words", "source"),
    [
        ((), Source("t")),
        (("--partition", "2"), Source("t", None, 2, LATEST)),
        (("--partition", "2", "--offset", "Earliest"), Source("t", None, 2, EARLIEST)),
        (("--partition", "2", "--offset", "7"), Source("t", None, 2, 7)),
        (("--partition", "2", "--from-beginning"), Source("t", None, 2, EARLIEST)),
    ],
)
def test_where_it_starts(consumers: Any, words: tuple[str, ...], source: Source) -> None:
    kafkapy(*WORDS, *words)
    wanted = consumers[0].source
    assert (wanted.topic, wanted.partition) == (source.topic, source.partition)
    assert source.partition is None or wanted.offset == source.offset


def test_json_is_an_envelope_a_line(consumers: Any) -> None:
    FakeConsumer.records = [record(0, b"one"), record(1, b"\xff")]
    lines = kafkapy(*WORDS, "--output", "json").stdout.splitlines()
    first, second = (json.loads(line)["data"][0] for line in lines)
    assert first == {
        "topic": "t",
        "partition": 0,
        "offset": 0,
        "timestamp": 99,
        "timestamp_type": "CreateTime",
        "headers": [{"key": "h", "value_base64": "/w=="}],
        "key": "k",
        "value": "one",
    }
    assert second["value_base64"] == "/w=="


def test_json_has_values_with_schemas_as_their_json(
    consumers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = RegisteredSchema(7, SchemaType.AVRO, '"long"', ())
    monkeypatch.setattr(RegistryClient, "of_id", lambda *_: schema)
    FakeConsumer.records = [record(0, b"\0\0\0\0\7\x54"), record(1, None), record(2, b"\0\0\0\0\7")]
    words = (*WORDS, "--output", "json", "--property", "schema.registry.url=http://127.0.0.1:1")
    outcome = kafkapy(*words)
    rows = [json.loads(line)["data"][0] for line in outcome.stdout.splitlines()]
    assert [(row["key"], row["value"]) for row in rows] == [("k", "42"), ("k", None)]
    assert "A value cannot be decoded: it is not of its schema" in outcome.stderr


def test_system_test_events(consumers: Any) -> None:
    assert kafkapy(*WORDS, "--enable-systest-events").stdout.endswith("shutdown_complete\n")


def test_a_full_disk_takes_no_records(consumers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    FakeConsumer.after = staticmethod(fill)
    monkeypatch.setattr(Environment, "abandon_stdout", lambda _: None)
    outcome = kafkapy(*WORDS)
    said = "Unable to write to standard out: No space left on device"
    assert (outcome.stderr.splitlines()[1], outcome.status) == (said, 1)
    assert consumers[0].gave_back


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_system_tests_hear_of_an_end_by_a_signal(consumers: Any, number: signal.Signals) -> None:
    FakeConsumer.after = staticmethod(lambda: os.kill(os.getpid(), number))
    assert kafkapy(*WORDS, "--enable-systest-events").stdout.endswith("shutdown_complete\n")


def test_sigterm_ends_it_with_its_count(consumers: Any) -> None:
    FakeConsumer.after = staticmethod(lambda: os.kill(os.getpid(), signal.SIGTERM))
    before = signal.getsignal(signal.SIGTERM)
    outcome = kafkapy(*WORDS)
    assert outcome.stderr == "Processed a total of 3 messages\n"
    assert outcome.status == 143
    assert signal.getsignal(signal.SIGTERM) is before
