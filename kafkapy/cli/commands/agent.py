"""`kafkapy agent`: sends lines of files to a topic while they are written."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import ExitStatus, UsageError
from kafkapy.cli.framework.options import (
    ClusterOptions,
    flag,
    properties_of,
    require,
    value,
    values,
)
from kafkapy.cli.framework.output import Report, show


@dataclass
class AgentOptions(ClusterOptions):
    """Files to follow, the target topic, and the file for positions."""

    topic: str | None = value("REQUIRED: the topic to write to.", metavar="TOPIC")
    state: str | None = value(
        "REQUIRED: the file that stores the position in each file.", metavar="FILE"
    )
    from_end: bool = flag("At the very first start, skip the existing lines.")
    once: bool = flag(
        "Send the existing lines, including a last line without a line end, then stop."
    )
    poll_ms: int = value(
        "The interval between checks for new lines.", metavar="MS", default=500, bits=32
    )
    producer_property: list[str] = values("A producer property.", metavar="K=V")
    files: list[str] = values(
        "Files or quoted patterns; new files that match are followed too, compressed ones are not.",
        metavar="FILE...",
    )


def run(options: AgentOptions, env: Environment) -> ExitStatus:
    """Follow the files until SIGTERM or Ctrl-C.

    Raises:
        UsageError: an option or the files are missing, or the interval is not positive.
        ConfigError: a property or the state file is wrong.
        AgentError: a line cannot be delivered, or the state cannot be saved.
    """
    from kafkapy.client.properties import parse_assignments
    from kafkapy.common.system import raise_open_files_limit
    from kafkapy.tools.agent import Agent, State, Stop, TopicSink

    require(options, "bootstrap_server", "topic", "state")
    assert options.topic is not None
    assert options.state is not None
    if not options.files:
        raise UsageError("Name the files to follow")
    if options.poll_ms < 1:
        raise UsageError("--poll-ms must be at least 1")
    properties = properties_of(options.command_config)
    properties |= parse_assignments(options.producer_property)
    properties["bootstrap.servers"] = options.bootstrap_server or ""
    raise_open_files_limit()
    stop = Stop()
    sink = TopicSink(options.topic, properties, env.warn, stop.is_set)
    state = State(Path(options.state))
    # Before lines are sent. If only a later save failed, each start would send them again.
    state.save()
    agent = Agent(options.files, state, sink, env.warn, from_end=options.from_end)
    old_handlers = {number: signal.signal(number, lambda *_: stop.set()) for number in STOP_SIGNALS}
    try:
        agent.run(stop, poll_s=options.poll_ms / 1000, once=options.once)
    finally:
        agent.close()
        for number, handler in old_handlers.items():
            signal.signal(number, handler)
    data = {"topic": options.topic, "sent": agent.sent}
    show(env, Report("agent", [data], [f"{agent.sent} lines to {options.topic}"]), options.output)
    return ExitStatus.SUCCESS


STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

COMMAND: Final = Command(
    "agent",
    AgentOptions,
    run,
    help="Follow files and write their lines to a topic, each at least once.",
    operands="files",
    groups={
        "What to send": "topic state from-end once poll-ms",
        "How to send": "producer-property",
    },
    examples={
        "Follow a log file; the state file stores the position.": (
            "--topic logs --state agent.state app.log {B}"
        ),
        "Send the existing lines, then stop.": (
            "--topic logs --state agent.state --once app.log other.log {B}"
        ),
    },
)
