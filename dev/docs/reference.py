"""Generated parts of docs/reference: flags of the commands, configs, and metrics.

Each is generated from the declaration that the code itself uses; `scripts/docs` puts them into the
pages.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from dev.docs.man_pages import has_strict, remarks
from dev.report import table
from kafkapy.cli.framework.command import Command, commands
from kafkapy.cli.framework.command_table import GROUPS
from kafkapy.cli.framework.drop_in_names import DROP_IN
from kafkapy.cli.framework.jopt import OptionSpec
from kafkapy.common import topic_configs
from kafkapy.common.config_def import ConfigKey, ConfigValue, format_value
from kafkapy.metadata import dynamic_broker_configs
from kafkapy.server.config.broker_config_table import AT_START_ONLY, NO_EFFECT, REMOVED
from kafkapy.server.config.config_documentation import broker_text, topic_text
from kafkapy.server.config.kafka_config import BROKER_CONFIGS, NOT_SERVED
from kafkapy.server.counts.metric_table import METRICS

# Kafka 3.9 has no text for these: they are internal, of a later version, or of its authorizer.
TEXTS: Final = {
    "group.consumer.migration.policy": "Whether groups change their protocol while they have"
    " members: to the consumer protocol (upgrade), to the classic one (downgrade), or both.",
    "group.consumer.regex.refresh.interval.ms": "The interval at which the regular expressions"
    " of consumer groups, and the permissions of their members, are evaluated again.",
    "log.initial.task.delay.ms": "The delay of the first retention, cleaning and flush of logs.",
    "producer.id.expiration.check.interval.ms": "The interval at which expired producer ids are"
    " removed.",
    "super.users": "Principals that may perform every operation, separated by semicolons.",
    "allow.everyone.if.no.acl.found": "Whether a resource without ACLs is open to everyone.",
}
COMMON: Final = ("--output", "--debug", "--version", "--help")
EVERY_BROKER: Final = "cluster"
ONE_BROKER: Final = "broker"
AT_START: Final = "restart"
_LONGEST: Final = 2**63 - 1
_MEANING_LETTERS: Final = 300


def command_flags() -> str:
    """Every command with every flag, in the order of the table of commands."""
    every = commands()
    return "\n\n".join(
        "\n\n".join(_command(name, every[name])) for names in GROUPS.values() for name in names
    )


def common_flags() -> str:
    """The flags that every command has."""
    found = [spec for spec in commands()["topics"].specs() if f"--{spec.names[0]}" in COMMON]
    return _flags(found)


def statuses_of_reported_failures() -> str:
    """The commands that exit with 0 after some failures."""
    rows = [
        [f"`kafkapy {name}`", cell(command.reported_failures), "1" if has_strict(command) else ""]
        for name, command in sorted(commands().items())
        if command.reported_failures and command.name == name
    ]
    return table(["command", "exits with 0 although", "with `--strict`"], rows)


def _command(name: str, command: Command[Any]) -> Iterator[str]:
    yield f"## kafkapy {name}"
    if command.name != name:
        yield f"The same as `kafkapy {command.name}`."
        return
    yield cell(command.help)
    scripts = [f"`{script}`" for script, words in DROP_IN.items() if words[0] == name]
    if scripts:
        yield f"Apache Kafka's name: {', '.join(scripts)}."
    operand = command.operand()
    if operand is not None:
        yield f"Words: `{operand.metavar}`. {operand.help}"
    yield _flags(s for s in command.specs() if f"--{s.names[0]}" not in COMMON)
    if command.refused:
        rows = [
            [f"`{'-' if len(flag) == 1 else '--'}{flag}`", cell(why)]
            for flag, why in command.refused.items()
        ]
        yield table(["refused flag", "why"], rows)


def _flags(specs: Iterable[OptionSpec]) -> str:
    rows = []
    for spec in specs:
        names = [f"-{name}" if len(name) == 1 else f"--{name}" for name in spec.names]
        value = f" {spec.metavar}" if spec.metavar else ""
        shown = " ".join([spec.help, *remarks(spec)])
        rows.append([", ".join(f"`{cell(each + value)}`" for each in names), cell(shown)])
    return table(["flag", "meaning"], rows) if rows else "It has no flags of its own."


def broker_configs() -> str:
    """Every key that has an effect, and how it can be changed."""
    others = NO_EFFECT.keys() | NOT_SERVED.keys()
    keys = [key for key in BROKER_CONFIGS.keys.values() if key.name not in others]
    rows = [
        [*_config(key, key.documentation or broker_text(key.name)), _change(key.name)]
        for key in sorted(keys, key=_own_last)
    ]
    return table(["config", "type", "default", "values", "meaning", "change"], rows)


def broker_configs_without_effect() -> str:
    """Every key that is accepted and does nothing, and why."""
    keys = [key for key in BROKER_CONFIGS.keys.values() if key.name in NO_EFFECT]
    rows = [[f"`{key.name}`", _default(key), cell(NO_EFFECT[key.name])] for key in sorted(keys)]
    return table(["config", "default", "why it has no effect"], rows)


def refused_broker_configs() -> str:
    """Every key with which a broker does not start."""
    rows = [[f"`{name}`", cell(why)] for name, why in sorted(NOT_SERVED.items())]
    return table(["refused config", "why"], rows)


def removed_broker_configs() -> str:
    """Every key that Kafka 3.0 removed."""
    rows = [[f"`{name}`", f"`{cell(instead)}`"] for name, instead in sorted(REMOVED.items())]
    return table(["removed config", "write instead"], rows)


def topic_config_table() -> str:
    """Every config of a topic, with its effect and the broker's config that gives its default."""
    rows = []
    for key in sorted(topic_configs.TOPIC_CONFIGS.keys.values()):
        why = topic_configs.NO_EFFECT.get(key.name)
        of_broker = ", ".join(f"`{name}`" for name in key.synonyms) or "-"
        effect = "yes" if why is None else cell(f"no: {why}")
        rows.append([*_config(key, topic_text(key.name)), of_broker, effect])
    head = ["config", "type", "default", "values", "meaning", "default from broker", "effect"]
    return table(head, rows)


