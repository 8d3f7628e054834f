"""docs/reference/tools.md: nothing is missing without a reason, and no reason is stale."""

from __future__ import annotations

import json

import pytest

from dev.conformance.record_flags import FLAGS, SCRIPTS
from dev.docs import tools_page
from dev.docs.tools_page import Reasons, Tool, complaints, ours, theirs
from dev.report import ROOT
from kafkapy.cli.framework.command import commands
from tests.harness.scripted.cli import kafkapy

SERVED = Tool("a.sh", ("--one", "--two"), "a", frozenset({"--one", "-one", "--own", "--h"}))
UNSERVED = Tool("b.sh", ("--x",))


def test_whatever_is_missing_has_a_reason() -> None:
    assert complaints(tools_page.tools(), tools_page.read_reasons()) == []


def test_a_missing_reason_is_a_complaint() -> None:
    assert complaints([SERVED, UNSERVED], Reasons()) == [
        "no reason for a.sh --two",
        "no reason for b.sh",
    ]


def test_a_stale_reason_is_a_complaint() -> None:
    reasons = Reasons(
        {"a.sh": "?", "b.sh": "other"},
        {"a.sh": {"--one": "?", "--two": "no"}},
        {"a.sh": {"--two": "?"}},
    )
    assert complaints([SERVED, UNSERVED], reasons) == [
        "a reason for a.sh: served",
        "a reason for a.sh --one: served",
        "in part, a.sh --two: not taken",
    ]


def test_a_refusal_of_the_command_is_a_reason() -> None:
    refusing = Tool("a.sh", SERVED.theirs, "a", SERVED.ours, {"--two": "because"})
    assert complaints([refusing], Reasons()) == []


def test_what_is_ours_alone() -> None:
    assert SERVED.added() == ["--own"]


def test_flags_of_one_verb() -> None:
    server = commands()["server"]
    assert {"--daemon", "-daemon", "-h", "start"} <= ours(server)
    assert "--pid" in ours(server, "stop")
    assert "--pid" not in ours(server, "start")
    assert "--override" in ours(server, "start")


def test_words_of_a_script() -> None:
    parts = [
        {"words": [], "flags": [["-h", "--help"]]},
        {"words": ["ls"], "flags": [["-s"], ["-h", "--help"]]},
    ]
    assert theirs(parts) == ("-h", "--help", "ls", "-s")
    assert theirs(parts, by_verb=True) == ("-h", "--help", "ls", "ls -s", "ls -h", "ls --help")


def test_every_script_is_on_record_and_on_the_page() -> None:
    recorded = json.loads(FLAGS.read_text())["scripts"]
    assert recorded.keys() == SCRIPTS.keys()
    page = (ROOT / "docs" / "reference" / "tools.md").read_text()
    assert tools_page.page() in page, "run scripts/docs"
    of_others = {
        "kafka-preferred-replica-election.sh",  # gone from Kafka since 3.0
        "kafka-console-share-consumer.sh",  # these came with 4.0
        "kafka-groups.sh",
        "kafka-share-groups.sh",
        "kafka-verifiable-share-consumer.sh",
    }
    assert {path.name for path in tools_page.BIN.iterdir()} - of_others <= recorded.keys()


@pytest.mark.parametrize(
    ("name", "flag", "why"),
    [(n, flag, why) for n, command in commands().items() for flag, why in command.refused.items()],
)
def test_a_flag_that_is_refused_says_why_in_one_line(name: str, flag: str, why: str) -> None:
    outcome = kafkapy(name, f"--{flag}", "x")
    assert outcome.stderr.splitlines()[0] == f"--{flag} is not served: {why}"
    assert (outcome.stdout, outcome.status) == ("", 1)
