"""The console tools and `get-offsets` against a running broker, as processes."""

from __future__ import annotations

import json
import signal
import subprocess

import pytest

from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.processes.kafkapy_process import Kafkapy
from tests.harness.processes.topics import create_topic
from tests.harness.processes.waiting import wait_until
from tests.harness.storage.batches import flip


@pytest.fixture(scope="module")
def kafkapy(broker: BrokerProcess) -> Kafkapy:
    return Kafkapy(broker.bootstrap_servers)


def make_topic(kafkapy: Kafkapy, name: str, partitions: int = 1) -> str:
    create_topic(kafkapy.bootstrap_servers, name, partitions)
    return name


def test_lines_go_through_and_back(kafkapy: Kafkapy) -> None:
    topic = make_topic(kafkapy, "lines")
    lines = "".join(f"line {n}\n" for n in range(1000))
    sent = kafkapy("console-producer", "--topic", topic, stdin=lines)
    assert (sent.stdout, sent.stderr, sent.returncode) == ("", "", 0)
    words = ("--topic", topic, "--from-beginning", "--max-messages", "1000")
    read = kafkapy("console-consumer", *words)
    assert read.stdout == lines
    assert read.stderr == "Processed a total of 1000 messages\n"
    assert kafkapy("get-offsets", "--topic", topic).stdout == "lines:0:1000\n"
    assert kafkapy("get-offsets", "--topic", topic, "--time", "-2").stdout == "lines:0:0\n"
    assert kafkapy("get-offsets", "--topic", topic, "--time", "9" * 15).stdout == ""


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec(kafkapy: Kafkapy, codec: str) -> None:
    topic = make_topic(kafkapy, f"codec-{codec}")
    lines = "the same words again\n" * 200
    words = ("--topic", topic, f"--compression-codec={codec}")
    sent = kafkapy("console-producer", *words, stdin=lines)
    assert sent.returncode == 0
    words = ("--topic", topic, "--partition", "0", "--offset", "earliest", "--max-messages", "200")
    assert kafkapy("console-consumer", *words).stdout == lines


def test_keys_headers_and_nulls(kafkapy: Kafkapy) -> None:
    topic = make_topic(kafkapy, "parts")
    properties = {"parse.key": "true", "parse.headers": "true", "null.marker": "NULL"}
    words = [f"--property={name}={value}" for name, value in properties.items()]
    text = "h:1,g:NULL\tk1\tv1\nNULL\tNULL\tNULL\n"
    assert kafkapy("console-producer", "--topic", topic, *words, stdin=text).returncode == 0
    shown = [f"--property=print.{part}=true" for part in ("key", "headers", "offset", "partition")]
    words = ["--topic", topic, "--from-beginning", "--max-messages", "2", *shown]
    assert kafkapy("console-consumer", *words).stdout.splitlines() == [
        "Partition:0\tOffset:0\th:1,g:null\tk1\tv1",
        "Partition:0\tOffset:1\tNO_HEADERS\tnull\tnull",
    ]
    as_json = kafkapy("console-consumer", *words, "--output", "json").stdout.splitlines()
    assert json.loads(as_json[1])["data"][0]["value"] is None


def test_keys_land_in_javas_partitions(kafkapy: Kafkapy) -> None:
    # Java's murmur2 over four partitions, as Apache Kafka 3.9's console producer places them.
    topic = make_topic(kafkapy, "placed", 4)
    words = ("--property", "parse.key=true", "--property", "key.separator=:")
    kafkapy("console-producer", "--topic", topic, *words, stdin="a:1\nb:1\nc:1\nd:1\nfoo:1\n")
    shown = ("--property", "print.key=true", "--property", "print.partition=true")
    words = ("--topic", topic, "--from-beginning", "--max-messages", "5", *shown)
    placed = kafkapy("console-consumer", *words, "--property", "print.value=false").stdout
    assert sorted(placed.splitlines()) == JAVAS_PLACES


JAVAS_PLACES = [
    "Partition:0\ta",
    "Partition:0\tb",
    "Partition:0\tfoo",
    "Partition:1\td",
    "Partition:2\tc",
]


def test_a_group_goes_on_where_it_stopped(kafkapy: Kafkapy) -> None:
    topic = make_topic(kafkapy, "resumed")
    kafkapy("console-producer", "--topic", topic, stdin="1\n2\n3\n4\n5\n")
    words = ("--topic", topic, "--group", "resumer", "--from-beginning", "--max-messages")
    assert kafkapy("console-consumer", *words, "2").stdout == "1\n2\n"
    assert kafkapy("console-consumer", *words, "3").stdout == "3\n4\n5\n"


def test_a_record_as_large_as_javas_producers_send(kafkapy: Kafkapy) -> None:
    topic = make_topic(kafkapy, "large")
    sent = kafkapy("console-producer", "--topic", topic, stdin="x" * 1_040_000 + "\n")
    assert (sent.stderr, sent.returncode) == ("", 0)
    assert kafkapy("get-offsets", "--topic", topic).stdout == "large:0:1\n"
    sent = kafkapy("console-producer", "--topic", topic, stdin="x" * 1_050_000 + "\n")
    assert "larger than 1048576, which is the value of the max.request.size" in sent.stderr
    assert kafkapy("get-offsets", "--topic", topic).stdout == "large:0:1\n"


