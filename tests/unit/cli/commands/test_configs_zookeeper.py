"""The older form of `configs`: which words go with `--zookeeper`; what it does is tested live."""

import pytest

from kafkapy.cli.commands import configs_zookeeper
from kafkapy.tools.config_changes import ConfigChange
from kafkapy.tools.zookeeper import configs
from tests.harness.scripted.cli import kafkapy

TOPIC = ("--entity-type", "topics", "--entity-name", "t")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--describe", *TOPIC, "--bootstrap-server", "b:1"], "Only one of --bootstrap-server, --"),
        (["--describe", *TOPIC, "--all"], "--bootstrap-server must be specified for --all"),
        (
            ["--describe", "--entity-type", "client-metrics"],
            "Invalid entity type client-metrics, the entity type must be one of topics, clients,"
            " users, brokers, ips with a --zookeeper argument",
        ),
        (["--alter", *TOPIC], "At least one of --add-config, --add-config-file, or --delete"),
    ],
)
def test_wrong_words(words: list[str], said: str) -> None:
    done = kafkapy("configs", "--zookeeper", "127.0.0.1:1", *words)
    assert said in done.stderr
    assert (done.stdout, done.status) == ("", 1)


def test_a_file_for_tls_goes_with_zookeeper_only() -> None:
    words = ("--describe", *TOPIC, "--bootstrap-server", "b:1", "--zk-tls-config-file", "f")
    said = "Only the --zookeeper option can be used with the --zk-tls-config-file option.\n"
    assert kafkapy("configs", *words).stderr.startswith(said)


def test_a_password_is_not_shown_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configs, "alter", lambda *_: None)
    change = ConfigChange({"SCRAM-SHA-512": "password=p", "producer_byte_rate": "1"})
    [row] = configs_zookeeper.alter("h:1", [("users", "u")], change).data
    assert row["set"] == {"SCRAM-SHA-512": None, "producer_byte_rate": "1"}
