"""The flags of `kafkapy consumer-groups`: what goes together, in Kafka's words."""

from __future__ import annotations

import pytest

from tests.harness.scripted.cli import Outcome, kafkapy
from tests.harness.scripted.scripted_groups import group_cluster


def groups(*words: str) -> Outcome:
    return kafkapy("consumer-groups", "--bootstrap-server", "b:1", *words, cluster=group_cluster())


RESET = ("--reset-offsets", "--group", "idle")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Command must include exactly one action: --list, --describe, --delete,"),
        (["--list", "--delete-offsets", "--group", "g", "--topic", "t"], 'Option "[group]" can\'t'),
        (["--list", "--members"], "Option(s) [members] are unavailable given other options"),
        (["--delete", "--all-groups", "--state", "Empty"], "Option(s) [state] are unavailable"),
        ([*RESET, "--all-topics", "--to-latest", "--state"], "Option(s) [state] are unavailable"),
        (["--delete", "--all-groups", "--type", "consumer"], "Option(s) [type] are unavailable"),
        (["--describe", "--all-groups", "--type"], "Option(s) [type] are unavailable"),
        (["--delete", "--all-groups", "--dry-run"], '"[dry-run]" can\'t be used with option'),
        (["--describe"], "Option [describe] takes one of these options: [all-groups], [group]"),
        (["--describe", "--group", "g", "--topic", "t"], '"[topic]" can\'t be used with option'),
        (["--describe", "--group", "g", "--state", "Stable"], "does not take a value for [state]"),
        (
            ["--describe", "--group", "g", "--members", "--offsets"],
            "Option [describe] takes at most one of these options: [members], [offsets], [state]",
        ),
        (["--delete"], "Option [delete] takes one of these options: [all-groups], [group]"),
        (["--delete", "--group", "g", "--topic", "t"], "does not support topic-specific offset"),
        (["--delete-offsets", "--topic", "t"], "takes the following options: [group], [topic]"),
        ([*RESET, "--topic", "t"], "requires one of the following scenarios: [[to-offset], "),
        ([*RESET, "--to-latest"], "One of the reset scopes should be defined: --all-topics,"),
        (
            [*RESET, "--topic", "t", "--to-latest", "--shift-by", "-1"],
            'Option "[to-latest]" can\'t be used with option "[shift-by]"',
        ),
        ([*RESET, "--all-topics", "--to-latest", "--dry-run", "--execute"], "only accepts one of"),
        ([*RESET, "--topic", "t:x", "--to-latest", "--dry-run"], "Invalid partition 'x' specified"),
        (["--list", "--state", "sleepy"], "Invalid state list 'sleepy'. Valid states are: Prep"),
        (["--list", "--type", "odd"], "Invalid types list 'odd'. Valid types are: Consumer, Cl"),
    ],
)
def test_wrong_words_are_refused_with_status_1(words: list[str], said: str) -> None:
    done = groups(*words)
    assert said in done.stderr
    assert (done.stdout, done.status) == ("", 1)


def test_a_server_is_required() -> None:
    done = kafkapy("consumer-groups", "--list")
    assert 'Missing required argument "[bootstrap-server]"' in done.stderr
