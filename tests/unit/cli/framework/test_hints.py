"""Hints: the next step for an error, chosen by its cause and the command line."""

from __future__ import annotations

import socket
import ssl

import pytest

from kafkapy.cli.framework.exit_status import CommandFailed, UsageError
from kafkapy.cli.framework.hints import HINTS_BY_CODE, hint
from kafkapy.common.errors import ApiError, ConfigError, ErrorCode


def caused(text: str, cause: Exception) -> CommandFailed:
    """An error of a command, two steps from its cause."""
    middle = ApiError(ErrorCode.BROKER_NOT_AVAILABLE, text)
    middle.__cause__ = cause
    error = CommandFailed(f"Error: {text}")
    error.__cause__ = middle
    return error


@pytest.mark.parametrize(
    ("cause", "part"),
    [
        (ConnectionRefusedError(), "start a broker"),
        (socket.gaierror(), "host name"),
        (ssl.SSLCertVerificationError(), "ssl.truststore.location"),
        (ssl.SSLEOFError(), "security.protocol=PLAINTEXT"),
        (TimeoutError(), "request.timeout.ms"),
    ],
)
def test_the_first_cause_decides(cause: Exception, part: str) -> None:
    assert part in (hint(caused("No bootstrap server can be reached", cause), ["topics"]) or "")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("certificate verify failed: certificate has expired", "renew the broker's certificate"),
        ("certificate verify failed: IP address mismatch, certificate is not", "a name in the"),
        ("[SSL: SSLV3_ALERT_CERTIFICATE_EXPIRED] sslv3 alert", "certificate of this client"),
        ("[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] tlsv13 alert", "requires a client certificate"),
        ("SSL routines::tlsv13 alert certificate required", "requires a client certificate"),
        ("SSL routines::ssl/tls alert certificate expired", "certificate of this client"),
        ("[SSL: SSLV3_ALERT_HANDSHAKE_FAILURE] sslv3 alert", "or other ciphers"),
        ("[SSL: TLSV1_ALERT_UNKNOWN_CA] tlsv1 alert", "requires a client certificate"),
    ],
)
def test_tls_is_not_blamed_or_switched_off_for_a_bad_certificate(text: str, part: str) -> None:
    """The hint was to name the CA, or to use PLAINTEXT."""
    cause = ssl.SSLCertVerificationError() if "verify failed" in text else ssl.SSLError()
    found = hint(caused(f"No bootstrap server can be reached. {text}", cause), ["topics"]) or ""
    assert part in found
    assert "PLAINTEXT" not in found


def test_a_store_that_cannot_be_used_has_no_other_hint_than_its_reason() -> None:
    text = "ssl.keystore.location=a.pem cannot be used: no key"
    assert hint(caused(text, ssl.SSLError()), ["topics"]) is None


@pytest.mark.parametrize(
    "error",
    [
        caused("it offers: none", ApiError(ErrorCode.ILLEGAL_SASL_STATE)),
        caused(
            "SASL PLAIN mechanism handshake failed: Broker: Request not valid in current SASL"
            " state: broker's supported mechanisms:  (after 0ms in state AUTH_HANDSHAKE)",
            ApiError(ErrorCode.SASL_AUTHENTICATION_FAILED),
        ),
    ],
)
def test_the_password_is_not_blamed_where_a_listener_has_no_sasl(error: CommandFailed) -> None:
    assert (hint(error, ["topics"]) or "").startswith("this listener has no SASL")