def test_a_damaged_batch_ends_its_readers(kafkapy: Kafkapy, broker: BrokerProcess) -> None:
    """They printed the records before the damage, which may be wrong, and waited for ever."""
    topic = make_topic(kafkapy, "damaged")
    kafkapy("console-producer", "--topic", topic, stdin="".join(f"{n}\n" for n in range(20)))
    group = ("--group", "damaged", "--topic", topic)
    reset = kafkapy("share-groups", "--reset-offsets", *group, "--to-earliest", "--execute")
    assert reset.returncode == 0, reset.stderr
    [log] = (broker.log_dir / f"{topic}-0").glob("*.log")
    flip(log, 8 * log.stat().st_size - 8)
    read = kafkapy("console-consumer", "--topic", topic, "--from-beginning")
    assert (read.stdout, read.returncode) == ("", 1)
    assert "failed CRC32C check" in read.stderr
    shared = kafkapy("console-share-consumer", *group)
    assert (shared.stdout, shared.returncode) == ("", 1)
    assert "corrupt message" in shared.stderr
    assert "bug" not in read.stderr + shared.stderr


def test_a_timeout_is_success(kafkapy: Kafkapy) -> None:
    topic = make_topic(kafkapy, "quiet")
    done = kafkapy("console-consumer", "--topic", topic, "--timeout-ms", "300")
    assert (done.stdout, done.returncode) == ("", 0)
    assert done.stderr.endswith("Processed a total of 0 messages\n")


def test_sigterm_ends_a_consumer_with_its_count(kafkapy: Kafkapy) -> None:
    topic = make_topic(kafkapy, "ended")
    kafkapy("console-producer", "--topic", topic, stdin="first\n")
    words = ("--topic", topic, "--from-beginning")
    consumer = subprocess.Popen(
        kafkapy.command("console-consumer", *words),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert consumer.stdout is not None
    assert consumer.stdout.readline() == "first\n"
    consumer.send_signal(signal.SIGTERM)
    _, stderr = consumer.communicate(timeout=60)
    assert stderr == "Processed a total of 1 messages\n"
    assert consumer.returncode == 143


def test_a_topic_that_does_not_exist_yet_is_created_and_read_at_once(kafkapy: Kafkapy) -> None:
    """As by Java's consumer. It was found after five minutes, or after a restart."""
    words = ("--topic", "later", "--from-beginning", "--max-messages", "1")
    consumer = subprocess.Popen(
        kafkapy.command("console-consumer", *words),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(lambda: "later\n" in kafkapy("topics", "--list").stdout, "the topic exists")
        kafkapy("console-producer", "--topic", "later", stdin="first\n")
        stdout, _ = consumer.communicate(timeout=60)
    finally:
        consumer.kill()
        consumer.communicate()
    assert stdout == "first\n"


def test_an_expression_of_java_finds_topics_that_are_created_later(kafkapy: Kafkapy) -> None:
    """librdkafka refuses `(?!`, and reads `[\\d]` as a backslash or a d."""
    make_topic(kafkapy, "match-1")
    kafkapy("console-producer", "--topic", "match-1", stdin="first\n")
    words = ("--include", r"(?!x)match-[\d]", "--from-beginning", "--group", "matching")
    often = ("--consumer-property", "metadata.max.age.ms=200")
    consumer = subprocess.Popen(
        kafkapy.command("console-consumer", *words, *often, "--max-messages", "2"),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert consumer.stdout is not None
        assert consumer.stdout.readline() == "first\n"
        make_topic(kafkapy, "match-2")
        kafkapy("console-producer", "--topic", "match-2", stdin="second\n")
        stdout, _ = consumer.communicate(timeout=60)
    finally:
        consumer.kill()
        consumer.communicate()
    assert stdout == "second\n"


def test_a_bad_line_stops_a_producer_after_the_good_ones(kafkapy: Kafkapy) -> None:
    topic = make_topic(kafkapy, "broken")
    words = ("--topic", topic, "--property", "parse.key=true")
    done = kafkapy("console-producer", *words, stdin="k\tv\nbad\n")
    assert done.stderr == "No key separator found on line number 2: 'bad'\n"
    assert done.returncode == 1
    assert kafkapy("get-offsets", "--topic", topic).stdout == "broken:0:1\n"


def test_offsets_by_time_and_rule(kafkapy: Kafkapy) -> None:
    topic = make_topic(kafkapy, "ruled", 3)
    kafkapy("console-producer", "--topic", topic, stdin="x\n")
    every = kafkapy("get-offsets", "--topic-partitions", "ruled").stdout.splitlines()
    assert [line.rpartition(":")[0] for line in every] == ["ruled:0", "ruled:1", "ruled:2"]
    assert sum(int(line.rpartition(":")[2]) for line in every) == 1
    one = kafkapy("get-offsets", "--topic-partitions", "ruled:1-2").stdout
    assert one.startswith("ruled:1:")
    latest = kafkapy("get-offsets", "--topic", topic, "--time", "max-timestamp").stdout.split()
    assert [line.rpartition(":")[2] for line in latest] == ["0"]


def test_ctrl_c_while_a_record_is_sent_is_no_bug(kafkapy: Kafkapy) -> None:
    """librdkafka's `flush` lost the exception: a SystemError ended the command with status 1."""
    topic = make_topic(kafkapy, "ctrl-c")
    command = kafkapy.command("console-producer", "--topic", topic, "--sync")
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, text=True) as process:
        assert process.stdin is not None
        process.stdin.write("line\n" * 1000)
        process.stdin.flush()
        # Each record lingers for a second, so the signal arrives in the `flush` of a later one.
        end = lambda: kafkapy("get-offsets", "--topic", topic).stdout  # noqa: E731
        wait_until(lambda: end() != "ctrl-c:0:0\n", "a record is written")
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate()
    assert (process.returncode, stderr) == (130, "")
