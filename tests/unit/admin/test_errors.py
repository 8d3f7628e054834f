"""Codes to exceptions, with words."""

import pytest

from kafkapy.admin.errors import api_error, check, java_exception, java_text, topic_error
from kafkapy.common.errors import ApiError, ErrorCode


def test_the_brokers_words_come_first() -> None:
    assert str(api_error(3, "mine")) == "mine"
    assert str(api_error(3)) == "This server does not host this topic-partition."
    assert str(api_error(ErrorCode.STALE_BROKER_EPOCH)) == "STALE_BROKER_EPOCH"


def test_a_code_of_the_future() -> None:
    error = api_error(9999)
    assert (error.code, str(error)) == (ErrorCode.UNKNOWN_SERVER_ERROR, "Unknown error code 9999")


def test_only_an_unknown_topic_is_called_unknown() -> None:
    assert str(topic_error(3, "t", "no t")) == "no t"
    assert topic_error(0, "t", "no t").code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert str(topic_error(29, "t", "no t")) == "Topic t: Topic authorization failed."


def test_check() -> None:
    check(0, "ignored")
    with pytest.raises(ApiError, match="why"):
        check(40, "why")


def test_exceptions_have_kafkas_class_names() -> None:
    package = "org.apache.kafka.common.errors."
    assert {code: java_exception(code).removeprefix(package) for code in (1, 3, 7, 17, 84, 56)} == {
        1: "OffsetOutOfRangeException",
        3: "UnknownTopicOrPartitionException",
        7: "TimeoutException",
        17: "InvalidTopicException",
        84: "ElectionNotNeededException",
        56: "KafkaStorageException",
    }
    assert java_exception(12345) == package + "UnknownServerException"
    assert java_text(ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, "why")) == (
        package + "OffsetOutOfRangeException: why"
    )
