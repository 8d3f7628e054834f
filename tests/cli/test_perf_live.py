"""The perf tools and the verifiable clients against a running broker, as processes."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.processes.kafkapy_process import LIMIT_S, Kafkapy

TOTALS = re.compile(
    r"(\d+) records sent, \d+\.\d{6} records/sec \(\d+\.\d\d MB/sec\), \d+\.\d\d ms avg latency,"
    r" \d+\.\d\d ms max latency, \d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99\.9th\."
)
ROW = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3},"
    r" (\d+\.\d{4}), \d+\.\d{4}, (\d+), \d+\.\d{4}, \d+, \d+, \S+, \S+"
)


@pytest.fixture(scope="module")
def kafkapy(broker: BrokerProcess) -> Kafkapy:
    return Kafkapy(broker.bootstrap_servers)


def make_topic(kafkapy: Kafkapy, name: str) -> str:
    kafkapy("topics", "--create", "--topic", name)
    return name


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_what_one_tool_sends_the_other_reads(kafkapy: Kafkapy) -> None:
    topic = make_topic(kafkapy, "perf")
    words = ("--topic", topic, "--num-records", "2000", "--record-size", "100")
    servers = f"bootstrap.servers={kafkapy.bootstrap_servers}"
    sent = kafkapy(
        "producer-perf", *words, "--throughput", "-1", "--producer-props", "acks=1", servers
    )
    assert TOTALS.fullmatch(sent.stdout.strip()), sent.stdout + sent.stderr
    assert sent.stdout.startswith("2000 records sent, ")
    read = kafkapy("consumer-perf", "--topic", topic, "--messages", "2000", "--timeout", "30000")
    header, row = read.stdout.splitlines()
    assert header.startswith("start.time, end.time, data.consumed.in.MB, MB.sec, ")
    found = ROW.fullmatch(row)
    assert found, row
    assert found.groups() == (f"{2000 * 100 / 1024 / 1024:.4f}", "2000")


def test_an_unknown_offset_is_a_number_as_in_kafkas_events(kafkapy: Kafkapy) -> None:
    topic = make_topic(kafkapy, "verifiable-acks-0")
    sent = kafkapy("verifiable-producer", "--topic", topic, "--max-messages", "1", "--acks", "0")
    (acked,) = [e for e in events(sent.stdout) if e["name"] == "producer_send_success"]
    assert acked["offset"] == -1


def test_a_reader_that_waits_too_long_says_so(kafkapy: Kafkapy) -> None:
    topic = make_topic(kafkapy, "perf-empty")
    words = ("--topic", topic, "--messages", "5", "--timeout", "100", "--hide-header")
    done = kafkapy("consumer-perf", *words, "--print-metrics")
    warning, row, blank, header, *metrics = done.stdout.splitlines()
    assert warning.startswith("WARNING: Exiting before consuming the expected number of messages:")
    assert ROW.fullmatch(row)
    assert (blank, header.split()) == ("", ["Metric", "Name", "Value"])
    assert any(line.startswith("consumer-metrics:rxmsgs:") for line in metrics)
    assert done.returncode == 0
    as_json = kafkapy("consumer-perf", *words, "--print-metrics", "--output", "json").stdout
    (row,) = json.loads(as_json)["data"]
    assert [name for name in row["metrics"] if name.startswith("consumer-metrics:rxmsgs:")]


def test_a_group_without_offsets_does_not_hang_with_the_reset_policy_none(
    kafkapy: Kafkapy,
) -> None:
    topic = make_topic(kafkapy, "verifiable-none")
    kafkapy("verifiable-producer", "--topic", topic, "--max-messages", "1")
    words = ("--topic", topic, "--group-id", "no-offsets", "--reset-policy", "none")
    done = kafkapy("verifiable-consumer", *words)
    assert done.returncode == 1
    assert "no previously committed offset available" in done.stderr
    assert events(done.stdout)[-1]["name"] == "shutdown_complete"


def test_records_of_transactions_are_sent_and_committed(kafkapy: Kafkapy) -> None:
    topic = make_topic(kafkapy, "perf-transactions")
    words = ("--topic", topic, "--num-records", "200", "--record-size", "10", "--throughput", "-1")
    done = kafkapy("producer-perf", *words, "--transaction-duration-ms", "5")
    assert done.stdout.startswith("200 records sent, "), done.stderr
    words = ("--topic", topic, "--from-beginning", "--max-messages", "200")
    read = kafkapy("console-consumer", *words, "--isolation-level", "read_committed")
    assert len(read.stdout.splitlines()) == 200


def test_payloads_come_from_a_file(kafkapy: Kafkapy, tmp_path: Path) -> None:
    topic = make_topic(kafkapy, "perf-file")
    (tmp_path / "payloads").write_text("one\ntwo\n\n")
    words = ("--num-records", "20", "--throughput", "1000", "--payload-file", "payloads")
    words = (*words[:-1], str(tmp_path / "payloads"))
    done = kafkapy("producer-perf", "--topic", topic, *words, "--output", "json")
    assert "Number of messages read: 2\n" in done.stderr
    assert json.loads(done.stdout)["data"][0]["records"] == 20
    words = ("--topic", topic, "--from-beginning", "--max-messages", "20")
    assert set(kafkapy("console-consumer", *words).stdout.splitlines()) == {"one", "two"}


def test_numbered_records_are_acknowledged_read_and_committed(kafkapy: Kafkapy) -> None:
    topic = make_topic(kafkapy, "verifiable")
    words = ("--topic", topic, "--max-messages", "10", "--value-prefix", "7")
    sent = events(kafkapy("verifiable-producer", *words, "--repeating-keys", "3").stdout)
    assert [event["name"] for event in sent] == [
        "startup_complete",
        *["producer_send_success"] * 10,
        "shutdown_complete",
        "tool_data",
    ]
    assert [(e["key"], e["value"], e["offset"]) for e in sent[1:3]] == [
        ("0", "7.0", 0),
        ("1", "7.1", 1),
    ]
    assert (sent[-1]["sent"], sent[-1]["acked"], sent[-1]["target_throughput"]) == (10, 10, -1)
    words = ("--topic", topic, "--group-id", "verifiers", "--max-messages", "10", "--verbose")
    read = events(kafkapy("verifiable-consumer", *words).stdout)
    values = [event["value"] for event in read if event["name"] == "record_data"]
    assert values == [f"7.{number}" for number in range(10)]
    names = list(dict.fromkeys(event["name"] for event in read))
    assert names[:2] == ["startup_complete", "partitions_assigned"]
    assert names[-1] == "shutdown_complete"
    committed = [event for event in read if event["name"] == "offsets_committed"]
    assert committed[-1]["offsets"] == [{"topic": topic, "partition": 0, "offset": 10}]
    assert committed[-1]["success"] is True
    words = ("--describe", "--group", "verifiers", "--output", "json")
    described = json.loads(kafkapy("consumer-groups", *words).stdout)["data"]
    assert [(row["current_offset"], row["lag"]) for row in described] == [(10, 0)]


@pytest.mark.parametrize("given", ["-1", "0"])
def test_timestamps_of_numbered_records(kafkapy: Kafkapy, given: str) -> None:
    """-1, Kafka's default, was refused by librdkafka; 0 became the present time."""
    topic = make_topic(kafkapy, f"verifiable-time{given}")
    words = ("--topic", topic, "--max-messages", "1", "--message-create-time", given)
    assert events(kafkapy("verifiable-producer", *words).stdout)[-1]["acked"] == 1
    words = ("--topic", topic, "--from-beginning", "--max-messages", "1", "--output", "json")
    (row,) = json.loads(kafkapy("console-consumer", *words).stdout)["data"]
    assert (row["timestamp"] > 1_000_000_000_000) == (given == "-1")


