"""The flags of Apache Kafka 3.9's tools: every script of its bin/, run with `--help`.

`scripts/conformance --record-flags` runs the Java classes and writes the flags in their help to
tests/data/tools/kafka-flags.json; docs/reference/tools.md is generated from it
(dev/docs/tools_page.py). The shell scripts themselves are in no jar: the flags that they add to
those of their class are in their usage line, below.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from dev.report import ROOT
from tests.harness.processes import apache_kafka

FLAGS: Final = ROOT / "tests" / "data" / "tools" / "kafka-flags.json"

_TOOLS: Final = "org.apache.kafka.tools"
_TROGDOR: Final = "org.apache.kafka.trogdor"
_ZOOKEEPER_SHELL: Final = "org.apache.zookeeper.ZooKeeperMainWithTlsSupportForKafka"
_MERGER: Final = "kafka.tools.StateChangeLogMerger"
# Classes that print their flags for other words than --help.
_OWN_HELP: Final = {_ZOOKEEPER_SHELL: ("-server", "127.0.0.1:1", "help"), _MERGER: ()}

# A flag at the beginning of a line of help, with its aliases: jopt-simple's rows begin in the
# first column (after `* ` where the flag is required), argparse4j's in the third.
_ROW: Final = re.compile(r"^(?:\* |  )?(-[\w?-].*)")
_NAME: Final = re.compile(r"(?:^|, )(--?[A-Za-z?][\w.-]*)")
_VERBS: Final = re.compile(r"^  \{(.+)\}$|^    ([a-z][\w-]*)(?:  .*)?$", re.MULTILINE)
_USAGE_FLAG: Final = re.compile(r"\[(--?[a-z][\w-]*)")


class Script(NamedTuple):
    """One script: the class it runs, the words before the flags, and the script's usage line."""

    java_class: str | None = None
    words: tuple[str, ...] = ()
    usage: str = ""


# kafka-console-share-consumer.sh, kafka-groups.sh and kafka-share-groups.sh came with 4.0.
SCRIPTS: Final[dict[str, tuple[Script, ...]]] = {
    "connect-distributed.sh": (Script(usage="[-daemon] connect-distributed.properties"),),
    "connect-mirror-maker.sh": (
        Script("org.apache.kafka.connect.mirror.MirrorMaker", usage="[-daemon] mm2.properties"),
    ),
    "connect-plugin-path.sh": (Script(f"{_TOOLS}.ConnectPluginPath"),),
    "connect-standalone.sh": (Script(usage="[-daemon] connect-standalone.properties"),),
    "kafka-acls.sh": (Script("kafka.admin.AclCommand"),),
    "kafka-broker-api-versions.sh": (Script("kafka.admin.BrokerApiVersionsCommand"),),
    "kafka-client-metrics.sh": (Script(f"{_TOOLS}.ClientMetricsCommand"),),
    "kafka-cluster.sh": (Script(f"{_TOOLS}.ClusterTool"),),
    "kafka-configs.sh": (Script("kafka.admin.ConfigCommand"),),
    "kafka-console-consumer.sh": (Script(apache_kafka.CONSOLE_CONSUMER),),
    "kafka-console-producer.sh": (Script(apache_kafka.CONSOLE_PRODUCER),),
    "kafka-consumer-groups.sh": (Script(apache_kafka.CONSUMER_GROUPS),),
    "kafka-consumer-perf-test.sh": (Script(apache_kafka.CONSUMER_PERFORMANCE),),
    "kafka-delegation-tokens.sh": (Script(f"{_TOOLS}.DelegationTokenCommand"),),
    "kafka-delete-records.sh": (Script(f"{_TOOLS}.DeleteRecordsCommand"),),
    "kafka-dump-log.sh": (Script(apache_kafka.DUMP_LOG_SEGMENTS),),
    "kafka-e2e-latency.sh": (Script(f"{_TOOLS}.EndToEndLatency"),),
    "kafka-features.sh": (Script(f"{_TOOLS}.FeatureCommand"),),
    "kafka-get-offsets.sh": (Script(apache_kafka.GET_OFFSET_SHELL),),
    "kafka-jmx.sh": (Script(f"{_TOOLS}.JmxTool"),),
    "kafka-leader-election.sh": (Script(f"{_TOOLS}.LeaderElectionCommand"),),
    "kafka-log-dirs.sh": (Script(f"{_TOOLS}.LogDirsCommand"),),
    "kafka-metadata-quorum.sh": (Script(f"{_TOOLS}.MetadataQuorumCommand"),),
    "kafka-metadata-shell.sh": (Script("org.apache.kafka.shell.MetadataShell"),),
    "kafka-mirror-maker.sh": (Script("kafka.tools.MirrorMaker"),),
    "kafka-producer-perf-test.sh": (Script(apache_kafka.PRODUCER_PERFORMANCE),),
    "kafka-reassign-partitions.sh": (Script(f"{_TOOLS}.reassign.ReassignPartitionsCommand"),),
    "kafka-replica-verification.sh": (Script(f"{_TOOLS}.ReplicaVerificationTool"),),
    "kafka-run-class.sh": (
        Script(usage="[-daemon] [-name servicename] [-loggc] classname [opts]"),
    ),
    "kafka-run-class.sh kafka.tools.StateChangeLogMerger": (Script(_MERGER),),
    "kafka-server-start.sh": (
        Script(
            apache_kafka.BROKER, usage="[-daemon] server.properties [--override property=value]*"
        ),
    ),
    "kafka-server-stop.sh": (Script(usage="[--process-role=value] [--node-id=value]"),),
    "kafka-storage.sh": (Script(apache_kafka.STORAGE_TOOL),),
    "kafka-streams-application-reset.sh": (Script(f"{_TOOLS}.StreamsResetter"),),
    "kafka-topics.sh": (Script(apache_kafka.TOPICS),),
    "kafka-transactions.sh": (Script(f"{_TOOLS}.TransactionsCommand"),),
    "kafka-verifiable-consumer.sh": (Script(f"{_TOOLS}.VerifiableConsumer"),),
    "kafka-verifiable-producer.sh": (Script(f"{_TOOLS}.VerifiableProducer"),),
    "trogdor.sh": (
        Script(f"{_TROGDOR}.agent.Agent", ("agent",)),
        Script(f"{_TROGDOR}.coordinator.Coordinator", ("coordinator",)),
        Script(f"{_TROGDOR}.coordinator.CoordinatorClient", ("client",)),
        Script(f"{_TROGDOR}.agent.AgentClient", ("agent-client",)),
    ),
    "zookeeper-security-migration.sh": (Script("kafka.admin.ZkSecurityMigrator"),),
    "zookeeper-server-start.sh": (Script(usage="[-daemon] zookeeper.properties"),),
    "zookeeper-server-stop.sh": (Script(),),
    "zookeeper-shell.sh": (
        Script(_ZOOKEEPER_SHELL, usage="host:port[/path] [-zk-tls-config-file file] [args...]"),
    ),
}


