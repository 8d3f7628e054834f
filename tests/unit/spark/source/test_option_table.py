"""option_table: what the documents say of an option is what the parser does."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.spark.sink.sink_options import parse_sink_options
from kafkapy.spark.source.option_table import (
    SINK_CLIENT_OPTIONS,
    SINK_OPTIONS,
    SOURCE_CLIENT_OPTIONS,
    SOURCE_OPTIONS,
    Option,
)
from kafkapy.spark.source.options import parse_options

REQUIRED = {"kafka.bootstrap.servers": "b:9092", "subscribe": "t"}
REQUIRED_BY_SINK = {"kafka.bootstrap.servers": "b:9092"}


@pytest.mark.parametrize("name", [o.name for o in SOURCE_OPTIONS if o.valid_in == "batch"])
def test_batch_options_are_refused_by_streams(name: str) -> None:
    with pytest.raises(ConfigError, match=f"not valid in streaming.*{name}"):
        parse_options(REQUIRED | {name: "latest"}, streaming=True)


def test_defaults_that_are_written_down_are_the_parsers() -> None:
    written = {option.name: option.default for option in (*SOURCE_OPTIONS, *SOURCE_CLIENT_OPTIONS)}
    parsed = parse_options(REQUIRED, streaming=False)
    explicit = parse_options(
        REQUIRED
        | {
            name: written[name].partition(";")[0]
            for name in (
                "startingOffsets",
                "startingOffsetsByTimestampStrategy",
                "endingOffsets",
                "failOnDataLoss",
                "includeHeaders",
                "maxTriggerDelay",
                "kafkaConsumer.pollTimeoutMs",
                "fetchOffset.numRetries",
                "fetchOffset.retryIntervalMs",
            )
        },
        streaming=False,
    )
    assert explicit == parsed
    assert written["kafka.max.partition.fetch.bytes"] == f"{parsed.fetch_bytes >> 20} MiB"


@pytest.mark.parametrize(
    "option", [o for o in SINK_CLIENT_OPTIONS if o.default not in ("required", "-")]
)
def test_the_producers_defaults_are_those_that_are_written(option: Option) -> None:
    given = REQUIRED_BY_SINK | {"kafka.compression.type": "gzip"}
    if option.name == "kafka.compression.type":
        given = REQUIRED_BY_SINK
    explicit = parse_sink_options(given | {option.name: option.default})
    assert explicit.producer == parse_sink_options(given).producer


@pytest.mark.parametrize("name", [option.name for option in SINK_OPTIONS])
def test_the_sink_knows_its_options(name: str) -> None:
    try:
        parse_sink_options({"kafka.bootstrap.servers": "b:1", name: "true"})
    except ConfigError as error:
        said = str(error)
    else:
        said = ""
    assert "Unknown option" not in said


def test_the_sink_refuses_others() -> None:
    with pytest.raises(ConfigError, match="Unknown option 'subscribe' for the kafkapy sink"):
        parse_sink_options({"kafka.bootstrap.servers": "b:1", "subscribe": "t"})
