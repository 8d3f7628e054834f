"""Measurements of `scripts/bench --growth` on a broker: memory, load at rest, latencies."""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

from dev.bench import kafka_meter as meter
from dev.bench import loads
from dev.bench.kafka_open_loop import VALUE_BYTES, percentile
from dev.bench.kafka_systems import Servers
from kafkapy.protocol.headers import decode_response
from kafkapy.protocol.messages.fetch import FetchResponse
from kafkapy.protocol.messages.produce import ProduceResponse
from kafkapy.protocol.schema import Message
from tests.harness.processes.waiting import wait_until

Figures = dict[str, float]
"""Values by the name of the measure, which ends with its unit."""

R = TypeVar("R", bound=Message)

PROBE = "probe"
PROBES_PER_S = 100
SAMPLES = 20
MIB = 2**20


class Windows(NamedTuple):
    """Seconds of three phases: background work ends, the broker is idle, probes are sent."""

    settle_s: float
    idle_s: float
    asked_s: float


# An idle broker's longest common periods are 15 s (the cleaner, the ISR) and 5 s (high watermarks).
FULL = Windows(2.0, 15.0, 6.0)
QUICK = Windows(1.0, 3.0, 2.0)


class Caller:
    """One connection that sends a request and waits for its answer."""

    def __init__(self, servers: str) -> None:
        self._client = loads.RawClient(servers)

    def ms(self, request: bytes) -> float:
        """Latency of one request."""
        started = time.perf_counter()
        self._client.send(request)
        self._client.receive()
        return (time.perf_counter() - started) * 1e3

    def answer(self, request: bytes, kind: type[R], version: int) -> R:
        self._client.send(request)
        return decode_response(kind, version, self._client.receive())[1]

    def produces(self) -> bool:
        """Whether a record of the probe topic is acknowledged."""
        request = loads.produce_request(PROBE, VALUE_BYTES, 1)
        [topic] = self.answer(request, ProduceResponse, 7).responses
        return topic.partition_responses[0].error_code == 0

    def processor_ms(self, request: bytes, pid: int) -> float:
        """Mean processor time that the broker spends on one request.

        A long latency depends as much on the other processes of the machine.
        """
        before = _processor_ns(pid)
        for _ in range(SAMPLES):
            self.ms(request)
        return (_processor_ns(pid) - before) / SAMPLES / 1e6

    def close(self) -> None:
        self._client.close()


def _processor_ns(pid: int) -> int:
    """Processor time of the threads of a process (Linux)."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads)


def observe(servers: Servers, more: Mapping[str, bytes], windows: Windows) -> Figures:
    """Memory and processor time of the broker at rest; latencies of its probe topic, and of the
    requests of `more`, sent in turn at a steady rate."""
    [pid] = servers.pids
    time.sleep(windows.settle_s)
    before, started = meter.cpu_s([pid]), time.perf_counter()
    time.sleep(windows.idle_s)
    share = (meter.cpu_s([pid]) - before) / (time.perf_counter() - started)
    resident, proportional = meter.memory(pid)
    return {
        "resident, MiB": resident / MIB,
        "PSS, MiB": proportional / MIB,
        "processor at rest, %": 100 * share,
        **latencies(servers.bootstrap_servers, more, windows.asked_s),
    }


def latencies(servers: str, more: Mapping[str, bytes], seconds: float) -> Figures:
    """Latencies in ms: p50 and p99 of each kind of request, and the worst of a produce.

    The worst shows how long the broker's only event loop did something else.
    """
    produce = loads.produce_request(PROBE, VALUE_BYTES, 1)
    fetch = loads.fetch_request(PROBE, 0, max_bytes=1)
    caller = Caller(servers)
    assert caller.produces()
    [read] = caller.answer(fetch, FetchResponse, 4).responses
    assert read.partitions[0].records, read
    requests = {"produce": produce, "fetch": fetch, **more}
    found: dict[str, list[float]] = {name: [] for name in requests}
    gc.disable()
    try:
        started = time.perf_counter()
        for number in range(int(seconds * PROBES_PER_S)):
            time.sleep(max(0.0, started + number / PROBES_PER_S - time.perf_counter()))
            for name, request in requests.items():
                found[name].append(caller.ms(request))
    finally:
        gc.enable()
        caller.close()
    figures = {}
    for name, times in found.items():
        ordered = sorted(times)
        figures[f"{name}: p50, ms"] = percentile(ordered, 0.5)
        figures[f"{name}: p99, ms"] = percentile(ordered, 0.99)
    figures["produce: worst, ms"] = max(found["produce"])
    return figures


def first_record(servers: Servers) -> None:
    """Wait for a first acknowledged record: a broker that answers may not lead partitions yet."""
    caller = Caller(servers.bootstrap_servers)
    wait_until(caller.produces, "a record acknowledged")
    caller.close()


def restart(servers: Servers) -> Figures:
    """Seconds of a clean stop, and of a start to the first acknowledged record."""
    [broker] = servers.brokers
    started = time.perf_counter()
    broker.stop()
    stopped = time.perf_counter()
    broker.start()
    first_record(servers)
    return {
        "clean stop, s": stopped - started,
        "start to a record acknowledged, s": time.perf_counter() - stopped,
    }
