"""The options of `format("kafkapy")`, with names, defaults and messages of Spark's own Kafka
source.

Pure. One difference is deliberate: an unknown option is an error.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, TypeVar

from kafkapy.client.config_providers import resolved
from kafkapy.client.consumer_names import CONSUMER_ONLY, is_client_name
from kafkapy.client.fetch import FETCH_BYTES_MAX
from kafkapy.common.comma_separated import comma_separated
from kafkapy.common.errors import ConfigError
from kafkapy.common.patterns import PATTERN_ERRORS
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.spark.source.connection_names import refuse_unknown_connection_names
from kafkapy.spark.source.offsets import (
    EARLIEST,
    LATEST,
    Offsets,
    parse_offsets,
    parse_partitions,
    parse_timestamps,
)
from kafkapy.spark.source.option_table import SOURCE_OPTIONS
from kafkapy.spark.source.source_columns import default_columns

T = TypeVar("T")

_STRATEGIES: Final = ("assign", "subscribe", "subscribePattern")
OPTIONS: Final = tuple(option.name for option in SOURCE_OPTIONS)
"""Every option except the `kafka.*` client properties. Case does not matter."""
_BATCH_ONLY: Final = tuple(option.name for option in SOURCE_OPTIONS if option.valid_in == "batch")

_FORBIDDEN: Final = {
    "auto.offset.reset": "is not supported. Set the source option 'startingOffsets' to 'earliest' "
    "or 'latest' instead: it says where a new query starts, and a restarted one goes on from its "
    "checkpoint",
    "key.deserializer": "is not supported as keys are deserialized as byte arrays; cast the column "
    "'key' instead",
    "value.deserializer": "is not supported as values are deserialized as byte arrays; cast the "
    "column 'value' instead",
    "enable.auto.commit": "is not supported",
    "interceptor.classes": "is not supported",
}
_DURATION_MS: Final = {
    **dict.fromkeys(("", "ms"), 1),
    **dict.fromkeys(("s",), 1000),
    **dict.fromkeys(("m", "min"), 60_000),
    **dict.fromkeys(("h",), 3_600_000),
    **dict.fromkeys(("d",), 86_400_000),
}
_INT32_MAX: Final = 2**31 - 1
_INT64_MAX: Final = 2**63 - 1
_FETCH_BYTES: Final = "kafka.max.partition.fetch.bytes"


class PositionKind(Enum):
    """Kinds of start and end positions."""

    OFFSETS = "offsets"
    TIMESTAMPS = "timestamps"


class Position(NamedTuple):
    """A starting or ending position: `common_value` for all partitions, or `partitions` one by one.

    Numbers are offsets (-1 latest, -2 earliest) or, if `kind` is TIMESTAMPS, milliseconds.
    """

    kind: PositionKind
    common_value: int | None
    partitions: Offsets


@dataclass(frozen=True, slots=True)
class Subscription:
    """The partitions to read. One of the three fields is set."""

    topics: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    assigned: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The checked options of one read."""

    subscription: Subscription
    starting: Position
    ending: Position
    latest_if_no_match: bool
    fail_on_data_loss: bool
    columns: tuple[str, ...]
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_ms: int
    min_partitions: int | None
    max_records_per_partition: int | None
    poll_timeout_ms: int
    fetch_offset_retries: int
    fetch_offset_retry_interval_ms: int
    fetch_bytes: int
    commit_group_id: str | None
    client_properties: dict[str, str]

    @property
    def isolation_level(self) -> int:
        """The protocol's value: 0 read_uncommitted, 1 read_committed."""
        return int(self.client_properties.get("isolation.level") == "read_committed")


def parse_options(given: Mapping[str, str], *, streaming: bool | None) -> SourceOptions:
    """Read and check the options of a batch or streaming read, or of either (None).

    Raises:
        ConfigError: names the option, its value and what is allowed.
    """
    options = {name.lower(): value for name, value in given.items()}
    _refuse_unknown(options)
    subscription = _subscription(options)
    properties = _client_properties(options)
    if streaming:
        _refuse_endings(options)
    starting = _position(options, "starting", LATEST if streaming else EARLIEST)
    ending = _position(options, "ending", LATEST)
    if streaming is False:
        _check_batch(starting, ending)
    max_offsets = _number(options, "maxOffsetsPerTrigger", low=1)
    min_offsets = _number(options, "minOffsetsPerTrigger", low=1)
    if max_offsets is not None and min_offsets is not None and min_offsets > max_offsets:
        raise ConfigError(
            f"The value of minOffsetsPerTrigger({min_offsets}) is higher than the "
            f"maxOffsetsPerTrigger({max_offsets})."
        )
    strategy = options.get("startingoffsetsbytimestampstrategy", "error").lower()
    if strategy not in ("error", "latest"):
        raise _invalid("startingOffsetsByTimestampStrategy", strategy, "error or latest")
    return SourceOptions(
        subscription=subscription,
        starting=starting,
        ending=ending,
        latest_if_no_match=strategy == "latest",
        fail_on_data_loss=_boolean(options, "failOnDataLoss", True),
        columns=default_columns(_boolean(options, "includeHeaders", False)),
        max_offsets_per_trigger=max_offsets,
        min_offsets_per_trigger=min_offsets,
        max_trigger_delay_ms=_duration_ms(options, "maxTriggerDelay", "15m"),
        min_partitions=_number(options, "minPartitions", low=1),
        max_records_per_partition=_number(options, "maxRecordsPerPartition", low=1),
        poll_timeout_ms=min(
            _number(options, "kafkaConsumer.pollTimeoutMs", low=1) or 120_000, _INT32_MAX
        ),
        fetch_offset_retries=_number_or(options, "fetchOffset.numRetries", 3),
        fetch_offset_retry_interval_ms=min(
            _number_or(options, "fetchOffset.retryIntervalMs", 10), _INT32_MAX
        ),
        fetch_bytes=_fetch_bytes(options),
        commit_group_id=_commit_group_id(options, streaming),
        client_properties=properties,
    )


