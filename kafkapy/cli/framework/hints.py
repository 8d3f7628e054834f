"""Hints: one line of advice below an error, for the most likely mistakes.

The error itself has the text of Kafka's tools, on which scripts rely. This module is imported only
after an error.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kafkapy.cli.framework.command import load
from kafkapy.cli.framework.command_table import COMMANDS
from kafkapy.cli.framework.environment import Environment
from kafkapy.common.errors import ApiError, ErrorCode

_CONFIG: Final = "in the file of --command-config"
_ALLOW: Final = (
    "ask an administrator for the right: kafkapy acls --add --allow-principal User:NAME"
    " --operation OPERATION, with --topic, --group or --cluster"
)
_NOT_PLAIN: Final = (
    f"a listener with TLS or SASL needs security.protocol {_CONFIG};"
    " default.api.timeout.ms there sets the time limit"
)
_PLAIN: Final = (
    f"a listener without TLS needs security.protocol=PLAINTEXT or SASL_PLAINTEXT {_CONFIG}"
)
_NO_BROKER: Final = (
    "check that this is the port of a broker, and security.protocol"
    f" {_CONFIG}; request.timeout.ms there sets the time limit"
)
_NO_SASL: Final = (
    "this listener has no SASL: use the port of a SASL listener, or security.protocol=PLAINTEXT or"
    f" SSL {_CONFIG}"
)
HINTS_BY_CODE: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.SASL_AUTHENTICATION_FAILED: (
        f"check sasl.mechanism, and username and password in sasl.jaas.config, {_CONFIG}"
    ),
    ErrorCode.ILLEGAL_SASL_STATE: _NO_SASL,
    ErrorCode.UNSUPPORTED_SASL_MECHANISM: f"set sasl.mechanism to one of these {_CONFIG}",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: _ALLOW,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: _ALLOW,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: _ALLOW,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: _ALLOW,
    ErrorCode.TOPIC_ALREADY_EXISTS: (
        "with --if-not-exists that is no error; kafkapy topics --describe shows the topic"
    ),
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: (
        "kafkapy topics --list shows the topics that you may see, --describe their partitions"
    ),
    ErrorCode.INVALID_REPLICATION_FACTOR: (
        "lower --replication-factor, or start more brokers;"
        " kafkapy cluster list-endpoints shows those that run"
    ),
}
# By the class name of an error's cause, so that ssl is not imported for it.
HINTS_BY_CAUSE: Final[Mapping[str, str]] = {
    "ConnectionRefusedError": (
        "start a broker (kafkapy server start), or correct host and port of --bootstrap-server"
    ),
    "gaierror": "correct the host name of --bootstrap-server",
    "SSLCertVerificationError": (
        "name the CA of the broker's certificate: ssl.truststore.location (and"
        f" ssl.truststore.type=PEM for a PEM file) {_CONFIG}"
    ),
    "SSLEOFError": _PLAIN,
    "SSLError": _PLAIN,
    "ConnectionResetError": _NOT_PLAIN,
    "TimeoutError": _NO_BROKER,
    "ProtocolViolation": _NO_BROKER,
}
# These need no hint: the text names the key store or trust store, and the reason.
_COMPLETE: Final = re.compile(r"\bssl\.\S*=.* cannot be used: ")
# These come first, because the causes of these errors have other hints.
FIRST_HINTS_BY_TEXT: Final = (
    (
        r"certificate has expired|certificate is not yet valid",
        "renew the broker's certificate, or correct the clock of this machine",
    ),
    (
        r"Hostname mismatch|IP address mismatch",
        "connect to a name in the broker's certificate: in --bootstrap-server, and in"
        " advertised.listeners of the brokers",
    ),
    (
        r"(?i)alert[_ ]certificate[_ ]expired",
        f"renew the certificate of this client: ssl.keystore.location {_CONFIG}",
    ),
    (
        r"(?i)alert[_ ](certificate[_ ](required|unknown)|unknown[_ ]ca|bad[_ ]certificate)",
        "the listener requires a client certificate that the broker trusts: ssl.keystore.location"
        f" {_CONFIG}, and the broker's ssl.truststore.location",
    ),
    (
        r"(?i)alert[_ ]handshake[_ ]failure",
        "the listener requires a client certificate (ssl.keystore.location) or other ciphers"
        f" (ssl.cipher.suites) {_CONFIG}",
    ),
    (r"not valid in current SASL state", _NO_SASL),
    (
        r"did not answer (?!API_VERSIONS\b)[A-Z_]+ within",  # it answered the first request
        "the broker is busy or hangs, and may still complete the request;"
        f" request.timeout.ms {_CONFIG} sets the time limit",
    ),
)
HINTS_BY_TEXT: Final = (
    (
        r"^listeners=.* cannot be bound: Address already in use",
        "stop that process, or choose another port"
        " (kafkapy server start --override listeners=PLAINTEXT://localhost:PORT)",
    ),
    (r"Address already in use by process", "stop that process, or choose another port"),
    (
        r"/partition\.metadata names no topic id",
        "move that file elsewhere; the broker writes it again",
    ),
    (
        r"does not match the stored cluster id",
        "check zookeeper.connect, and its chroot. With the embedded store: the file embedded-store"
        " is lost; restore it from a copy. For an empty cluster, move these directories elsewhere",
    ),
    (
        r"^the embedded store is damaged",
        "restore embedded-store, in the first directory of log.dirs, from a copy; it has the topics"
        " and configs, and their records are in the other files",
    ),
    (
        r"^All log directories are offline|^Cannot write .*/embedded-store: ",
        "log.dirs needs a directory that this user can write and that has room",
    ),
    (r"^Topic .* does not exist as expected", HINTS_BY_CODE[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]),
    (
        r"^ZooKeeper at .* cannot be reached",
        "start ZooKeeper (kafkapy zookeeper start), or correct its host and port:"
        " zookeeper.connect of a broker, --zookeeper of a command",
    ),
    (
        r"SessionClosedRequireSaslError\b",
        "ZooKeeper requires a login: a section Client in a JAAS file, which KAFKA_OPTS names"
        " (-Djava.security.auth.login.config=FILE)",
    ),
    (
        r"^authorizer\.class\.name=.*\.StandardAuthorizer must be ",
        "StandardAuthorizer is for KRaft; AclAuthorizer keeps the same kinds of ACLs in ZooKeeper",
    ),
    (
        r"not present in metadata after \d+ ms",
        "check --bootstrap-server and the topic; --max-block-ms sets the time limit",
    ),
    (
        r"^No broker of .* answered within",
        "start a broker, or correct --bootstrap-server;"
        " --consumer-property default.api.timeout.ms=N sets the time limit",
    ),
    (
        r"^Assignments can only be reset if the group",
        "stop the group's consumers first: --describe --members shows them;"
        " with --strict the exit status is 1",
    ),
    (
        r"^Consumer group .* does not exist",
        "kafkapy consumer-groups --list shows the groups; with --strict the exit status is 1",
    ),
)
_JSON: Final = {
    "reassignment_json_file": (
        '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}'
    ),
    "topics_to_move_json_file": '{"version":1,"topics":[{"topic":"t"}]}',
    "offset_json_file": '{"version":1,"partitions":[{"topic":"t","partition":0,"offset":1}]}',
    "path_to_json_file": '{"partitions":[{"topic":"t","partition":0}]}',
}
# Options of other and of older tools, and the options that replace them.
_REPLACEMENTS: Final = {
    "zookeeper": ("bootstrap-server",),
    "broker-list": ("bootstrap-server",),
    "bootstrap.servers": ("bootstrap-server",),
    "consumer.config": ("command-config",),
    "producer.config": ("command-config",),
    "whitelist": ("include", "topics-include"),
}


def warn(env: Environment, error: BaseException, words: Sequence[str]) -> None:
    """Write the hint for an error, if the error has one."""
    advice = hint(error, words)
    if advice is not None:
        env.warn(f"Hint: {advice}")


def hint(error: BaseException, words: Sequence[str]) -> str | None:
    """The advice for an error of a command line; None if none is known."""
    if "Hint: " in str(error) or _COMPLETE.search(str(error)):
        return None  # the former contains the output of a background process, which has a hint
    chain = list(_chain(error))
    return (
        _of_option(str(error), words)
        or _of_config(str(error))
        or _of_json(str(error), words)
        or _of_listener(str(error))
        or _of_property(str(error), words)
        or next((h for p, h in FIRST_HINTS_BY_TEXT if re.search(p, str(error))), None)
        or next((h for each in chain if (h := HINTS_BY_CAUSE.get(type(each).__name__))), None)
        or next(
            (h for e in chain if isinstance(e, ApiError) and (h := HINTS_BY_CODE.get(e.code))), None
        )
        or next((h for e in chain for p, h in HINTS_BY_TEXT if re.search(p, str(e))), None)
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _of_option(text: str, words: Sequence[str]) -> str | None:
    """A hint for an unknown option: the option that was probably meant."""
    unknown = re.fullmatch(r"(.+) is not a recognized option", text)
    if unknown is None:
        return None
    names = _option_names(words)
    similar = [name for name in _REPLACEMENTS.get(unknown[1], ()) if name in names]
    similar += difflib.get_close_matches(unknown[1], names, n=1, cutoff=0.7)
    return f"did you mean --{similar[0]}?" if similar else None


def _option_names(words: Sequence[str]) -> list[str]:
    """The options of the command; none if `words` do not begin with a command."""
    if not words or words[0] not in COMMANDS:
        return []
    return [name for spec in load(words[0]).specs() for name in spec.names]


def _of_config(text: str) -> str | None:
    """A hint for an unknown topic config: the name that was probably meant."""
    unknown = re.search(r"Unknown topic config name: (\S+)$", text)
    if unknown is None:
        return None
    from kafkapy.common.topic_configs import TOPIC_CONFIGS

    similar = difflib.get_close_matches(unknown[1], TOPIC_CONFIGS.keys, n=1)
    return (
        f"did you mean {similar[0]}?"
        if similar
        else "kafkapy configs --describe --all shows the names"
    )


def _of_listener(text: str) -> str | None:
    """A hint for a broker that cannot bind a listener. Hints about client options do not apply."""
    if re.search(r" cannot be bound: (?!Address already in use)", text) is None:
        return None
    return (
        "a broker listens on a name or an address of this machine, and on a port that this user may"
        " have: correct the property"
    )


def _of_property(text: str, words: Sequence[str]) -> str | None:
    """A hint for a wrong property of a broker, for the commands that override properties."""
    if re.search(r"^Invalid value .* for configuration|is not a listener: expected", text) is None:
        return None
    if "override" not in _option_names(words):
        return None
    return "correct the line of the property file, or override it: --override NAME=VALUE"


def _of_json(text: str, words: Sequence[str]) -> str | None:
    """A hint for a file that is not valid JSON: the file and an example."""
    if "is not a valid JSON" not in text or len(words) < 2 or words[0] not in COMMANDS:
        return None
    options = load(words[0]).read(words[1:])
    files = ((getattr(options, name, None), example) for name, example in _JSON.items())
    return next((f"{file} has to look like {example}" for file, example in files if file), None)