def flags_in(help_text: str) -> list[list[str]]:
    """Each flag with its aliases, as jopt-simple's and argparse4j's help list them."""
    found = []
    for line in help_text.splitlines():
        if row := _ROW.match(line):
            spelled = re.split(r" {2,}| <| \[", row[1])[0]
            found.append(_NAME.findall(re.sub(r" (?!-)[^,]+", "", spelled)))
    return [names for names in found if names]


def verbs_in(help_text: str) -> list[str]:
    """The subcommands in argparse4j's help."""
    found: dict[str, None] = {}
    for match in _VERBS.finditer(help_text):
        found |= dict.fromkeys(match[1].split(",") if match[1] else [match[2]])
    return list(found)


def shell_commands_in(help_text: str) -> list[list[str]]:
    """The commands of ZooKeeper's shell, each with its flags."""
    usages = re.findall(r"^\t(\w+)(.*)$", help_text, re.MULTILINE)
    return [
        [name, *dict.fromkeys(re.findall(r"[\[| ](-[A-Za-z]\w*)", usage))] for name, usage in usages
    ]


def asked(script: Script) -> Iterator[dict[str, Any]]:
    """Yield the flags that a script's help names, then those of each of its verbs."""
    flags = [[name] for name in _USAGE_FLAG.findall(script.usage)]
    if script.java_class is None:
        yield {"words": script.words, "flags": flags}
        return
    text = help_of(script.java_class)
    verbs = verbs_in(text) if text.startswith("usage: ") else []
    yield {"words": script.words, "flags": _merged(flags, flags_in(text))}
    for verb in verbs:
        below = flags_in(help_of(script.java_class, verb))
        yield {"words": [*script.words, verb], "flags": below}
    if script.java_class == _ZOOKEEPER_SHELL:
        for name, *names in shell_commands_in(text):
            yield {"words": [name], "flags": [[each] for each in names]}


def help_of(java_class: str, *words: str) -> str:
    """Help text, wherever it is printed; log lines are left out."""
    words = _OWN_HELP.get(java_class, (*words, "--help"))
    done = apache_kafka.run_tool(java_class, *words, release=apache_kafka.KAFKA_3_WHOLE)
    lines = (done.stdout + done.stderr).decode().splitlines()
    return "\n".join(line for line in lines if not re.match(r"\[\d{4}-|\tat ", line))


def _merged(*lists: list[list[str]]) -> list[list[str]]:
    return [list(names) for names in dict.fromkeys(tuple(n) for each in lists for n in each)]


def record(print_line: Callable[[str], None]) -> None:
    """Run every class, and write the flags."""
    scripts: dict[str, list[dict[str, Any]]] = {}
    for name, parts in SCRIPTS.items():
        print_line(name)
        scripts[name] = [found for part in parts for found in asked(part)]
    found = {"kafka": apache_kafka.VERSION, "scripts": scripts}
    FLAGS.write_text(compact(found) + "\n")
    flags = sum(len(part["flags"]) for parts in scripts.values() for part in parts)
    print_line(f"written: {FLAGS.relative_to(ROOT)}: {len(scripts)} scripts, {flags} flags")


def compact(found: dict[str, Any]) -> str:
    """JSON with one line for each part of a script, so that a change is seen in a diff."""
    blocks = []
    for name, parts in found["scripts"].items():
        lines = ",\n".join(f"   {json.dumps(part)}" for part in parts)
        blocks.append(f"  {json.dumps(name)}: [\n{lines}\n  ]")
    body = ",\n".join(blocks)
    return f'{{\n "kafka": {json.dumps(found["kafka"])},\n "scripts": {{\n{body}\n }}\n}}'
