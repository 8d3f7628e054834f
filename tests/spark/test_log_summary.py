"""The demo's job: real lines of many systems, parsed; and the tables it prints."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from kafkapy.spark.submit.session import FROM, PROPERTY
from scripts.jobs import log_summary
from tests.harness.spark.spark_topics import Topic

MakeTopic = Callable[..., Topic]

LINES = {
    "2026-11-20 18:43:56 status installed libc-bin:amd64 2.36-9+deb12u14": (
        "2026-11-20 18:43", "STATUS", "installed <package> <n>",
    ),
    "2026-11-20 18:43:56 trigproc libc-bin:amd64 2.36-9+deb12u14 <none>": (
        "2026-11-20 18:43", "TRIGPROC", "<package> <n> <none>",
    ),
    "Jun 14 15:16:01 combo sshd(pam_unix)[19939]: check pass; user unknown": (
        "Jun 14 15:16", "-", "sshd(pam_unix)[<n>]: check pass; user unknown",
    ),
    "2015-10-18 18:01:47,978 INFO [main] org.apache.Master: Created for attempt_1445_0020": (
        "2015-10-18 18:01", "INFO",
        "[main] org.apache.Master: Created for attempt_<n>_<n>",
    ),
    "2015-07-29 19:04:29,071 - WARN  [Worker:188978561024:Quorum@688] - Thread left": (
        "2015-07-29 19:04", "WARN", "[Worker:<n>:Quorum@<n>] - Thread left",
    ),
    "2016-09-28 04:30:30, Info                  CBS    Loaded /usr/lib/x.dll at 0x7fed": (
        "2016-09-28 04:30", "INFO", "CBS    Loaded <path> at <hex>",
    ),
    "17/06/09 20:10:40 WARNING spark.Manager: acls 10.0.0.1:80": (
        "17/06/09 20:10", "WARN", "spark.Manager: acls <ip>",
    ),
    "081109 203615 148 INFO dfs.DataNode: block blk_38865049064139660 done": (
        "081109 2036", "INFO", "dfs.DataNode: block blk_<n> done",
    ),
    "[Sun Dec 04 04:47:44 2005] [error] mod_jk child in error state 6": (
        "Dec 04 04:47", "ERROR", "mod_jk child in error state <n>",
    ),
    "03-17 16:13:38.811  1702  2395 D WindowManager: print": (
        "03-17 16:13", "DEBUG", "WindowManager: print",
    ),
    "just some words": ("-", "-", "just some words"),
    "12:30:59.123 hello": ("12:30", "-", "hello"),
    "": ("-", "-", ""),
}  # fmt: skip


def test_lines_of_many_systems(spark: SparkSession) -> None:
    rows = log_summary.parse(spark.createDataFrame([(line,) for line in LINES], "line string"))
    found = [(row["minute"], row["level"], row["template"]) for row in rows.collect()]
    assert found == list(LINES.values())


def run_job(spark: SparkSession, topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["log_summary.py"])
    monkeypatch.setattr(SparkSession, "stop", lambda session: None)  # it is everyone's
    wired = {FROM: topic.name, PROPERTY + "bootstrap.servers": topic.servers}
    for name, value in wired.items():
        spark.conf.set(name, value)
    try:
        log_summary.main()
    finally:
        for name in wired:
            spark.conf.unset(name)


def test_the_tables_of_a_topic(
    spark: SparkSession,
    make_topic: MakeTopic,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic = make_topic(2)
    lines = [line.encode() for line in LINES for _ in range(3)]
    topic.send((i % 2, None, line) for i, line in enumerate(lines))
    run_job(spark, topic, monkeypatch)
    text = capsys.readouterr().out
    rows = [line.split() for line in text.splitlines()]
    assert ["39", "events"] in rows
    levels = Counter(level for _, level, _ in LINES.values())
    for level, count in levels.items():
        assert any(row[:2] == [level, str(3 * count)] for row in rows), text
    assert "Events per minute, the busiest 10 of 11" in text
    assert ["3", "-", "just", "some", "words"] in rows


def test_an_empty_topic_is_no_error(
    spark: SparkSession,
    make_topic: MakeTopic,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run_job(spark, make_topic(2), monkeypatch)
    text = capsys.readouterr().out
    assert "0 events" in text
    assert text.count("(none)") == 3
