"""The clients of `scripts/bench --kafka`: command lines, and parsers of their output.

They are Kafka's own performance tools, and loads in Python that this module runs as a process:

    python -m dev.bench.kafka_clients LOAD '{"servers": ..., ...}'     prints figures as JSON
"""

from __future__ import annotations

import json
import random
import re
import socket
import struct
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dev.bench import cores_loads, group_loads, loads
from dev.bench import kafka_open_loop as open_loop
from dev.bench.kafka_systems import jvm_command
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import API_VERSIONS_V0

Figures = dict[str, float]

PAYLOADS = 1000
ALL_IDEMPOTENT: Mapping[str, str] = {}
"""The defaults of Kafka's producer: acks=all, idempotent, 16 KiB batches, no linger."""


# Kafka's own tools


def write_payloads(directory: Path, value_bytes: int) -> Path:
    """A file of values of that size, as compressible as JSON events. It is written once."""
    path = directory / f"payloads-{value_bytes}"
    if not path.exists():
        chance = random.Random(value_bytes)
        path.write_text("\n".join(_event(chance, value_bytes) for _ in range(PAYLOADS)))
    return path


def _event(chance: random.Random, size: int) -> str:
    fields = []
    length = 0
    while length < size:
        name = chance.choice(("user", "session", "price", "country", "referrer", "campaign"))
        fields.append(f'"{name}":"{chance.randrange(10**9)}"')
        length += len(fields[-1]) + 1
    return ("{" + ",".join(fields) + "}")[:size]


def producer_performance(
    servers: str,
    topic: str,
    payloads: Path,
    records: int,
    config: Path,
    properties: Mapping[str, str],
) -> list[str]:
    """Command of ProducerPerformance without a rate limit; `config` has further properties."""
    settings = {"bootstrap.servers": servers, **properties}
    words = ["--topic", topic, "--num-records", str(records), "--throughput", "-1"]
    words += ["--payload-file", str(payloads), "--producer.config", str(config)]
    words += ["--producer-props"]
    words += [f"{key}={value}" for key, value in settings.items()]
    return jvm_command(apache_kafka.PRODUCER_PERFORMANCE, *words)


def records_sent(output: str) -> float:
    """Records/s of ProducerPerformance's last line."""
    found = re.findall(r"^\d+ records sent, ([\d.]+) records/sec .*99\.9th", output, re.MULTILINE)
    assert found, output
    assert "Exception" not in output, output
    return float(found[-1])


def consumer_performance(servers: str, topic: str, records: int, config: Path) -> list[str]:
    """Command of ConsumerPerformance for `records` records from the start.

    `config` has the client's properties.
    """
    words = ["--bootstrap-server", servers, "--topic", topic, "--messages", str(records)]
    words += ["--consumer.config", str(config)]
    return jvm_command(
        apache_kafka.CONSUMER_PERFORMANCE, *words, "--timeout", "60000", "--hide-header"
    )


def records_consumed(output: str) -> float:
    """Records/s while it fetched, without joining the group: the last column."""
    line = next(line for line in reversed(output.splitlines()) if line.count(",") == 9)
    return float(line.split(",")[9])


# loads in Python


def python_client(load: str, **arguments: Any) -> list[str]:
    """The command line of a load of this module."""
    return [sys.executable, "-m", __spec__.name, load, json.dumps(arguments)]


def figures(output: str) -> Figures:
    """Figures in the last line that a load of this module printed."""
    found: Figures = result(output)
    return found


def result(output: str) -> Any:
    """The result that a load of this module printed in its last line."""
    return json.loads(output.splitlines()[-1])


def produce(servers: str, topic: str, value_bytes: int, records: int) -> Figures:
    return {"rate": loads.produce_librdkafka(servers, topic, value_bytes, records)}


def consume(servers: str, topic: str, records: int) -> Figures:
    return {"rate": loads.consume_librdkafka(servers, topic, records)}


def fetch(servers: str, topic: str, total_bytes: int) -> Figures:
    return {"rate": loads.fetch_raw(servers, topic, total_bytes)}


def produce_beside_idle(
    servers: str, topic: str, value_bytes: int, records: int, idle: int
) -> Figures:
    """A producer while `idle` connections are open."""
    host, _, port = servers.rpartition(":")
    connections = [idle_connection(host, int(port)) for _ in range(idle)]
    rate = loads.produce_librdkafka(servers, topic, value_bytes, records)
    for connection in connections:
        connection.close()
    return {"rate": rate}


def idle_connection(host: str, port: int) -> socket.socket:
    """A connection that has got one answer, as a client's has, and is idle from then on."""
    connection = socket.create_connection((host, port), timeout=loads.LIMIT_S)
    connection.sendall(API_VERSIONS_V0)
    size = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))[0]
    connection.recv(size, socket.MSG_WAITALL)
    return connection


LOADS: dict[str, Callable[..., object]] = {
    "produce": produce,
    "consume": consume,
    "fetch": fetch,
    "produce_beside_idle": produce_beside_idle,
    "latency": open_loop.latency,
    "highest_rate": open_loop.highest_rate,
    "tail": open_loop.tail,
    "rebalances": group_loads.rebalances,
    "commits": group_loads.commits,
    "shared": group_loads.shared,
    "transactions": group_loads.transactions,
    "side by side: small": cores_loads.small,
    "side by side: produce": cores_loads.produce,
    "side by side: fill": cores_loads.fill,
    "side by side: fetch": cores_loads.fetch,
}

if __name__ == "__main__":
    print(json.dumps(LOADS[sys.argv[1]](**json.loads(sys.argv[2]))))