def _fetch_bytes(options: Mapping[str, str]) -> int:
    size = _number(options, _FETCH_BYTES, low=1) or FETCH_BYTES_MAX
    if size > _INT32_MAX:
        raise ConfigError(f"{_FETCH_BYTES} must be at most {_INT32_MAX}, got {size}")
    return size


def _commit_group_id(options: Mapping[str, str], streaming: bool | None) -> str | None:
    group = options.get("commitgroupid")
    if group is None:
        return None
    if streaming is False:
        raise ConfigError("commitGroupId is valid in streaming queries only")
    if not group.strip():
        raise _invalid("commitGroupId", group, "the name of a group")
    return group.strip()


def refuse_unknown(names: Collection[str], known: Mapping[str, str], source: str) -> None:
    """Check the names of options, in lower case. `known` has the right ones by their lower case.

    Raises:
        ConfigError: names the option, and a similar one; or the options are those of a table.
    """
    if "provider" in names:
        raise ConfigError(
            f"CREATE TABLE cannot use {source}: Spark does not pass the options of a table to a "
            f"Python source. Use CREATE TEMPORARY VIEW ... USING `{source}` OPTIONS (...)"
        )
    for name in names:
        if name not in known:
            matches = difflib.get_close_matches(name, known, n=1)
            hint = f" Did you mean '{known[matches[0]]}'?" if matches else ""
            raise ConfigError(f"Unknown option '{name}' for the {source} source.{hint}")


def _refuse_unknown(options: Mapping[str, str]) -> None:
    known = {name.lower(): name for name in OPTIONS}
    known |= {f"kafka.{name}": f"kafka.{name}" for name in CONSUMER_ONLY}
    others = [
        name
        for name in options
        if not (name.startswith("kafka.") and is_client_name(name.removeprefix("kafka.")))
    ]
    refuse_unknown(others, known, "kafkapy")


def _subscription(options: Mapping[str, str]) -> Subscription:
    strategies = [name for name in _STRATEGIES if name.lower() in options]
    if len(strategies) != 1:
        count = "Only one" if strategies else "One"
        verb = "can" if strategies else "must"
        raise ConfigError(
            f"{count} of the following options {verb} be specified for Kafka source: "
            "subscribe, subscribePattern, assign. See the docs for more details."
        )
    value = options[strategies[0].lower()]
    if strategies[0] == "subscribe":
        topics = tuple(dict.fromkeys(comma_separated(value)))
        if topics:
            return Subscription(topics=topics)
        problem = "No topics to subscribe to"
    elif strategies[0] == "assign":
        if value.strip().startswith("{"):
            assigned = tuple(dict.fromkeys(parse_partitions(value)))
            if assigned:
                return Subscription(assigned=assigned)
        problem = "No topicpartitions to assign"
    else:
        if value.strip():
            try:
                return Subscription(pattern=re.compile(value.strip()))
            except PATTERN_ERRORS as error:
                raise _invalid(
                    "subscribePattern", value, f"a regular expression: {error}"
                ) from None
        problem = "Pattern to subscribe is empty"
    raise ConfigError(f"{problem} as specified value for option '{strategies[0]}' is '{value}'")


def _client_properties(options: Mapping[str, str]) -> dict[str, str]:
    """The `kafka.*` options without their prefix."""
    properties = resolved(
        {
            name.removeprefix("kafka."): value
            for name, value in options.items()
            if name.startswith("kafka.")
        }
    )
    refuse_unknown_connection_names(properties)
    for name, reason in _FORBIDDEN.items():
        if name in properties:
            raise ConfigError(f"Kafka option '{name}' {reason}")
    if not properties.get("bootstrap.servers", "").strip():
        raise ConfigError(
            "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka consumer"
        )
    isolation = properties.get("isolation.level", "read_uncommitted")
    if isolation not in ("read_uncommitted", "read_committed"):
        raise _invalid("kafka.isolation.level", isolation, "read_uncommitted or read_committed")
    return properties