def metrics() -> str:
    """Every metric of a broker, as Prometheus shows it."""
    rows = []
    for name, row in METRICS.items():
        shown = f"{name}_total" if row.kind == "counter" else name
        labels = ", ".join(f"`{label}`" for label in row.labels) or "-"
        rows.append([f"`{shown}`", row.kind, labels, cell(row.meaning)])
    return table(["metric", "type", "labels", "meaning"], rows)


def _config(key: ConfigKey, text: str | None) -> list[str]:
    meaning = beginning(text or TEXTS[key.name])
    allowed = f"`{cell(key.allowed)}`" if key.allowed else "-"
    return [f"`{key.name}`", key.type.name.lower(), _default(key), allowed, meaning]


def _own_last(key: ConfigKey) -> tuple[bool, str]:
    return key.name.startswith("kafkapy."), key.name


def _default(key: ConfigKey) -> str:
    text = _shown(key.default)
    return f"`{cell(text)}`" if text else "-"


def _shown(value: ConfigValue) -> str | None:
    if value == _LONGEST and not isinstance(value, bool | float):
        return "2^63-1"
    return format_value(value)


def _change(name: str) -> str:
    """Way to change a key: for every broker at once, for one broker, or by a restart."""
    if name not in dynamic_broker_configs.ALL_DYNAMIC or name in AT_START_ONLY:
        return AT_START
    return ONE_BROKER if name in dynamic_broker_configs.PER_BROKER else EVERY_BROKER


def beginning(text: str) -> str:
    """The first sentences of Kafka's text, without HTML: one, and more while they are short."""
    plain = html.unescape(re.sub(r"<[^>]+>", "", text.replace("%n", " ")))
    sentences = re.split(r"(?<=[.:])\s+(?=[A-Z])", " ".join(plain.split()))
    kept = sentences.pop(0)
    while sentences and len(kept) + len(sentences[0]) < _MEANING_LETTERS:
        kept += f" {sentences.pop(0)}"
    return cell(kept.rstrip(":"))


def cell(text: str) -> str:
    """Text escaped for a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
