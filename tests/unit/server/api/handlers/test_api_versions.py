"""The versions that are served are those of Apache Kafka 3.9.1 in ZooKeeper mode.

`kafka_3_9_1_api_versions.txt` is its ApiVersions response: a line is "key name lowest highest".
What is not served, and why, is in `NOT_SERVED` and nowhere else.
"""

from __future__ import annotations

from pathlib import Path

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.headers import RequestHeader
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest
from kafkapy.server.api.handlers import SERVED, api_versions
from kafkapy.server.api.request_context import RequestContext

_LINES = Path(__file__).with_name("kafka_3_9_1_api_versions.txt").read_text().splitlines()
RECORDED = {
    int(key): (name, int(low), int(high)) for key, name, low, high in map(str.split, _LINES)
}
NOT_SERVED = {
    ApiKey.UPDATE_FEATURES: "a broker in ZooKeeper mode supports no feature: 3.9.1 refuses each",
    ApiKey.ENVELOPE: "brokers forward to KRaft controllers only: 3.9.1 closes the connection",
    ApiKey.CONSUMER_GROUP_HEARTBEAT: "needs KRaft: 3.9.1 answers UNSUPPORTED_VERSION",
    ApiKey.CONSUMER_GROUP_DESCRIBE: "needs KRaft: 3.9.1 answers UNSUPPORTED_VERSION",
}


def test_every_version_of_apache_kafka_is_served_and_no_other() -> None:
    context = RequestContext(RequestHeader(18, 2, 1, "test"), "127.0.0.1", "PLAINTEXT")
    answer = api_versions.handle(SERVED, context, ApiVersionsRequest())
    ours = {
        row.api_key: (ApiKey(row.api_key).name, row.min_version, row.max_version)
        for row in answer.api_keys
    }
    assert ours == {key: row for key, row in RECORDED.items() if key not in NOT_SERVED}


def test_each_exception_is_one_that_apache_kafka_lists() -> None:
    assert NOT_SERVED.keys() <= RECORDED.keys()