def _refuse_endings(options: Mapping[str, str]) -> None:
    for name in _BATCH_ONLY:
        if name.lower() in options:
            kind = "offset" if name == "endingOffsets" else "timestamp"
            raise ConfigError(f"ending {kind} not valid in streaming queries ('{name}')")


def _position(options: Mapping[str, str], side: str, default: int) -> Position:
    """The `startingX` or `endingX` options. The global timestamp takes precedence, then the
    timestamps per partition.
    """
    timestamp = options.get(f"{side}timestamp")
    if timestamp is not None:
        try:
            common_value = int(timestamp)
        except ValueError:
            message = f"Expected a single long value, got {timestamp} ('{side}Timestamp')"
            raise ConfigError(message) from None
        _check_timestamp(f"{side}Timestamp", common_value)
        return Position(PositionKind.TIMESTAMPS, common_value, {})
    by_timestamp = options.get(f"{side}offsetsbytimestamp")
    if by_timestamp is not None:
        parsed = parse_timestamps(by_timestamp)
        for tp, timestamp_ms in parsed.items():
            _check_timestamp(f"{side}OffsetsByTimestamp for {tp}", timestamp_ms)
        return Position(PositionKind.TIMESTAMPS, None, parsed)
    offsets = options.get(f"{side}offsets", "").strip()
    word = {"": default, "latest": LATEST, "earliest": EARLIEST}.get(offsets.lower())
    if word is not None:
        return Position(PositionKind.OFFSETS, word, {})
    parsed = parse_offsets(offsets)
    for tp, offset in parsed.items():
        if offset < EARLIEST:
            raise ConfigError(f"{side}Offsets for {tp} is {offset}; allowed are -2, -1 and up")
    return Position(PositionKind.OFFSETS, None, parsed)


def _check_timestamp(name: str, timestamp: int) -> None:
    """Check a timestamp. In ListOffsets, negative ones are codes: -1 is the latest offset."""
    if not 0 <= timestamp <= _INT64_MAX:
        raise ConfigError(f"{name} is {timestamp}; it must be 0 to {_INT64_MAX}")


def _check_batch(starting: Position, ending: Position) -> None:
    """Check a batch's range, as far as possible without a broker."""
    if starting.kind is PositionKind.OFFSETS:
        if starting.common_value == LATEST:
            raise ConfigError("starting offset can't be latest for batch queries on Kafka")
        for tp, offset in starting.partitions.items():
            if offset == LATEST:
                raise ConfigError(
                    f"startingOffsets for {tp} can't be latest for batch queries on Kafka"
                )
    if ending.kind is PositionKind.OFFSETS:
        if ending.common_value == EARLIEST:
            raise ConfigError("ending offset can't be earliest for batch queries on Kafka")
        for tp, offset in ending.partitions.items():
            if offset == EARLIEST:
                raise ConfigError(
                    f"ending offset for {tp} can't be earliest for batch queries on Kafka"
                )
    if (
        starting.kind is ending.kind
        and starting.common_value is None
        and ending.common_value is None
    ):
        if starting.partitions.keys() != ending.partitions.keys():
            raise ConfigError(
                f"The starting {starting.kind.value} name {_names(starting.partitions)}, "
                f"the ending ones {_names(ending.partitions)}; they must name the same partitions"
            )
        for tp, start in starting.partitions.items():
            end = ending.partitions[tp]
            if 0 <= end < start:
                raise ConfigError(f"{tp} would start at {start}, after its end {end}")


def _names(partitions: Mapping[TopicPartition, int]) -> str:
    return ", ".join(map(str, sorted(partitions)))


def _number(options: Mapping[str, str], name: str, *, low: int) -> int | None:
    text = options.get(name.lower())
    if text is None:
        return None
    number = _convert(name, text, int, "a whole number")
    if not low <= number <= _INT64_MAX:
        raise ConfigError(f"{name} must be {'positive' if low else 'zero or more'}, got {text}")
    return number


def _number_or(options: Mapping[str, str], name: str, default: int) -> int:
    number = _number(options, name, low=0)
    return default if number is None else number


def _boolean(options: Mapping[str, str], name: str, default: bool) -> bool:
    text = options.get(name.lower(), str(default)).strip().lower()
    if text not in ("true", "false"):
        raise _invalid(name, text, "true or false")
    return text == "true"


def _duration_ms(options: Mapping[str, str], name: str, default: str) -> int:
    text = options.get(name.lower(), default).strip().lower()
    match = re.fullmatch(r"(\d{1,15})\s*([a-z]*)", text)
    if match is None or match[2] not in _DURATION_MS:
        raise _invalid(name, text, "a duration such as 500ms, 30s or 15m")
    return int(match[1]) * _DURATION_MS[match[2]]


def _convert(name: str, text: str, convert: Callable[[str], T], allowed: str) -> T:
    try:
        return convert(text)
    except ValueError:
        raise _invalid(name, text, allowed) from None


def _invalid(name: str, value: str, allowed: str) -> ConfigError:
    return ConfigError(f"Invalid value '{value}' for option '{name}': it must be {allowed}")
