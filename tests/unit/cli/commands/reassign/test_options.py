"""The flags of `reassign`, and which go together."""

from __future__ import annotations

import pytest

from kafkapy.cli.commands.reassign.options import broker_ids
from kafkapy.common.errors import ConfigError
from tests.harness.scripted.cli import kafkapy

B = ("--bootstrap-server", "b:1")
FILE = ("--reassignment-json-file", "f")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (B, "Command must include exactly one action: --generate, --execute, --verify, --cancel,"),
        ((*B, "--list", "--verify"), "Command must include exactly one action:"),
        (("--list",), "Please specify --bootstrap-server"),
        ((*B, "--execute"), 'Missing required argument "[reassignment-json-file]"'),
        ((*B, "--generate"), 'Missing required argument "[topics-to-move-json-file]"'),
        (
            (*B, "--generate", "--topics-to-move-json-file", "f"),
            'Missing required argument "[broker-list]"',
        ),
        (
            (*B, "--verify", *FILE, "--throttle", "5"),
            'Option "[throttle]" can\'t be used with action "[verify]"',
        ),
        (
            (*B, "--list", "--additional"),
            'Option "[additional]" can\'t be used with action "[list]"',
        ),
        (
            (*B, "--execute", *FILE, "--preserve-throttles"),
            'Option "[preserve-throttles]" can\'t be used with action "[execute]"',
        ),
        ((*B, "--execute", *FILE, "--batch-size", "0"), "--batch-size must be at least 1"),
        (
            (*B, "--execute", *FILE, "--throttle", "x"),
            "Cannot parse argument 'x' of option throttle",
        ),
        (
            ("--zookeeper", "z", "--execute", *FILE, "--additional"),
            'You must specify --bootstrap-server when using "[additional]"',
        ),
        (
            ("--zookeeper", "z", "--cancel", *FILE),
            'You must specify --bootstrap-server when using "[cancel]"',
        ),
        (
            (*B, "--generate", "--strategy", "minimal", "--broker-list", "1,1"),
            "Error: Broker list contains duplicate entries: [1]",
        ),
    ],
)
def test_wrong_usage(words: tuple[str, ...], said: str) -> None:
    outcome = kafkapy("reassign", *words)
    assert outcome.stderr.startswith(said)
    assert (outcome.stdout, outcome.status) == ("", 1)


def test_help_is_on_stdout() -> None:
    outcome = kafkapy("reassign", "--help")
    assert (outcome.stderr, outcome.status) == ("", 0)
    assert "--preserve-throttles" in outcome.stdout


def test_broker_lists() -> None:
    assert broker_ids("3,1") == broker_ids("3,1,") == [3, 1]
    for wrong in ("", ",", "a", "1,,2", "²", "9" * 5000):
        with pytest.raises(ConfigError, match="is not a broker id"):
            broker_ids(wrong)
