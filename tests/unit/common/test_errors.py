"""Error codes are Kafka's numbers: a client acts on the number and on whether it may try again."""

from __future__ import annotations

import pytest
from kio.schema.errors import ErrorCode as KafkaErrorCode

from kafkapy.common.errors import ApiError, ErrorCode, LogDirFailure

OF_KAFKA_4 = {
    ErrorCode.INVALID_REGULAR_EXPRESSION,
    ErrorCode.REBOOTSTRAP_REQUIRED,
    ErrorCode.SHARE_SESSION_LIMIT_REACHED,
}


def test_codes_names_and_retriability_are_kafkas() -> None:
    for code in set(ErrorCode) - OF_KAFKA_4:
        kafkas = KafkaErrorCode(int(code))
        assert kafkas.name == code.name.lower()
        assert kafkas.retriable == code.retriable, code.name


def test_no_code_of_kafka_3_9_is_missing() -> None:
    """125 to 127 belong to KRaft voters, which no ZooKeeper-mode API returns."""
    known = {int(code) for code in ErrorCode}
    assert {code.value for code in KafkaErrorCode} - known == set(range(125, 128))


def test_a_refusal_is_read_by_people() -> None:
    said = ApiError(ErrorCode.INVALID_REQUEST, "no such thing")
    assert (said.code, said.message, str(said)) == (
        ErrorCode.INVALID_REQUEST,
        "no such thing",
        "no such thing",
    )
    assert ApiError(ErrorCode.NOT_CONTROLLER).message == "NOT_CONTROLLER"


def test_a_failed_directory_is_named_and_explained() -> None:
    failure = LogDirFailure("/data/1", "Input/output error")
    assert (failure.log_dir, str(failure)) == ("/data/1", "Input/output error")


def test_a_message_that_names_a_whole_request_fits_a_string_of_the_protocol() -> None:
    error = ApiError(ErrorCode.INVALID_REQUEST, "\u4e2d" * 100_000)
    assert error.message.endswith("\u4e2d...")
    assert len(error.message.encode()) < 32767


def test_a_code_of_a_newer_peer_is_an_unknown_server_error() -> None:
    """A ValueError would end what reads the answer, such as a coordinator's markers."""
    assert ErrorCode(11) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert ErrorCode(9999) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert ErrorCode(-2) is ErrorCode.UNKNOWN_SERVER_ERROR
    with pytest.raises(ValueError, match="is not a valid"):
        ErrorCode("NONE")
