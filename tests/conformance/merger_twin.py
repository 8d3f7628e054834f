"""Kafka's StateChangeLogMerger and ours over the same logs of the old form: the same lines.

The logs are made from a seed, in the words of Kafka 0.8 to 0.11, with what trips mergers up: many
lines of one millisecond, stack traces, responses without a partition, lines of strange dates.
"""

from __future__ import annotations

import random
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from tests.harness.processes import apache_kafka

KAFKAPY = Path(sys.executable).parent / "kafkapy"
MERGER = "kafka.tools.StateChangeLogMerger"
LOGS = 5
_START = datetime(2013, 5, 1, 12)
_TOPICS = ("orders", "pay.ments", "a-b_c", "x")
_INFO = (
    "(LeaderAndIsrInfo:(Leader:0,ISR:0,1,LeaderEpoch:0,ControllerEpoch:1),ReplicationFactor:2),"
    "AllReplicas:0,1)"
)
_MESSAGES = (
    "Controller {b} epoch 3 changed partition {tp} from OfflinePartition to OnlinePartition with"
    " leader 2",
    "Controller {b} epoch 3 sending become-leader LeaderAndIsr request (Leader:0,ISR:0,1,"
    "LeaderEpoch:0,ControllerEpoch:1) with correlationId {i} to broker 2 for partition {tp}",
    "Broker {b} received LeaderAndIsr request " + _INFO + " correlation id {i} from controller 1"
    " epoch 2 for partition {tp}",
    "Controller {b} epoch 3 received response UpdateMetadataResponse(3,0) for a request sent to"
    " broker id:1,host:x,port:9092",
    "Broker {b} cached leader info " + _INFO + " for partition {tp} in response to UpdateMetadata"
    " request sent by controller 1 epoch 1 with correlation id 7",
    "Controller {b} epoch 3 changed state of replica 1 for partition [{t}, 3] from NewReplica to"
    " OnlineReplica café\nkafka.common.StateChangeFailedException: [a,1]\n\tat x.y(Z.scala:1)",
    "Broker {b} stopped fetchers as part of become-follower request from controller 1 epoch 2 with"
    " correlation id 5 for partition {tp}",
)


class Case(NamedTuple):
    """One command line; logs are named relative to their directory."""

    name: str
    words: tuple[str, ...]


def write_log(path: Path, seed: int, count: int) -> None:
    """One broker's log."""
    chance, now = random.Random(seed), _START
    with path.open("w", encoding="utf-8") as log:
        for i in range(count):
            now += timedelta(milliseconds=chance.choice((0, 0, 1, 2)))
            topic, broker = chance.choice(_TOPICS), chance.randrange(5)
            tp = f"[{topic},{chance.randrange(4)}]"
            text = chance.choice(_MESSAGES).format(b=broker, i=i, t=topic, tp=tp)
            date = f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03d}"
            if i == count // 2:
                date = "2013-04-31 12:00:00,000"  # lenient: the first of May
            log.write(f"[{date}] TRACE {text} (state.change.logger)\n")


def write_logs(directory: Path, count: int) -> Path:
    for number in range(1, LOGS + 1):
        write_log(directory / f"state-change.log.{number}", number, count)
    return directory


def cases() -> list[Case]:
    """Command lines that runbooks use."""
    names = [f"state-change.log.{number}" for number in range(1, LOGS + 1)]
    two, every = ",".join(names[:2]), ",".join(names)
    times = ("--start-time", "2013-05-01 12:00:00,010", "--end-time", '"2013-05-01 12:00:00,030"')
    return [
        Case("one", ("--logs", names[0])),
        Case("two", ("--logs", two)),
        Case("the-other-way", ("--logs", ",".join(reversed(names[:3])))),
        Case("twice", ("--logs", f"{names[0]},{two}")),
        Case("all", ("--logs", every)),
        Case("regex", ("--logs-regex", "./state-change.*3$")),
        Case("topic", ("--logs", every, "--topic", "a-b_c")),
        Case("partitions", ("--logs", two, "--topic", "orders", "--partitions", "0,3")),
        Case("times", ("--logs", every, *times)),
        Case("from", ("--logs", two, *times[:2])),
        Case("nothing", ("--logs", two, "--topic", "order")),
    ]


def kafka(case: Case, directory: Path) -> bytes:
    """Run Kafka's class; returns its output without the first line, a deprecation warning."""
    command = apache_kafka.java_command(MERGER, *case.words)
    command[1:1] = ["-Dfile.encoding=UTF-8"]
    done = subprocess.run(command, cwd=directory, capture_output=True, check=True)
    warning, _, rest = done.stdout.partition(b"\n")
    assert warning.startswith(b"WARNING: This tool is deprecated"), warning
    return rest


def ours(case: Case, directory: Path) -> bytes:
    """Run kafkapy's command; returns its output."""
    command = [str(KAFKAPY), "state-change-log-merger", *case.words]
    return subprocess.run(command, cwd=directory, capture_output=True, check=True).stdout
