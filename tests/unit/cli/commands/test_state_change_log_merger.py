"""`kafkapy state-change-log-merger`: its command line and its other forms."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafkapy.cli.commands import state_change_log_merger
from tests.harness.scripted.cli import Outcome, kafkapy

LINES = [
    f"[2024-01-31 12:00:0{i},000] INFO [Controller id=1 epoch=2] Changed partition t-{i % 2} from"
    f" NewPartition to OnlinePartition with state LeaderAndIsr(leader={i}, leaderEpoch=0)"
    " (state.change.logger)"
    for i in range(4)
]


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "state-change.log"
    path.write_text("\n".join(LINES) + "\n")
    return str(path)


def merger(*words: str) -> Outcome:
    return kafkapy("state-change-log-merger", *words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--topic", "t"], 'Provide arguments to exactly one of the two options "[logs]" or "[log'),
        (["--logs", "a", "--logs-regex", "b"], "Provide arguments to exactly one of the two opt"),
        (["--logs", "a", "--partitions", "0"], 'The option "[topic]" needs to be provided an arg'),
        (
            ["--logs", "a", "--topic", "t", "--partitions", "1,0,1"],
            "The list of partitions contains repeated entries: 1",
        ),
        (["--logs", "a", "--topic", "t", "--partitions", "1,x"], "--partitions takes numbers"),
        (["--logs", "a", "--topic", "t", "--partitions", "9" * 5000], "--partitions takes numbers"),
        (["--logs", "a", "--timeline", "t-" + "9" * 5000], "--timeline takes TOPIC-PARTITION"),
        (["--logs", "/nope"], "/nope: No such file or directory"),
        (["--logs-regex", "/tmp/("], "( is an invalid regex: "),
        (["--logs-regex", "/tmp/a{99999999999}"], "a{99999999999} is an invalid regex: "),
        (["--logs", "a", "--start-time", "noon"], 'Unparseable date: "noon"'),
        (["--logs", "a", "--timeline", "t"], "--timeline takes TOPIC-PARTITION"),
        (
            ["--logs", "a", "--timeline", "t-0", "--topic", "t"],
            'Option "[timeline]" can\'t be used with option "[topic]"',
        ),
    ],
)
def test_refusals(words: list[str], said: str) -> None:
    outcome = merger(*words)
    assert outcome.stderr.startswith(said)
    assert (outcome.stdout, outcome.status) == ("", 1)


def test_lines_of_the_new_era(log: str) -> None:
    assert merger("--logs", log).stdout.splitlines() == LINES
    assert merger("--logs", log, "--topic", "t", "--partitions", "1,").stdout.splitlines() == [
        LINES[1],
        LINES[3],
    ]


def test_json_is_an_object_a_line(log: str) -> None:
    envelope, first, *rest = map(
        json.loads, merger("--logs", log, "--output", "json").stdout.splitlines()
    )
    assert envelope == {"kafkapy": 1, "command": "state-change-log-merger"}
    assert first == {
        "time": "2024-01-31 12:00:00,000",
        "topic": "t",
        "partition": 0,
        "path": log,
        "line": LINES[0],
    }
    assert len(rest) == 3


def test_names_that_are_not_utf_8_are_shown(tmp_path: Path) -> None:
    """A log in a directory with such a name ended --output json with a traceback."""
    log = tmp_path / "a\udcff.log"
    log.write_bytes(b"[2024-01-01 00:00:00,000] topicName='\xff', partitionIndex=0\n")
    row = json.loads(merger("--logs", str(log), "--output", "json").stdout.splitlines()[1])
    assert (row["path"], row["topic"]) == (str(tmp_path / "a\ufffd.log"), "\ufffd")
    log = log.rename(tmp_path / "a.log")
    assert "\ufffd-0" in merger("--logs", str(log), "--output", "table").stdout


def test_tables_come_a_piece_at_a_time(log: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_change_log_merger, "CHUNK_LINES", 3)
    shown = merger("--logs", log, "--output", "table").stdout
    assert shown.count("Time ") == 2
    assert shown.count("t-1") >= 2


@pytest.mark.parametrize(("words", "named"), [([], "t-0"), (["--topic", "u"], "u-1")])
def test_a_line_about_several_partitions_names_a_selected_one(
    tmp_path: Path, words: list[str], named: str
) -> None:
    line = "[2024-01-31 12:00:00,000] INFO [Controller id=1] Mark replicas t-0,u-1 on broker 2"
    (tmp_path / "log").write_text(f"{line}\n")
    words = ["--logs", str(tmp_path / "log"), *words]
    _, row = map(json.loads, merger(*words, "--output", "json").stdout.splitlines())
    assert f"{row['topic']}-{row['partition']}" == named
    assert f" {named} " in merger(*words, "--output", "table").stdout


def test_a_timeline(log: str) -> None:
    text = merger("--logs", log, "--timeline", "t-0").stdout.splitlines()
    assert text[0] == "t-0: events"
    assert text[3].startswith("2024-01-31 12:00:02,000  +2.000 s  Controller 1 epoch 2  2 ")
    assert text[5:7] == ["t-0: leaders", "Since                    Leader  For"]
    assert text[7] == f"2024-01-31 12:00:00,000  0       2.000 s  {'#' * 40}"
    assert text[8] == "2024-01-31 12:00:02,000  2       0 ms     #"
    data = merger("--logs", log, "--timeline", "t-0", "--output", "json").data
    assert [row["kind"] for row in data] == ["event", "event", "leadership", "leadership"]
