"""Recorder of the output of Apache Kafka 3.9's own tools (`scripts/conformance --record`).

A ZooKeeper-mode cluster of three brokers is started from Apache Kafka's jars, every line of
tests/data/tools/commands.txt is run through the Java tool, and exit status and masked text go to
tests/data/tools/record.json. `tests/conformance/test_tools.py` compares our tools with it on our
brokers; `scripts/conformance --tools` does so on Apache Kafka's brokers.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.harness.processes import apache_kafka
from tests.harness.tools.tool_differences import Differences, Printed, read_record, run_ours
from tests.harness.tools.tool_lines import RECORD, Steps, masked, read_commands

BROKER_IDS = (1, 2, 3)
SETTINGS = {
    "auto.create.topics.enable": "false",
    # The first rebalance is seconds after the start, while the command lines run.
    "auto.leader.rebalance.enable": "false",
    # The records of the steps are older than the retention time: nothing may delete them meanwhile.
    "log.initial.task.delay.ms": "86400000",
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
}
CLASSES = {
    "topics": apache_kafka.TOPICS,
    "configs": "kafka.admin.ConfigCommand",
    "consumer-groups": apache_kafka.CONSUMER_GROUPS,
    "get-offsets": apache_kafka.GET_OFFSET_SHELL,
    "broker-api-versions": "kafka.admin.BrokerApiVersionsCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
    "acls": "kafka.admin.AclCommand",
    "reassign": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
}


@contextlib.contextmanager
def apache_cluster() -> Iterator[tuple[list[str], Path]]:
    """Three brokers of Apache Kafka on one ZooKeeper: their addresses, and a directory."""
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kafkapy-record-")))
        zookeeper = apache_kafka.ZooKeeperProcess(scratch / "zookeeper").start()
        stack.callback(zookeeper.kill)
        brokers = []
        for broker_id in BROKER_IDS:
            overrides = {"broker.id": str(broker_id), **SETTINGS}
            broker = apache_kafka.ApacheBroker(
                scratch / f"broker-{broker_id}", overrides, zookeeper
            )
            broker.launch()
            stack.callback(broker.kill)
            brokers.append(broker)
        for broker in brokers:
            broker.wait_until_ready()
        yield [broker.bootstrap_servers for broker in brokers], scratch


def record(print_line: Callable[[str], None]) -> None:
    """Run every line through the Java tools, and write their output."""
    found = []
    with apache_cluster() as (brokers, scratch):
        servers = ",".join(brokers)
        steps = Steps(servers, scratch)
        for line in read_commands():
            print_line(line.text)
            if line.is_step:
                steps.do(line)
                continue
            words = line.arguments(servers, scratch)
            done = apache_kafka.run_tool(CLASSES[line.words[0]], *words)
            text = done.stdout.decode() + "\n" + done.stderr.decode()
            lines = masked(text, brokers, scratch)
            found.append({"command": line.text, "status": done.returncode, "lines": lines})
        steps.close()
    RECORD.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    print_line(
        f"written: {RECORD}: {len(found)} command lines of Apache Kafka {apache_kafka.VERSION}"
    )


def compare(print_line: Callable[[str], None]) -> bool:
    """Run every line through our tools against Apache Kafka. Returns whether all match."""
    record, lines = read_record(), read_commands()
    kept = {i: record[line.text].pop(0) for i, line in enumerate(lines) if not line.is_step}
    differences = Differences(apache=True)

    def complaint(index: int, printed: Printed) -> str | None:
        return differences.complaint(lines[index], kept[index], printed)

    def is_right(index: int, printed: Printed) -> bool:
        return complaint(index, printed) is None

    with apache_cluster() as (brokers, scratch):
        ours = run_ours(lines, brokers, scratch, is_right)
    found = [each for i, printed in ours.items() if (each := complaint(i, printed)) is not None]
    for each in found:
        print_line(each)
    print_line(f"{len(ours) - len(found)} of {len(ours)} command lines as Apache Kafka's tools")
    return not found
