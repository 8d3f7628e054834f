"""`reassign --zookeeper`: the actions of older tools through znodes, with the text of Kafka 2.8."""

from __future__ import annotations

import json
from typing import Any, Final

from kafkapy.admin.planning.throttle_plan import planned_moves, throttle_plan
from kafkapy.cli.commands.reassign.actions import read_file
from kafkapy.cli.commands.reassign.generate import kafka_proposal, named_topics
from kafkapy.cli.commands.reassign.options import ReassignOptions, broker_ids
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import ExitStatus
from kafkapy.cli.framework.options import OutputFormat
from kafkapy.cli.framework.output import Report, show
from kafkapy.cli.views.reassign import (
    VERIFY_REMINDER,
    clearing_lines,
    partition_json,
    rollback_lines,
    started_line,
)
from kafkapy.common.errors import KafkapyError
from kafkapy.tools.reassign.partition_files import format_reassignment, validate_reassignment
from kafkapy.tools.zookeeper.reassign import ZnodeReassignments

DEPRECATED: Final = (
    "Warning: --zookeeper is deprecated, and will be removed in a future version of Kafka."
)
INCOMPLETE: Final = (
    "Warning: because you are using the deprecated --zookeeper option, the results may be"
    " incomplete.  Use --bootstrap-server instead for more accurate results."
)


def run_by_znodes(action: str, options: ReassignOptions, env: Environment) -> ExitStatus:
    """`--generate`, `--execute` or `--verify`."""
    assert options.zookeeper is not None
    cluster = ZnodeReassignments(options.zookeeper)
    if options.output is not OutputFormat.json:
        env.line(DEPRECATED)
    if action == "generate":
        return _generate(cluster, options, env)
    return (_execute if action == "execute" else _verify)(cluster, options, env)


def _generate(
    cluster: ZnodeReassignments, options: ReassignOptions, env: Environment
) -> ExitStatus:
    assert options.broker_list is not None
    topics, listed = named_topics(options) or [], broker_ids(options.broker_list)
    current, live = cluster.layout(topics)
    show(env, kafka_proposal(current, live, listed, options), options.output)
    return ExitStatus.SUCCESS


def _execute(cluster: ZnodeReassignments, options: ReassignOptions, env: Environment) -> ExitStatus:
    file = read_file(options)
    validate_reassignment(file)
    current = cluster.check(file)
    if options.output is not OutputFormat.json:
        for line in rollback_lines(current):
            env.line(line)
        env.stdout.flush()  # before the request: moves may begin even if the response is lost
    plan = throttle_plan(planned_moves(current, file.targets, {}))
    text = []
    if options.throttle >= 0:
        limit = f"The inter-broker throttle limit was set to {options.throttle} B/s"
        text = [VERIFY_REMINDER, limit]
    data: dict[str, Any] = {"rollback": json.loads(format_reassignment(current)), "started": []}
    try:
        cluster.begin(file.targets, plan, options.throttle)
    except KafkapyError:
        if options.output is OutputFormat.json:
            show(env, Report("reassign", [data], []), options.output)
        raise
    data["started"] = [str(tp) for tp in file.targets]
    show(env, Report("reassign", [data], [*text, started_line(file.targets)]), options.output)
    return ExitStatus.SUCCESS


def _verify(cluster: ZnodeReassignments, options: ReassignOptions, env: Environment) -> ExitStatus:
    file = read_file(options)
    found = cluster.verify(file)
    text = [INCOMPLETE, "Status of partition reassignment:", *map(str, found.partitions)]
    complete = all(state.is_complete for state in found.partitions)
    cleared = not found.any_running and not options.preserve_throttles
    if cleared:
        file_brokers = {b for replicas in file.targets.values() for b in replicas}
        brokers, topics = (
            sorted(file_brokers.union(found.live)),
            sorted({t.topic for t in file.targets}),
        )
        cluster.clear_throttles(brokers, topics)
        text += clearing_lines(brokers, topics)
    data = {
        "complete": complete,
        "any_running": found.any_running,
        "partitions": [partition_json(state) for state in found.partitions],
        "throttles_cleared": cleared,
    }
    show(env, Report("reassign", [data], text), options.output)
    return ExitStatus.FAILURE if options.strict and not complete else ExitStatus.SUCCESS
