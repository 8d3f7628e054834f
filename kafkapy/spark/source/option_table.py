"""Every option of `format("kafkapy")`: name, default, validity, meaning. Pure data.

`options` and `sink_options` accept no other names. scripts/docs generates docs/reference/spark.md
from it.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Option(NamedTuple):
    """One option. Case does not matter.

    `valid_in` is "batch", "stream" or "both"; `default` is a text: the behaviour without the
    option.
    """

    name: str
    valid_in: str
    default: str
    meaning: str


SOURCE_OPTIONS: Final = (
    Option("assign", "both", "-", 'partitions as JSON: `{"a":[0,1]}`'),
    Option("subscribe", "both", "-", "topics, comma-separated"),
    Option(
        "subscribePattern",
        "both",
        "-",
        "a regular expression for whole names of topics; a stream takes in new ones as they appear",
    ),
    Option(
        "startingOffsets",
        "both",
        "earliest; stream: latest",
        'where a new query starts: `earliest`, `latest` (streams only), or `{"a":{"0":23,"1":-2}}`'
        " with -2 earliest, -1 latest; all partitions must be named",
    ),
    Option(
        "startingTimestamp",
        "both",
        "-",
        "start at the first record as new as this, in ms; takes precedence over the options per"
        " partition and over offsets",
    ),
    Option(
        "startingOffsetsByTimestamp",
        "both",
        "-",
        'the same per partition: `{"a":{"0":1700000000000}}`; takes precedence over offsets',
    ),
    Option(
        "startingOffsetsByTimestampStrategy",
        "both",
        "error",
        "when no record is as new: `error`, or `latest` to start at the end",
    ),
    Option("endingOffsets", "batch", "latest", "`latest` or JSON, without -2"),
    Option(
        "endingTimestamp",
        "batch",
        "-",
        "end before the first record as new as this, in ms; precedence as `startingTimestamp`",
    ),
    Option(
        "endingOffsetsByTimestamp",
        "batch",
        "-",
        "the same per partition; takes precedence over `endingOffsets`",
    ),
    Option(
        "failOnDataLoss",
        "both",
        "true",
        "fail when offsets to read are gone; `false`: a warning with partition and offsets, and on",
    ),
    Option("includeHeaders", "both", "false", "adds the column `headers`"),
    Option("maxOffsetsPerTrigger", "stream", "none", "about so many offsets a micro-batch"),
    Option("minOffsetsPerTrigger", "stream", "none", "wait for so many, at most `maxTriggerDelay`"),
    Option("maxTriggerDelay", "stream", "15m", "`500ms`, `30s`, `15m`, `1h`"),
    Option("minPartitions", "both", "none", "cut large ranges into about so many tasks"),
    Option("maxRecordsPerPartition", "both", "none", "at most so many offsets a task"),
    Option(
        "commitGroupId",
        "stream",
        "none",
        "commit finished offsets for this group, so that the query's lag shows in "
        "`kafkapy consumer-groups` and dashboards; a restart goes by the checkpoint alone",
    ),
    Option("groupIdPrefix", "both", "-", "accepted; reading needs no group"),
    Option("kafkaConsumer.pollTimeoutMs", "both", "120000", "how long a task waits for a leader"),
    Option("fetchOffset.numRetries", "both", "3", "how often the driver asks again for offsets"),
    Option("fetchOffset.retryIntervalMs", "both", "10", "how long it waits in between"),
)

SINK_OPTIONS: Final = (
    Option("topic", "both", "column `topic`", "where the rows go; wins over the column"),
    Option(
        "exactlyOnce",
        "both",
        "false",
        "a transaction for each task of each micro-batch, never written again once committed; "
        "readers need `read_committed`, brokers must serve transactions",
    ),
    Option("transactionalIdPrefix", "both", "kafkapy", "how its transactional ids begin"),
)

_CONNECTION: Final = (
    Option("kafka.bootstrap.servers", "both", "required", "brokers to connect to first"),
    Option(
        "kafka.security.protocol",
        "both",
        "PLAINTEXT",
        "with `kafka.sasl.*` (PLAIN, SCRAM, OAUTHBEARER, GSSAPI) and `kafka.ssl.*` as Java's"
        " clients have them; stores PEM, or PKCS12 and JKS with the extra `keystores`",
    ),
    Option(
        "kafka.config.providers",
        "both",
        "-",
        "the providers of variables such as `${secrets:/etc/kafka/secrets:password}` in other"
        " `kafka.*` options, with `kafka.config.providers.NAME.class`",
    ),
)
_OTHERS: Final = Option(
    "kafka.*",
    "both",
    "-",
    "any other property of Java's clients; a name that they do not know is an error",
)

SOURCE_CLIENT_OPTIONS: Final = (
    *_CONNECTION,
    Option(
        "kafka.client.rack",
        "both",
        "-",
        "the rack of the executors: they read from replicas in it if the brokers have"
        " `replica.selector.class`",
    ),
    Option(
        "kafka.isolation.level",
        "both",
        "read_uncommitted",
        "`read_committed` leaves out aborted and open transactions",
    ),
    Option(
        "kafka.max.partition.fetch.bytes",
        "both",
        "4 MiB",
        "what a task asks for at a time; bounds its memory",
    ),
    _OTHERS,
)
"""The documented `kafka.*` options of the source; others pass through."""

SINK_CLIENT_OPTIONS: Final = (
    *_CONNECTION,
    Option(
        "kafka.acks",
        "both",
        "all",
        "with `all`, and retries, a task's producer is idempotent; `0` is taken as `1`",
    ),
    Option("kafka.compression.type", "both", "none", "`gzip`, `snappy`, `lz4` or `zstd`"),
    Option(
        "kafka.compression.gzip.level",
        "both",
        "-1",
        "-1 (6) to 9; also of `lz4` (9 is the fast one) and `zstd` (3)",
    ),
    Option("kafka.batch.size", "both", "1000000", "bytes of a batch before it is compressed"),
    Option("kafka.buffer.memory", "both", "33554432", "bytes of a task's batches that are open"),
    Option(
        "kafka.*",
        "both",
        "-",
        "any other property of Java's producer; a name that it does not know is an error",
    ),
)
"""The documented `kafka.*` options of the sink."""

SEGMENT_OPTIONS: Final = (
    Option(
        "path",
        "batch",
        "required",
        "log directories, comma-separated, or one partition's; also `file:` URIs",
    ),
    Option("subscribe", "batch", "all", "topics, comma-separated"),
    Option("subscribePattern", "batch", "all", "a regular expression for whole names of topics"),
    Option("includeHeaders", "batch", "false", "adds the column `headers`"),
    Option(
        "allReplicas",
        "batch",
        "false",
        "read every replica; `false`: of each partition the one that reaches furthest",
    ),
    Option(
        "skipAborted",
        "batch",
        "false",
        "leave out transactions that the `.txnindex` files know as aborted",
    ),
    Option(
        "failOnDataLoss",
        "batch",
        "true",
        "fail at a corrupt batch or a deleted file; `false`: a warning with the file, and on with"
        " the next segment",
    ),
)
"""The options of `format("kafkapy-segments")`."""
