"""`kafkapy consumer-perf`: flags and properties."""

import pytest

from kafkapy.cli.commands.consumer_perf import ConsumerPerfOptions, consumer_properties
from kafkapy.protocol.api_keys import ApiKey
from tests.harness.scripted.cli import kafkapy
from tests.harness.scripted.scripted_broker import ScriptedCluster, metadata


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


@pytest.mark.parametrize("words", [(), ("--topic", "t", "--include", "t.*")])
def test_topics_are_named_once(words: tuple[str, ...]) -> None:
    done = kafkapy("consumer-perf", "--bootstrap-server", "b:1", "--num-records", "1", *words)
    assert done.stderr.startswith("Exactly one of --include/--topic is required.")
    assert done.status == 1


def test_no_topic_matches() -> None:
    """A consumer of no topic would wait."""
    topics = {"__consumer_offsets": {0: (1, [1], [1])}, "orders": {0: (1, [1], [1])}}
    cluster = ScriptedCluster({ApiKey.METADATA: metadata(topics)})
    words = ("--num-records", "1", "--include", "__.*|order")
    done = kafkapy("consumer-perf", "--bootstrap-server", "b:1", *words, cluster=cluster)
    assert done.stderr.startswith("No topic matches __.*|order")
    assert done.status == 1


def test_properties() -> None:
    options = ConsumerPerfOptions(
        bootstrap_server="b:1", from_latest=True, fetch_size=7, command_property=["client.id=x"]
    )
    found = consumer_properties(options)
    assert found.pop("group.id").startswith("perf-consumer-")
    assert found["client.id"] == "x"
    assert found["auto.offset.reset"] == "latest"
    assert found["max.partition.fetch.bytes"] == "7"
