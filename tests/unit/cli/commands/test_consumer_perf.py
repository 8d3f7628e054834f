"""`kafkapy consumer-perf`: flags and properties."""

import pytest

from kafkapy.cli.commands.consumer_perf import ConsumerPerfOptions, consumer_properties
from tests.harness.scripted.cli import kafkapy


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--topic", "t", "--messages", "1"], 'Missing required argument "[bootstrap-server]"'),
        (["--bootstrap-server", "b:1", "--topic", "t"], 'Missing required argument "[messages]"'),
        (
            ["--broker-list", "b", "--topic", "t", "--messages", "1"],
            "Please provide valid host:port like host1:9091,host2:9092",
        ),
        (
            ["--broker-list", "b:1", "--topic", "t", "--messages", "1", "--date-format", "QQ"],
            "The date format 'QQ' has 'QQ'",
        ),
    ],
)
def test_wrong_words(words: list[str], said: str) -> None:
    done = kafkapy("consumer-perf", *words)
    assert said in done.stderr
    assert (done.stdout, done.status) == ("", 1)


def test_properties() -> None:
    options = ConsumerPerfOptions(bootstrap_server="b:1", from_latest=True, fetch_size=7)
    found = consumer_properties(options)
    assert found.pop("group.id").startswith("perf-consumer-")
    assert found["auto.offset.reset"] == "latest"
    assert found["max.partition.fetch.bytes"] == "7"
