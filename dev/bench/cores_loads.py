"""The loads of `scripts/bench --cores`: raw clients side by side, which cost little beside brokers.

Each load runs for a fixed time, not for a fixed amount of work. The result is the rate over the
time in which all clients were at work.
"""

from __future__ import annotations

import struct
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import closing

from dev.bench.loads import PIPELINED, RawClient, fetch_request, last_offset, produce_request

Samples = list[Sequence[float]]
"""Pairs of a time and the amount done until then, of one client, in order."""

SMALL_BYTES = 100
VALUE_BYTES = 1000
BATCH_RECORDS = 16
"""The number of records of 1 kB that fit Kafka's default `batch.size`."""
_SMALL_IN_FLIGHT = 100
_SAMPLE_S = 0.02


def small(servers: str, topic: str, seconds: float, ca: str | None = None) -> Samples:
    """Produce requests of one record, in bursts of 100, with 100 to 200 requests in flight."""
    with closing(RawClient(servers, ca)) as client:
        requests = produce_request(topic, SMALL_BYTES, 1) * _SMALL_IN_FLIGHT
        client.send(requests)

        def step() -> float:
            client.send(requests)
            client.receive_appended(topic, _SMALL_IN_FLIGHT)
            return _SMALL_IN_FLIGHT

        return _work(step, seconds)


def produce(servers: str, topic: str, seconds: float, ca: str | None = None) -> Samples:
    """Produce ready-made batches, PIPELINED of them in flight. Counts the bytes of values."""
    with closing(RawClient(servers, ca)) as client:
        message = produce_request(topic, VALUE_BYTES, BATCH_RECORDS)
        client.send(message * PIPELINED)

        def step() -> float:
            client.receive_appended(topic, 1)
            client.send(message)
            return VALUE_BYTES * BATCH_RECORDS

        return _work(step, seconds)


def fill(servers: str, topic: str, batches: int) -> Samples:
    """Fill a topic for `fetch`."""
    with closing(RawClient(servers)) as client:
        message = produce_request(topic, VALUE_BYTES, BATCH_RECORDS)
        for _ in range(batches):
            client.send(message)
            client.receive_appended(topic, 1)
    return []


def fetch(servers: str, topic: str, seconds: float, ca: str | None = None) -> Samples:
    """Fetch a topic repeatedly, 1 MiB at a time. Counts the bytes of batches."""
    with closing(RawClient(servers, ca)) as client:
        offset = 0

        def step() -> float:
            nonlocal offset
            client.send(fetch_request(topic, offset))
            response = client.receive()
            error, high_watermark = struct.unpack_from(">hq", response, len(topic) + 22)
            assert error == 0, f"error {error} at offset {offset}"
            records = response[len(topic) + 48 :]
            offset = (last_offset(records) + 1) % high_watermark
            return len(records)

        return _work(step, seconds)


def _work(step: Callable[[], float], seconds: float) -> Samples:
    """Repeat `step`, which returns the amount of work that it did, for `seconds`."""
    done, now = 0.0, time.time()
    samples: Samples = [(now, done)]
    end = now + seconds
    while now < end:
        done += step()
        now = time.time()
        if now - samples[-1][0] >= _SAMPLE_S:
            samples.append((now, done))
    return [*samples, (now, done)]


def together(clients: Sequence[Samples]) -> float:
    """Total rate of the clients over the time in which all were at work."""
    start = max(samples[0][0] for samples in clients)
    end = min(samples[-1][0] for samples in clients)
    assert start < end, "the clients were not at work at the same time"
    return sum(_done(samples, end) - _done(samples, start) for samples in clients) / (end - start)


def _done(samples: Samples, at: float) -> float:
    """Amount done until `at`, interpolated linearly between two samples."""
    index = bisect_left(samples, at, key=lambda sample: sample[0])
    index = min(max(index, 1), len(samples) - 1)
    (before, less), (after, more) = samples[index - 1], samples[index]
    return less + (more - less) * ((at - before) / (after - before) if after > before else 1.0)
