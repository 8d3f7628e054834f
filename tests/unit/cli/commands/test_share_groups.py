"""The flags of `kafkapy share-groups`: what goes together, in Kafka's words."""

from __future__ import annotations

import pytest

from tests.harness.scripted.cli import kafkapy

GROUP = ("--group", "g")
RESET = ("--reset-offsets", *GROUP, "--topic", "t")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--list", "--members"), "Option(s) [members] are unavailable"),
        (("--delete", "--all-groups", "--state", "Empty"), "Option(s) [state] are unavailable"),
        (("--delete", *GROUP, "--dry-run"), '"[dry-run]" can\'t be used with option'),
        (("--describe",), "Option [describe] takes one of these options: [all-groups], [group]"),
        (("--delete",), "Option [delete] takes one of these options: [all-groups], [group]"),
        (("--describe", *GROUP, "--members", "--offsets"), "takes at most one of these options"),
        (("--describe", *GROUP, "--state", "Empty"), "does not take a value for [state]"),
        (("--delete-offsets", *GROUP), "Option [delete-offsets] takes the following options"),
        ((*RESET, "--to-latest"), "takes the option: [execute] or [dry-run]"),
        ((*RESET, "--to-latest", "--execute", "--dry-run"), "only accepts one of"),
        ((*RESET, "--execute"), "[to-datetime], [to-earliest], [to-latest]"),
        ((*RESET, "--execute", "--to-latest", "--to-earliest"), "takes one of these options"),
        ((*RESET, "--execute", "--to-latest", "--all-topics"), "[all-topics], [topic]"),
        ((*RESET, "--execute", "--to-latest", "--group", "h"), "Found multiple arguments"),
        (("--reset-offsets", "--all-topics", "--execute", "--to-latest"), "[group]"),
    ],
)
def test_flags_that_do_not_go_together(words: tuple[str, ...], complaint: str) -> None:
    done = kafkapy("share-groups", "--bootstrap-server", "b:1", *words)
    assert done.status == 1
    assert complaint in done.stderr


def test_a_server_is_needed() -> None:
    done = kafkapy("share-groups", "--list")
    assert (done.status, "bootstrap-server" in done.stderr) == (1, True)


@pytest.mark.parametrize("timeout", ["-1", str(2**63 - 1)])
def test_timeouts_that_no_socket_has(timeout: str) -> None:
    words = ("--bootstrap-server", "127.0.0.1:1", "--list", "--timeout", timeout)
    assert "failed due to" in kafkapy("share-groups", *words).stdout
