"""Building blocks of both acts of the demo: steps, commands, feeding, reading back, checking."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import confluent_kafka
from rich.console import Console
from rich.progress import Progress, TextColumn, TimeElapsedColumn

KAFKAPY = Path(sys.executable).parent / "kafkapy"

TOPIC = "log-lines"
GROUP = "demo"
PARTITIONS = 4
SILENCE_LIMIT_S = 60.0

out = Console(highlight=False, soft_wrap=True)


class DemoFailure(Exception):
    """The demo cannot go on; the message is for the user."""


class Checksum:
    """The numbers of the lines that were seen, in one byte each, and a checksum of their contents,
    which does not depend on their order."""

    def __init__(self) -> None:
        self.seen = bytearray()
        self.total = 0
        self.repeated = 0

    def add(self, number: int, line: bytes) -> None:
        if number >= len(self.seen):
            self.seen.extend(bytes(number + 1 - len(self.seen)))
        self.repeated += self.seen[number]
        self.seen[number] = 1
        self.total += int.from_bytes(hashlib.sha256(b"%d %s" % (number, line)).digest(), "big")

    @property
    def lines(self) -> int:
        return sum(self.seen)


@contextmanager
def step(title: str) -> Iterator[None]:
    """Print a heading, and at the end the time that the step took."""
    out.print(f"\n[bold cyan]{title}[/]")
    started = time.monotonic()
    yield
    out.print(f"[dim]{time.monotonic() - started:.1f} s[/]")


@contextmanager
def progress(what: str, total: int) -> Iterator[Progress]:
    """A bar with the rate on a terminal; nothing on a pipe."""
    columns = [*Progress.get_default_columns()[:3], TextColumn("{task.fields[rate]}")]
    bar = Progress(*columns, TimeElapsedColumn(), console=out, disable=not out.is_terminal)
    with bar:
        bar.add_task(what, total=total, rate="")
        yield bar


class Rate:
    """Counts lines into a progress bar; the clock starts with `start`, or the first line."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._started = 0.0
        self.count = 0

    def start(self) -> None:
        self._started = self._started or time.monotonic()

    def advance(self) -> None:
        self.start()
        self.count += 1
        if self.count % 1000 == 0:
            self.show()

    def show(self) -> None:
        self._bar.update(self._bar.task_ids[0], completed=self.count, rate=self.text())

    def text(self) -> str:
        seconds = max(time.monotonic() - self._started, 1e-3)
        return f"{self.count / seconds:,.0f} lines/s"


def kafkapy(*arguments: str) -> None:
    """Run one of our commands on this terminal; its stderr is shown if it fails."""
    out.print(f"[dim]$ kafkapy {' '.join(arguments)}[/]")
    out.file.flush()
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}  # warnings of libraries
    done = subprocess.run([KAFKAPY, *arguments], env=environment, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        tail = "\n".join(done.stderr.splitlines()[-25:])
        raise DemoFailure(f"kafkapy {arguments[0]} ended with {done.returncode}:\n{tail}")


def feed(lines: Iterable[bytes], total: int, servers: str, over_s: float = 0.0) -> Checksum:
    """Produce every line as a record whose key is its line number; returns the acknowledged lines.

    The lines are sent as fast as possible, or spread over `over_s` seconds.
    """
    sent, errors = Checksum(), []
    settings = {
        "bootstrap.servers": servers,
        "enable.idempotence": True,
        "compression.type": "lz4",
        "partitioner": "murmur2_random",
        "linger.ms": 20,
        "log_level": 2,
    }
    producer = confluent_kafka.Producer(settings)

    def delivered(error: object, message: confluent_kafka.Message) -> None:
        if error is not None:
            errors.append(error)
            return
        sent.add(int(message.key()), message.value())
        rate.advance()

    with progress("feeding", total) as bar:
        rate = Rate(bar)
        rate.start()
        started = time.monotonic()
        for number, line in enumerate(lines):
            record = {"value": line.rstrip(b"\r\n"), "key": b"%d" % number}
            while True:
                try:
                    producer.produce(TOPIC, **record, on_delivery=delivered)
                    break
                except BufferError:
                    producer.poll(0.1)
            due = started + over_s * number / total
            producer.poll(0)
            while (early_s := due - time.monotonic()) > 0:
                producer.poll(early_s)
        if producer.flush(SILENCE_LIMIT_S) or errors:
            raise DemoFailure(f"{len(producer)} lines not acknowledged, {len(errors)} refused")
        rate.show()
    out.print(f"{sent.lines:,} lines acknowledged, {rate.text()}")
    return sent


def read_back(servers: str, expected: int) -> Checksum:
    """Read all lines with a consumer group, and commit at the end."""
    got = Checksum()
    settings = {
        "bootstrap.servers": servers,
        "group.id": GROUP,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "log_level": 2,
    }
    consumer = confluent_kafka.Consumer(settings)
    consumer.subscribe([TOPIC])
    per_partition = [0] * PARTITIONS
    last_record = time.monotonic()
    with progress("reading", expected) as bar:
        rate = Rate(bar)
        while rate.count < expected:
            for message in consumer.consume(1000, 0.1):
                if message.error() is not None:
                    raise DemoFailure(f"reading back: {message.error()}")
                got.add(int(message.key()), message.value())
                per_partition[message.partition()] += 1
                rate.advance()
                last_record = time.monotonic()
            if time.monotonic() - last_record > SILENCE_LIMIT_S:
                raise DemoFailure(f"only {rate.count:,} of {expected:,} lines came back")
        rate.show()
    consumer.commit(asynchronous=False)
    consumer.close()
    spread = ", ".join(f"{count:,}" for count in per_partition)
    out.print(f"{rate.count:,} lines by group '{GROUP}', {rate.text()}, per partition: {spread}")
    return got


def check(sent: Checksum, got: Checksum) -> None:
    """Raises DemoFailure unless every line arrived exactly once."""
    if got.repeated or got.seen != sent.seen or got.total != sent.total:
        missing = sent.lines - got.lines
        raise DemoFailure(f"{missing} lines missing, {got.repeated} repeated, or lines differ")
    out.print(f"[bold green]every one of the {sent.lines:,} lines arrived exactly once[/]")
