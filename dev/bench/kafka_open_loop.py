"""Requests of one record at a fixed rate, whether or not the broker keeps up (an open loop).

A latency counts from the time at which the request was due, not from when it could be sent: a
broker that stalls is charged for everything that it held up.
"""

from __future__ import annotations

import gc
import select
import ssl
import struct
import time
from array import array
from collections.abc import Sequence

from dev.bench import loads

VALUE_BYTES = 100
GIVE_UP_S = 1.0
KEPT_P99_MS = 50.0
LOWEST_RATE = 1000
REFINEMENTS = 3
BURST = 64
_WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class _Producer:
    """One connection, over TLS if it has an authority; its k-th answer is that of its k-th
    request."""

    def __init__(
        self, servers: str, topic: str, value_bytes: int = VALUE_BYTES, ca: str | None = None
    ) -> None:
        self.socket = loads.connected(servers, ca)
        self.socket.setblocking(False)
        self.due = 0
        self.answered = 0
        self._message = loads.produce_request(topic, value_bytes, 1)
        self._unsent = memoryview(b"")
        self._received = bytearray()
        self._answer_bytes = loads.PRODUCED_BYTES + len(topic)
        self._error_at = loads.PRODUCED_ERROR_AT + len(topic)

    def send(self) -> None:
        """Send the due requests, as far as the socket takes them."""
        try:
            while self._unsent or self.due:
                if not self._unsent:
                    burst = min(self.due, BURST)
                    self.due -= burst
                    self._unsent = memoryview(self._message * burst)
                self._unsent = self._unsent[self.socket.send(self._unsent) :]
        except _WOULD_BLOCK:
            return

    @property
    def waits_to_send(self) -> bool:
        return bool(self._unsent or self.due)

    def receive(self) -> int:
        """Read pending responses; returns their number. Raises AssertionError on an error code."""
        data = self._received
        try:
            data += self.socket.recv(1 << 18)
            # `select` does not see what TLS has decrypted already.
            while isinstance(self.socket, ssl.SSLSocket) and self.socket.pending():
                data += self.socket.recv(1 << 18)
        except _WOULD_BLOCK:
            return 0
        count = len(data) // self._answer_bytes
        end = count * self._answer_bytes
        for at in (self._error_at, self._error_at + 1):
            assert not any(data[at : end : self._answer_bytes]), "a record was refused"
        del data[:end]
        self.answered += count
        return count


def run(
    servers: str,
    topic: str,
    rate: float,
    seconds: float,
    connections: int,
    value_bytes: int = VALUE_BYTES,
    ca: str | None = None,
) -> array[float]:
    """Latencies in ms, unordered; fewer than `rate * seconds` if the broker fell behind for good.

    `ca`: the file of the CA to trust, over TLS.
    """
    producers = [_Producer(servers, topic, value_bytes, ca) for _ in range(connections)]
    gc.disable()
    try:
        return _run(producers, rate, int(rate * seconds))
    finally:
        gc.enable()
        for producer in producers:
            producer.socket.close()


def _run(producers: Sequence[_Producer], rate: float, total: int) -> array[float]:
    by_socket = {producer.socket: producer for producer in producers}
    number = {producer.socket: index for index, producer in enumerate(producers)}
    count = len(producers)
    latencies = array("d")
    issued = 0
    started = time.perf_counter() + 0.01
    while len(latencies) < total:
        now = time.perf_counter()
        due = min(total, int((now - started) * rate) + 1) if now >= started else 0
        for index in range(issued, due):
            producers[index % count].due += 1
        issued = max(issued, due)
        for producer in producers:
            if producer.waits_to_send:
                producer.send()
        if issued and now - started - len(latencies) / rate > GIVE_UP_S:
            break
        wait_s = max(0.0, started + issued / rate - time.perf_counter()) if issued < total else 0.1
        writers = [producer.socket for producer in producers if producer.waits_to_send]
        readable, _, _ = select.select(by_socket, writers, [], wait_s)
        now = time.perf_counter()
        for sock in readable:
            producer, first = by_socket[sock], number[sock]
            before = producer.answered
            for k in range(before, before + producer.receive()):
                latencies.append((now - started - (k * count + first) / rate) * 1e3)
    return latencies


def percentile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def latency(
    servers: str,
    topic: str,
    rate: float,
    seconds: float,
    connections: int,
    value_bytes: int = VALUE_BYTES,
    ca: str | None = None,
) -> dict[str, float]:
    """p50, p99 and p99.9 in ms at a fixed rate, infinite if the broker did not keep up; and the
    number of answered requests."""
    ordered = sorted(run(servers, topic, rate, seconds, connections, value_bytes, ca))
    answered = len(ordered)
    is_kept = answered == int(rate * seconds)
    shares = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
    figures = {
        name: percentile(ordered, share) if is_kept else float("inf")
        for name, share in shares.items()
    }
    return {**figures, "answered": answered}


def highest_rate(servers: str, topic: str, seconds: float, connections: int) -> dict[str, float]:
    """The highest rate at which all requests are answered and p99 is at most KEPT_P99_MS.

    `answered` counts the answered requests of the whole search.
    """
    answered = 0

    def is_kept(rate: float) -> bool:
        nonlocal answered
        found = run(servers, topic, rate, seconds, connections)
        answered += len(found)
        if len(found) < int(rate * seconds):
            return False
        return percentile(sorted(found), 0.99) <= KEPT_P99_MS

    kept, refused = 0.0, float(LOWEST_RATE)
    while is_kept(refused):
        kept, refused = refused, 2 * refused
    for _ in range(REFINEMENTS):
        middle = (kept + refused) / 2
        if is_kept(middle):
            kept = middle
        else:
            refused = middle
    return {"rate": kept, "answered": answered}


def tail(servers: str, topic: str, rate: float, seconds: float) -> dict[str, float]:
    """ms from when a record was due to be sent until a consumer at the tail had it."""
    producer = loads.RawClient(servers)
    consumer = loads.RawClient(servers)
    message = loads.produce_request(topic, VALUE_BYTES, 1)
    total = int(rate * seconds)
    latencies: list[float] = []
    sent = answered = 0
    consumer.send(loads.fetch_request(topic, 0))
    started = time.perf_counter() + 0.01
    while len(latencies) < total:
        due = min(total, int((time.perf_counter() - started) * rate) + 1)
        while sent < due:
            producer.send(message)
            sent += 1
        wait_s = max(0.0, started + sent / rate - time.perf_counter()) if sent < total else 1.0
        readable, _, _ = select.select([producer.socket, consumer.socket], [], [], wait_s)
        if consumer.socket in readable:
            last = _fetched(consumer.receive(), topic)
            now = time.perf_counter()
            for index in range(len(latencies), last + 1):
                latencies.append((now - started - index / rate) * 1e3)
            consumer.send(loads.fetch_request(topic, len(latencies)))
        if producer.socket in readable:
            producer.receive()
            answered += 1
    ordered = sorted(latencies)
    return {"p50": percentile(ordered, 0.5), "p99": percentile(ordered, 0.99)}


def _fetched(response: memoryview, topic: str) -> int:
    """Last offset in a Fetch response; -1 if it has no records."""
    error, _ = struct.unpack_from(">hq", response, len(topic) + 22)
    assert error == 0, f"fetch failed with error {error}"
    return loads.last_offset(response[len(topic) + 48 :])
