"""Declares options as fields of a dataclass, for parsing, help, completions and manual pages.

@dataclass
class TopicsOptions(ClusterOptions):
    create: bool = flag("Create a new topic.")
    topic: str | None = value("The topic.", metavar="TOPIC")
    config: list[str] = values("A topic configuration.", metavar="NAME=VALUE")
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Protocol

from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import UsageError
from kafkapy.cli.framework.jopt import OptionSpec
from kafkapy.common.java_numbers import INT_MAX

if TYPE_CHECKING:
    from kafkapy.admin.dry_run import DryRunCluster
    from kafkapy.client.cluster import Cluster

# A pattern, compiled on first use: most runs of a command use none.
_HOST_PORT: Final = r"([A-Za-z0-9\-%._]*://)?\[?([0-9A-Za-z\-%._:]*)\]?:([0-9]+)"


SPEC: Final = "spec"
"""The key of the option in a field's metadata."""


class OutputFormat(StrEnum):
    """Output formats; the default is table on a terminal and text on a pipe."""

    text = "text"
    table = "table"
    json = "json"


def flag(
    help: str, *, stands_for: str | None = None, short: str = "", actions: Sequence[str] = ()
) -> Any:
    """An option without a value; with `stands_for`, that option with an empty value. `short` is
    its letter, if it has one. `actions` are those of the command that use it."""
    spec = OptionSpec(
        ("", *short), stands_for=stands_for, help=_help(help, actions), actions=tuple(actions)
    )
    return dataclasses.field(default=False, metadata={SPEC: spec})


def value(
    help: str,
    *,
    metavar: str = "TEXT",
    default: Any = None,
    optional_value: str | None = None,
    name: str = "",
    aliases: Sequence[str] = (),
    choices: Iterable[str] = (),
    short: str = "",
    bits: int = 64,
    actions: Sequence[str] = (),
) -> Any:
    """An option with one value. `optional_value` is its value if no value follows; `short` is its
    letter, and `aliases` are its other names; `bits` is the size of a whole number; `actions` are
    those that use it.
    """
    spec = OptionSpec(
        (name, *aliases, *short),
        optional_value=optional_value,
        help=_help(help, actions),
        metavar=metavar,
        choices=tuple(choices),
        default="" if default in (None, False) else str(default),
        bits=bits,
        actions=tuple(actions),
    )
    return dataclasses.field(default=default, metadata={SPEC: spec})


def values(
    help: str,
    *,
    metavar: str = "TEXT",
    aliases: Sequence[str] = (),
    choices: Iterable[str] = (),
    many: bool = False,
    actions: Sequence[str] = (),
) -> Any:
    """An option that may be repeated; with `many`, it takes all words up to the next option.
    `aliases` are its other names.
    """
    spec = OptionSpec(
        ("", *aliases),
        help=_help(help, actions),
        metavar=metavar,
        choices=tuple(choices),
        many=many,
        actions=tuple(actions),
    )
    return dataclasses.field(default_factory=list, metadata={SPEC: spec})


def _help(text: str, actions: Sequence[str]) -> str:
    return f"{', '.join(actions)}: {text}" if actions else text


@dataclass
class CommonOptions:
    """Options of every command."""

    output: OutputFormat | None = value(
        "The format of results: Kafka's text, a table, or JSON in one envelope. Default:"
        " table on a terminal, text otherwise.",
        metavar="text|table|json",
        choices=OutputFormat,
    )
    debug: bool = flag("Show tracebacks.")
    version: bool = flag("Print the version and exit.")
    help: bool = flag("Show the options.", short="h")


@dataclass
class ClusterOptions(CommonOptions):
    """Options of every command that connects to a cluster."""

    bootstrap_server: str | None = value(
        "REQUIRED: the brokers to connect to first.", metavar="HOST:PORT,..."
    )
    command_config: str | None = value(
        "A property file for the connection: security and timeouts.", metavar="FILE"
    )

    def connect(
        self,
        env: Environment,
        client_id: str = "kafkapy",
        defaults: Mapping[str, str] | None = None,
    ) -> Cluster:
        """The cluster of these options. It connects when it sends its first request.

        `defaults` are properties that the property file may replace.

        Raises:
            UsageError: the bootstrap servers are missing.
            ConfigError: a server or a property is malformed.
        """
        from kafkapy.client.cluster import Cluster

        return Cluster(*self._connection(defaults), client_id, connector=env.connector)

    def connect_dry(
        self,
        env: Environment,
        client_id: str = "kafkapy",
        defaults: Mapping[str, str] | None = None,
    ) -> DryRunCluster:
        """The same cluster for a dry run, which reads it but does not change it."""
        from kafkapy.admin.dry_run import DryRunCluster

        return DryRunCluster(*self._connection(defaults), client_id, connector=env.connector)

    def _connection(self, defaults: Mapping[str, str] | None) -> tuple[str, dict[str, str]]:
        require(self, "bootstrap_server")
        assert self.bootstrap_server is not None
        return self.bootstrap_server, {**(defaults or {}), **properties_of(self.command_config)}


