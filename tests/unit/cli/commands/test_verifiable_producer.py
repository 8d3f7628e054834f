"""`kafkapy verifiable-producer`: flags and properties."""

from pathlib import Path

import pytest

from kafkapy.cli.commands.verifiable_producer import VerifiableProducerOptions, producer_properties
from tests.harness.scripted.cli import kafkapy


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--bootstrap-server", "b:1"], 'Missing required argument "[topic]"'),
        (["--topic", "t"], 'Missing required argument "[bootstrap-server]"'),
        (
            ["--topic", "t", "--broker-list", "b:1", "--acks", "2"],
            "argument --acks: invalid choice",
        ),
        (
            ["--topic", "t", "--bootstrap-server", "b:1", "--message-create-time", "-5"],
            "Invalid timestamp: -5. Timestamp should always be non-negative or null.",
        ),
    ],
)
def test_wrong_words(words: list[str], said: str) -> None:
    done = kafkapy("verifiable-producer", *words)
    assert said in done.stderr
    assert (done.stdout, done.status) == ("", 1)


def test_the_file_wins_over_the_tools_own(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("acks=1\n")
    options = VerifiableProducerOptions(
        bootstrap_server="b:1", producer_config=str(tmp_path / "file")
    )
    found = producer_properties(options)
    assert found == {"acks": "1", "retries": "0", "bootstrap.servers": "b:1"}
