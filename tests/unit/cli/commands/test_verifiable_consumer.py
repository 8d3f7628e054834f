"""`kafkapy verifiable-consumer`: flags and properties."""

from pathlib import Path

import pytest

from kafkapy.cli.commands.verifiable_consumer import VerifiableConsumerOptions, consumer_properties
from tests.harness.scripted.cli import kafkapy

NEEDED = ("--topic", "t", "--group-id", "g", "--bootstrap-server", "b:1")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--topic", "t"], 'Missing required argument "[group-id]"'),
        ([*NEEDED, "--reset-policy", "middle"], "--reset-policy middle is not earliest, latest"),
        ([*NEEDED, "--group-protocol", "new"], "--group-protocol new is not classic or consumer"),
    ],
)
def test_wrong_words(words: list[str], said: str) -> None:
    done = kafkapy("verifiable-consumer", *words)
    assert said in done.stderr
    assert (done.stdout, done.status) == ("", 1)


def test_the_flags_win_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("group.id=file\nfetch.min.bytes=7\n")
    options = VerifiableConsumerOptions(
        bootstrap_server="b:1",
        group_id="g",
        group_instance_id="i",
        reset_policy="none",
        consumer_config=str(tmp_path / "file"),
    )
    found = consumer_properties(options)
    assert (found["group.id"], found["fetch.min.bytes"]) == ("g", "7")
    assert (found["group.instance.id"], found["auto.offset.reset"]) == ("i", "error")
    assert found["enable.auto.commit"] == "false"


def test_the_new_protocol_leaves_session_and_assignor_to_the_broker() -> None:
    options = VerifiableConsumerOptions(
        bootstrap_server="b:1",
        group_id="g",
        group_protocol="consumer",
        group_remote_assignor="range",
    )
    found = consumer_properties(options)
    assert (found["group.protocol"], found["group.remote.assignor"]) == ("consumer", "range")
    assert not {"session.timeout.ms", "partition.assignment.strategy"} & found.keys()
