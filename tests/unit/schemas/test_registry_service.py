"""Writes that another registry overtakes, or whose outcome is not known."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any
from unittest.mock import Mock

import pytest

from kafkapy.client.batch_producer import DeliveryError, RecordTooLarge
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.schemas.records import Record, SchemaType, StoredSchema, Version, schema_record
from kafkapy.schemas.registry import Decision
from kafkapy.schemas.registry_service import RegistryService
from kafkapy.schemas.rest_api import Call, RestApi
from kafkapy.schemas.rest_errors import RestError
from kafkapy.schemas.schemas_topic import BEGINNING

REGISTER = Call({"subject": "a"}, {}, {"schema": '"string"'})
OTHERS = schema_record(Version("b", 1, 1, StoredSchema(SchemaType.AVRO, '"int"')))


class Topic:
    """A topic in memory. Each write takes the next of `outcomes`: an error, or None; `is_written`
    says whether the records of failed writes are there."""

    def __init__(self, *outcomes: Exception | None, is_written: bool = False) -> None:
        self.records: list[Record] = []
        self.writes = 0
        self._outcomes = list(outcomes)
        self._is_written = is_written
        self._next = 0
        self.on_begin: list[Record] = []

    def read_stable(self) -> list[Record]:
        found = self.records[self._next :]
        self._next = len(self.records)
        return found

    read_all = read_stable

    def pause(self, attempt: int) -> None:
        """The next attempt follows at once."""

    def begin(self) -> None:
        self.records += self.on_begin
        self.on_begin = []

    def write(self, transaction: None, records: Sequence[Record]) -> None:
        self.writes += 1
        outcome = self._outcomes.pop(0) if self._outcomes else None
        if outcome is None or self._is_written:
            self.records += records
        if outcome is not None:
            raise outcome


def service(topic: Any) -> RegistryService:
    return RegistryService(topic, "cluster-1")


def test_a_decision_is_made_on_the_records_of_another_registry() -> None:
    topic = Topic()
    topic.on_begin = [OTHERS]
    registry = service(topic)
    assert registry.answer(RestApi.register, REGISTER) == {"id": 2}


def test_a_schema_that_another_registry_wrote_is_not_written_again() -> None:
    topic = Topic()
    topic.on_begin = [schema_record(Version("a", 1, 1, StoredSchema(SchemaType.AVRO, '"string"')))]
    registry = service(topic)
    assert registry.answer(RestApi.register, REGISTER) == {"id": 1}
    assert topic.writes == 0


def test_an_overtaken_write_is_decided_again() -> None:
    topic = Topic(DeliveryError("fenced"), ApiError(ErrorCode.INVALID_PRODUCER_EPOCH))
    registry = service(topic)
    assert registry.answer(RestApi.register, REGISTER) == {"id": 1}
    assert topic.writes == 3
    assert len(topic.records) == 1


def test_a_write_whose_response_was_lost_is_found() -> None:
    """Decided again, the deletion would be refused: the subject is deleted."""
    topic = Topic(None, ApiError(ErrorCode.REQUEST_TIMED_OUT), is_written=True)
    registry = service(topic)
    registry.answer(RestApi.register, REGISTER)
    deletion = Call({"subject": "a"}, {}, {})
    assert registry.answer(RestApi.delete_subject, deletion) == [1]
    assert topic.writes == 2


def test_a_write_that_always_fails_is_refused() -> None:
    topic = Topic(*[DeliveryError("no leader")] * 100)
    registry = service(topic)
    with pytest.raises(RestError, match="no leader") as raised:
        registry.answer(RestApi.register, REGISTER)
    assert raised.value.code == 50001
    assert not topic.records


def test_only_constant_answers_are_given_without_the_topic() -> None:
    registry = service(Topic())
    registry.answer(RestApi.register, REGISTER)
    by_id = Call({"id": "1"}, {}, {})
    known = {"guid": "095d71cf-1255-6b9d-5e33-0ad575b3df5d", "schema": '"string"'}
    assert registry.answer_known(RestApi.schema, by_id) == known
    by_guid = Call({"guid": known["guid"]}, {}, {})
    assert registry.answer_known(RestApi.schema_of_guid, by_guid) == known
    assert registry.answer_known(RestApi.schema, by_id._replace(query={"fetchMaxId": "1"})) is None
    assert registry.answer_known(RestApi.schema, Call({"id": "2"}, {}, {})) is None
    assert registry.answer_known(RestApi.subjects, Call({}, {}, {})) is None


def test_what_the_registry_itself_has_needs_no_topic() -> None:
    """Checks of its health, and clients that ask for its types, wait for Kafka otherwise."""
    registry, call = service(Topic()), Call({}, {}, {})
    assert registry.answer_known(RestApi.root, call) == {}
    assert registry.answer_known(RestApi.types, call) == ["JSON", "PROTOBUF", "AVRO"]
    assert registry.answer_known(RestApi.contexts, call) == ["."]
    assert registry.answer_known(RestApi.cluster, call)["id"] == ""


def test_one_read_serves_all_requests_that_waited_for_it() -> None:
    topic = Mock(wraps=Topic())
    registry, call = service(topic), Call({}, {}, {})
    for _ in range(3):
        assert registry.answer(RestApi.subjects, call, time.monotonic()) == []
    assert topic.read_stable.call_count == 3
    for _ in range(3):
        assert registry.answer(RestApi.subjects, call, 0.0) == []
    assert topic.read_stable.call_count == 3


def test_one_failure_refuses_all_requests_that_waited_for_it() -> None:
    """While Kafka hangs, each read takes 10 s: the hundredth client waited for 1,000 s."""
    topic = Mock(read_stable=Mock(side_effect=ApiError(ErrorCode.REQUEST_TIMED_OUT, "no answer")))
    registry, call = service(topic), Call({}, {}, {})
    for asked_s in (time.monotonic(), 0.0, 0.0):
        with pytest.raises(RestError, match="no answer") as raised:
            registry.answer(RestApi.subjects, call, asked_s)
        assert raised.value.code == 50001
    assert topic.read_stable.call_count == 1
    topic.read_stable = Topic().read_stable
    assert registry.answer(RestApi.subjects, call, time.monotonic()) == []
    assert registry.answer(RestApi.subjects, call, 0.0) == []


def test_a_topic_that_cannot_be_followed_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    failures = [ApiError(ErrorCode.REQUEST_TIMED_OUT), RuntimeError("bug"), [OTHERS]]
    registry = service(Mock(read_stable=Mock(side_effect=failures)))
    for _ in failures:
        registry.follow()
    assert registry.answer_known(RestApi.schema_text, Call({"id": "1"}, {}, {})) == '"int"'
    assert "RuntimeError: bug" in caplog.text


def test_a_topic_that_was_created_again_has_none_of_the_earlier_schemas() -> None:
    topic = Topic()
    registry = service(topic)
    registry.answer(RestApi.register, REGISTER)
    topic.records += [BEGINNING, OTHERS]
    registry.follow()
    assert registry.subjects == 1
    assert registry.answer_known(RestApi.schema_text, Call({"id": "1"}, {}, {})) == '"int"'


def test_a_schema_that_exceeds_the_limit_of_the_topic_is_refused_at_once() -> None:
    topic = Topic(RecordTooLarge("_schemas-0: MESSAGE_TOO_LARGE"))
    with pytest.raises(RestError, match="Schema too large") as raised:
        service(topic).answer(RestApi.register, REGISTER)
    assert (raised.value.code, topic.writes) == (42209, 1)


@pytest.mark.parametrize("bug", [StopIteration(), KeyError("a")])
def test_a_bug_is_an_answer_and_a_line_in_the_log(
    bug: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """A future cannot hold StopIteration: the client would wait for ever."""

    def handler(_api: RestApi, _call: Call) -> Decision:
        raise bug

    with pytest.raises(RestError) as raised:
        service(Topic()).answer(handler, REGISTER)
    assert raised.value.status == 500
    assert type(bug).__name__ in raised.value.message
    assert "A request failed: handler" in caplog.text
