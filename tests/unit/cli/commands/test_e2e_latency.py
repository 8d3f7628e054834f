"""The words of e2e-latency."""

import pytest

from kafkapy.cli.commands.e2e_latency import parse_words
from tests.harness.scripted.cli import kafkapy


def test_words() -> None:
    found = parse_words(["b:1", "t", "10", "all", "100", "file"])
    assert (found.servers, found.messages, found.acks, found.properties_file) == (
        "b:1",
        10,
        "all",
        "file",
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["b:1", "t", "10", "1"], "USAGE: kafkapy e2e-latency broker_list topic num_messages"),
        (["b:1", "t", "1", "1", "9" * 5000], "USAGE: kafkapy e2e-latency"),
        (["b:1", "t", "ten", "1", "5"], "USAGE: kafkapy e2e-latency"),
        (["b:1", "\udcff", "10", "1", "5"], r"not UTF-8: '\udcff'"),
        (["b:1", "t", "10", "0", "5"], "Latency testing requires synchronous acknowledgement."),
    ],
)
def test_wrong_words(words: list[str], said: str) -> None:
    done = kafkapy("e2e-latency", *words)
    assert said in done.stderr
    assert (done.stdout, done.status) == ("", 1)
