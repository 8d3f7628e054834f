"""Some rows of a request are refused: each with its code, and the others are handled."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages import produce
from kafkapy.server.api.handlers import SERVED
from kafkapy.server.api.refused_rows import handle_passed_rows
from kafkapy.server.api.served import ServedApi
from kafkapy.server.requests.outcomes import CLOSE_CONNECTION, NO_RESPONSE
from kafkapy.server.requests.turns import run_now

CONTEXT: Any = SimpleNamespace(version=9)
UNKNOWN, DENIED = ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.TOPIC_AUTHORIZATION_FAILED


def topic(name: str) -> produce.TopicProduceData:
    return produce.TopicProduceData(
        name=name, partition_data=[produce.PartitionProduceData(index=0)]
    )


def handled(
    passed: list[str], refused: dict[ErrorCode, list[str]], acks: int = 1
) -> tuple[Any, list[str]]:
    """The answer, and the topics that the handler got."""
    got: list[str] = []

    def handle(_: Any, request: produce.ProduceRequest) -> Any:
        got.extend(each.name for each in request.topic_data)
        rows = [
            produce.TopicProduceResponse(
                name=each.name, partition_responses=[produce.PartitionProduceResponse()]
            )
            for each in request.topic_data
        ]
        return produce.ProduceResponse(responses=rows) if acks else NO_RESPONSE

    served = ServedApi(*SERVED[ApiKey.PRODUCE], handle)
    rows = {code: [topic(name) for name in names] for code, names in refused.items()}
    good = [topic(name) for name in passed]
    request = produce.ProduceRequest(
        acks=acks, topic_data=[*good, *(row for each in rows.values() for row in each)]
    )
    work = handle_passed_rows(served, CONTEXT, request, "topic_data", "responses", good, rows)
    return run_now(work), got


def codes(response: produce.ProduceResponse) -> dict[str, int]:
    return {each.name: each.partition_responses[0].error_code for each in response.responses}


def test_each_refused_row_has_its_code() -> None:
    response, got = handled(["a"], {UNKNOWN: ["b", "c"], DENIED: ["d"]})
    assert codes(response) == {"a": 0, "b": UNKNOWN, "c": UNKNOWN, "d": DENIED}
    assert got == ["a"]


def test_nothing_is_handled_if_all_are_refused() -> None:
    response, got = handled([], {UNKNOWN: ["b"], DENIED: ["d"]})
    assert (codes(response), got) == ({"b": UNKNOWN, "d": DENIED}, [])


def test_a_request_without_an_answer_is_handled_and_ends_the_connection() -> None:
    assert handled(["a"], {UNKNOWN: ["b"]}, acks=0) == (CLOSE_CONNECTION, ["a"])
    assert handled(["a"], {}, acks=0) == (NO_RESPONSE, ["a"])