def test_a_verifiable_producer_that_is_ended_tells_its_sums(kafkapy: Kafkapy) -> None:
    topic = make_topic(kafkapy, "verifiable-ended")
    command = kafkapy.command("verifiable-producer", "--topic", topic, "--throughput", "200")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "producer_send_success" in line:
                break
        process.send_signal(signal.SIGTERM)
        rest = events(process.communicate(timeout=LIMIT_S)[0])
    assert [event["name"] for event in rest[-2:]] == ["shutdown_complete", "tool_data"]
    assert rest[-1]["sent"] == rest[-1]["acked"] > 0


def test_a_topic_that_is_not_there_is_an_event(kafkapy: Kafkapy, tmp_path: Path) -> None:
    (tmp_path / "quick").write_text("delivery.timeout.ms=1000\nallow.auto.create.topics=false\n")
    words = ("--topic", "a b", "--max-messages", "1", "--producer.config", str(tmp_path / "quick"))
    found = events(kafkapy("verifiable-producer", *words).stdout)
    assert [event["name"] for event in found][1:] == [
        "producer_send_error",
        "shutdown_complete",
        "tool_data",
    ]
    assert found[-1]["acked"] == 0


def test_the_time_there_and_back(kafkapy: Kafkapy) -> None:
    command = kafkapy.command("e2e-latency")
    words = (command[0], "e2e-latency", kafkapy.bootstrap_servers, "e2e", "20", "all", "10")
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.stderr == (
        'Topic "e2e" does not exist. Will create topic with 1 partition(s) and replication factor'
        " = 1\n"
    )
    first, average, percentiles = done.stdout.splitlines()
    assert re.fullmatch(r"0\t\d+\.\d+", first)
    assert re.fullmatch(r"Avg latency: \d+\.\d{4} ms", average)
    assert re.fullmatch(r"Percentiles: 50th = \d+, 99th = \d+, 99\.9th = \d+", percentiles)
    assert kafkapy("get-offsets", "--topic", "e2e").stdout == "e2e:0:20\n"