def properties_of(*files: str | None) -> dict[str, str]:
    """The properties of files, with the values of variables. Later files override earlier files;
    None is skipped.

    Raises:
        ConfigError: a file cannot be read, or is malformed, or a variable has no value.
    """
    from kafkapy.client.properties import load_properties

    found: dict[str, str] = {}
    for file in files:
        found |= {} if file is None else load_properties(file)
    if "config.providers" not in found:
        return found
    from kafkapy.client.config_providers import resolved  # few files have variables

    return resolved(found)


def is_given(options: object, name: str) -> bool:
    """Whether an option was on the command line (an empty value counts)."""
    value = getattr(options, name)
    return value is not None and value is not False and value != []


def one_action(options: object, actions: Iterable[str], listed: str) -> str:
    """The one action that was chosen.

    Raises:
        UsageError: none was chosen, or several; `listed` is the list of actions of Kafka's tool.
    """
    chosen = [name for name in actions if is_given(options, name)]
    if len(chosen) != 1:
        raise UsageError(f"Command must include exactly one action: {listed}")
    return chosen[0]


def single_verb(words: Sequence[str], verbs: Sequence[str]) -> str:
    """The only word of a command line, for commands that Kafka parses with argparse4j.

    Raises:
        UsageError: it is not one of the verbs, or more words follow.
    """
    verb, *rest = words or [""]
    if verb not in verbs:
        raise UsageError(f"invalid choice: '{verb}' (choose from {', '.join(verbs)})")
    if rest:
        raise UsageError(f"unrecognized arguments: '{' '.join(rest)}'")
    return verb


def require(options: object, *names: str) -> None:
    """
    Raises:
        UsageError: one of the options is missing.
    """
    for name in names:
        if not is_given(options, name):
            raise UsageError(f'Missing required argument "[{option_name(name)}]"')


def refuse(options: object, name: str, *others: str) -> None:
    """
    Raises:
        UsageError: `name` was given together with one of `others` (`checkInvalidArgs`).
    """
    for other in others if is_given(options, name) else ():
        if is_given(options, other):
            raise UsageError(
                f'Option "[{option_name(name)}]" can\'t be used with option'
                f' "[{option_name(other)}]"'
            )


def available_if(options: object, name: str, *others: str) -> None:
    """
    Raises:
        UsageError: `name` was given without any of `others` (JOpt Simple's `availableIf`).
    """
    if is_given(options, name) and not any(is_given(options, other) for other in others):
        raise UsageError(
            f"Option(s) [{option_name(name)}] are unavailable given other options on the command"
            " line"
        )


def refuse_other_actions(options: Any, action: str) -> None:
    """
    Raises:
        UsageError: an option was given that the action does not use.
    """
    for field in dataclasses.fields(options):
        spec: OptionSpec | None = field.metadata.get(SPEC)
        if spec is None or not spec.actions or action in spec.actions:
            continue
        if is_given(options, field.name) and getattr(options, field.name) != field.default:
            raise UsageError(f'Option "[{option_name(field.name)}]" can\'t be used with "{action}"')


class ReadLimits(Protocol):
    """Options that limit reading."""

    max_messages: int | None
    timeout_ms: int | None


def normalise_limits(options: ReadLimits) -> None:
    """Replace values that mean "no limit" by None, as for missing options. Kafka does the same."""
    if options.max_messages == -1:
        options.max_messages = None
    if options.timeout_ms is not None and options.timeout_ms < 0:
        options.timeout_ms = None


def timeout_of(requested_ms: int) -> int:
    """A timeout limited to the range of Java's `int` from 0 on, which sockets accept."""
    return min(max(0, requested_ms), INT_MAX)


def check_host_ports(servers: str | None) -> None:
    """Check a server list as some of Kafka's tools do (`ToolsUtils.validateBootstrapServer`).
    Commas at the end have no effect.

    Raises:
        UsageError: a part is not host:port.
    """
    for part in () if servers is None else (servers.rstrip(",") or servers).split(","):
        if not re.fullmatch(_HOST_PORT, part):
            raise UsageError("Please provide valid host:port like host1:9091,host2:9092")


def option_name(field_name: str) -> str:
    """A field's name as written on the command line; `list_` is `list`."""
    return field_name.rstrip("_").replace("_", "-")