def test_the_code_of_what_was_refused_decides() -> None:
    refused = caused("Topic authorization failed.", ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    assert hint(refused, ["topics"]) == HINTS_BY_CODE[ErrorCode.TOPIC_AUTHORIZATION_FAILED]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("ZooKeeper refused /: SessionClosedRequireSaslError", "a section Client in a JAAS file"),
        (
            "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer must be"
            " kafka.security.authorizer.AclAuthorizer or empty",
            "StandardAuthorizer is for KRaft",
        ),
        (
            "All log directories are offline, the last by: /d/a-0/partition.metadata names no topic"
            " id: 'topic_id'",
            "move that file elsewhere",
        ),
        ("All log directories are offline, the last by: [Errno 28]", "has room"),
        ("the embedded store is damaged: wrong length or CRC at byte 9", "from a copy"),
        ("The cluster id a does not match the stored cluster id b in meta", "its chroot"),
    ],
)
def test_the_text_of_an_error_without_a_cause_decides(text: str, part: str) -> None:
    assert part in (hint(ConfigError(text), ["server"]) or "")


@pytest.mark.parametrize(
    ("request_name", "part"),
    [("API_VERSIONS", "the port of a broker"), ("INCREMENTAL_ALTER_CONFIGS", "the broker is busy")],
)
def test_a_broker_that_answered_before_is_a_broker(request_name: str, part: str) -> None:
    error = ApiError(
        ErrorCode.REQUEST_TIMED_OUT, f"b1:9092 did not answer {request_name} within 30000 ms"
    )
    error.__cause__ = TimeoutError()
    found = hint(error, ["configs"])
    assert found is not None
    assert part in found
    assert "request.timeout.ms" in found


def test_no_flag_is_advised_that_the_command_does_not_have() -> None:
    error = ConfigError("Invalid value x for configuration clientPort: it must be a port")
    assert "--override" in (hint(error, ["server", "start"]) or "")
    for command in ("zookeeper", "topics", "configs"):
        assert "--override" not in (hint(error, [command]) or "")


@pytest.mark.parametrize(
    ("command", "option", "meant"),
    [
        ("topics", "bootstrap-servers", "bootstrap-server"),
        ("topics", "broker-list", "bootstrap-server"),
        ("consumer-groups", "zookeeper", "bootstrap-server"),
        ("replica-verification", "whitelist", "topics-include"),
        ("topics", "partition", "partitions"),
    ],
)
def test_an_option_that_was_meant(command: str, option: str, meant: str) -> None:
    error = UsageError(f"{option} is not a recognized option")
    assert hint(error, [command, f"--{option}", "x"]) == f"did you mean --{meant}?"


def test_nothing_is_guessed() -> None:
    assert hint(UsageError("xyzzy is not a recognized option"), ["topics", "--xyzzy"]) is None
    assert hint(UsageError("xyzzy is not a recognized option"), []) is None
    assert hint(ConfigError("something else"), ["topics"]) is None


def test_what_was_said_in_the_background_is_not_said_again() -> None:
    said = "a cannot be bound: Address already in use by process 7"
    assert hint(CommandFailed(said), ["server"]) == "stop that process, or choose another port"
    assert hint(CommandFailed(f"It ended with 1.\n  {said}\n  Hint: stop it"), ["server"]) is None


def test_a_broker_that_cannot_listen_has_no_bootstrap_server() -> None:
    for reason in ("Name or service not known", "Cannot assign requested address"):
        text = f"listeners=PLAINTEXT://a..b:9092 cannot be bound: {reason}"
        assert "correct the property" in (hint(caused(text, socket.gaierror()), ["server"]) or "")


def test_a_config_that_was_meant() -> None:
    assert hint(ConfigError("Unknown topic config name: retentoin.ms"), []) == (
        "did you mean retention.ms?"
    )
    assert "configs --describe" in (hint(ConfigError("Unknown topic config name: x"), []) or "")


@pytest.mark.parametrize("words", [["--offset-json-file", "o.json"], ["--offset-json-file=o.json"]])
def test_a_file_that_is_not_json_has_an_example(words: list[str]) -> None:
    error = ConfigError("The input string is not a valid JSON (line 1)")
    said = hint(error, ["delete-records", *words])
    assert said is not None
    assert said.startswith('o.json has to look like {"version":1,"partitions":[{"topic":"t",')
    assert hint(error, ["delete-records"]) is None
