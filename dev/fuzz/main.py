"""Sends hostile but well-formed requests to a real broker while another client waits for answers.

The exit status is 1 if the broker died, wrote a traceback, took more than 200 MB, or made another
client wait for more than 100 ms with a request that does so again when it is sent alone.
"""

from __future__ import annotations

import argparse
import re
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Final

from dev.fuzz.broker import (
    NO_DELAY,
    USERS,
    Client,
    Ping,
    Pinger,
    make_topics,
    new_broker,
    resident_bytes,
    used_seconds,
)
from dev.fuzz.page import write_page
from dev.fuzz.requests import Hostile, hostile_request, served_versions
from dev.fuzz.result import Result
from kafkapy.protocol.api_keys import ApiKey
from tests.harness.processes.broker_process import API_VERSIONS_V0

SMALL_BYTES_MAX: Final = 1_000_000
ADDRESS_SPACE_BYTES: Final = 6 << 30
DELAY_LIMIT_S: Final = 0.1
GROWTH_LIMIT_BYTES: Final = 200 << 20
# Sizes in bytes, and the percentage of the requests with each size.
SIZES: Final = ((300, 60), (4_000, 25), (60_000, 10), (SMALL_BYTES_MAX, 5))
ANSWER_LIMIT_S: Final = 5.0
REPEATS: Final = 3
TOPICS_EVERY: Final = 5_000
PEAK_STEP_BYTES: Final = 8 << 20
_LOGGED: Final = re.compile(
    r"Traceback|FATAL|^Exception|Task exception|A step of a large request cost \d+", re.MULTILINE
)
_CONTROL: Final = (
    ApiKey.LEADER_AND_ISR,
    ApiKey.STOP_REPLICA,
    ApiKey.UPDATE_METADATA,
    ApiKey.CONTROLLED_SHUTDOWN,
    ApiKey.ALTER_PARTITION,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the fuzzer. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000, metavar="N")
    parser.add_argument("--seed", type=int, default=2026, metavar="N")
    parser.add_argument("--size", type=int, default=0, metavar="BYTES", help="of all requests")
    parser.add_argument("--api", action="append", default=[], metavar="NAME", help="these only")
    parser.add_argument("--broker", choices=("plain", "guarded"), action="append")
    parser.add_argument("--verbose", action="store_true", help="a line for each request")
    parser.add_argument("--write", action="store_true", help="write docs/evidence/fuzzing.md")
    given = parser.parse_args(arguments)
    # A request that makes the broker take all memory must end the broker, not the machine.
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES))
    results = []
    for kind in given.broker or ("plain", "guarded"):
        with tempfile.TemporaryDirectory(prefix="kafkapy-fuzz-") as directory:
            fuzzer = Fuzzer(
                Path(directory) / "log", kind, given.seed, given.size, is_loud=given.verbose
            )
            fuzzer.run(given.requests, [ApiKey[name] for name in given.api])
            results.append(fuzzer.result)
    for result in results:
        _print(result)
    if given.write:
        write_page(results)
    return 1 if any(result.violations for result in results) else 0


class Fuzzer:
    """One broker and its hostile client."""

    def __init__(
        self,
        directory: Path,
        kind: str,
        seed: int,
        size_bytes: int = 0,
        *,
        is_loud: bool = False,
        is_timed: bool = True,
    ) -> None:
        """Without `is_timed`, nothing is measured, and the bombs are small."""
        self.result = Result(kind, seed)
        self._directory = directory
        self._is_guarded = kind == "guarded"
        self._seed = seed
        self._size_bytes = size_bytes
        self._random = Random(seed)
        self._is_loud = is_loud
        self._is_timed = is_timed
        self._scale = 1 if is_timed else 50
        self._client: Client | None = None

    def run(self, count: int, apis: Sequence[ApiKey] = ()) -> None:
        """Send `count` requests, judge the broker, and stop it."""
        began_s = time.monotonic()
        with new_broker(self._directory, self._is_guarded) as self._broker:
            admin = USERS[0] if self._is_guarded else None
            self._topic_ids = make_topics(self._broker.port, admin)
            self._pinger = Pinger(self._broker, admin)
            self.result.start_bytes = resident_bytes(self._broker.pid)[0]
            try:
                self._send_all(count, apis)
            finally:
                self._pinger.close()
                if self._client is not None:
                    self._client.close()
            if self._broker.running:
                self.result.end_bytes, self.result.peak_bytes = resident_bytes(self._broker.pid)
            self._judge()
        self.result.took_s = time.monotonic() - began_s

    def _send_all(self, count: int, apis: Sequence[ApiKey]) -> None:
        pairs = [pair for pair in served_versions() if not apis or pair[0] in apis]
        # Requests of controllers come last: a broker that accepts one serves no clients any more.
        last = [pair for pair in pairs if pair[0] in _CONTROL]
        first = [pair for pair in pairs if pair not in last] or last
        for number in range(count):
            among = last if last and number >= count * 9 // 10 else first
            if among is first and number % TOPICS_EVERY == TOPICS_EVERY - 1:
                # Requests have deleted some topics, and appends need topics.
                user = USERS[0] if self._is_guarded else None
                self._topic_ids = make_topics(self._broker.port, user)
            api, version = among[self._random.randrange(len(among))]
            request = hostile_request(
                self._seed * 1_000_003 + number,
                api,
                version,
                self._size(),
                self._scale,
                self._topic_ids,
            )
            self._send(request)
            if not self._broker.running:
                self.result.violations.append(f"the broker died after {request.what}")
                return
            if number % 1000 == 999:
                print(f"{number + 1} of {count}", file=sys.stderr)

    def _size(self) -> int:
        if self._size_bytes:
            return self._size_bytes
        drawn = self._random.randrange(100)
        for size_bytes, percent in SIZES:
            drawn -= percent
            if drawn < 0:
                return size_bytes
        raise AssertionError(SIZES)

    def _send(self, request: Hostile) -> None:
        used_s = self._send_one(request)
        pings, slow = self._pinger.taken()
        result, worst = self.result, self.result.worst[request.api.name]
        result.requests += 1
        result.pings += pings
        worst.requests += 1
        if used_s > worst.used_s:
            worst.used_s, worst.used_what = used_s, request.what
        ping = max(slow, key=lambda ping: ping.delay_s, default=NO_DELAY)
        if not self._is_timed:
            return
        self._look_at_memory(request)
        if ping.delay_s > DELAY_LIMIT_S:
            ping = self._again(request, ping)
        if self._is_loud:
            print(f"{ping.delay_s * 1e3:6.0f} ms delay {used_s * 1e3:6.0f} ms work {request.what}")
        if ping.delay_s > worst.delay_s:
            worst.delay_s, worst.delay_what = ping.delay_s, request.what
        if ping.delay_s > DELAY_LIMIT_S:
            result.violations.append(
                f"{request.what} ({len(request.frame)} bytes), in which the broker worked for"
                f" {ping.used_s * 1e3:.0f} ms, delayed another client by"
                f" {ping.delay_s * 1e3:.0f} ms"
            )

    def _look_at_memory(self, request: Hostile) -> None:
        if not self._broker.running:
            return
        now_bytes, peak_bytes = resident_bytes(self._broker.pid)
        if peak_bytes >= self.result.peak_bytes + PEAK_STEP_BYTES:
            self.result.peak_bytes = peak_bytes
            self.result.peaks.append(
                f"{peak_bytes >> 20} MB ({now_bytes >> 20} afterwards) at request"
                f" {self.result.requests}, {request.what} ({len(request.frame)} bytes)"
            )

    def _again(self, request: Hostile, first: Ping) -> Ping:
        """Repeat a request alone, AGAIN times. The least delay is the one that it causes."""
        least = first
        for _ in range(REPEATS):
            self._pinger.taken()
            self._send_one(request)
            _, slow = self._pinger.taken()
            ping = max(slow, key=lambda ping: ping.delay_s, default=NO_DELAY)
            least = min(least, ping, key=lambda ping: ping.delay_s)
        return least

    def _send_one(self, request: Hostile) -> float:
        """Send a request and wait for its answer. Returns the broker's processor time meanwhile."""
        before_s = used_seconds(self._broker.pid)
        if self._client is None:
            user = None
            if self._is_guarded:
                user = USERS[self._random.random() < 0.7]
            self._client = Client(self._broker.port, user)
        # The answer to the small request follows the answer to `request`, if that has one.
        answer = self._client.ask(request.frame + API_VERSIONS_V0, ANSWER_LIMIT_S)
        if answer is not None and not answer.startswith(b"\0\0\0\7"):
            answer = self._client.ask(b"", ANSWER_LIMIT_S)
        if answer is None:
            self.result.worst[request.api.name].unanswered += 1
            self._client.close()
            self._client = None
        return used_seconds(self._broker.pid) - before_s if self._broker.running else 0.0

    def _judge(self) -> None:
        result = self.result
        logged = Counter(_LOGGED.findall(self._broker.output_text()))
        if logged:
            kept = Path(tempfile.gettempdir()) / f"kafkapy-fuzz-{result.broker}-{result.seed}.log"
            kept.write_text(self._broker.output_text())
            result.violations.append(f"the broker's log has {dict(logged)}: see {kept}")
        if result.growth_bytes > GROWTH_LIMIT_BYTES:
            result.violations.append(f"the broker grew by {result.growth_bytes >> 20} MB")


def _print(result: Result) -> None:
    print(
        f"{result.broker}, seed {result.seed}: {result.requests} requests and {result.pings} pings"
        f" in {result.took_s:.0f} s; resident {result.start_bytes >> 20} MB at the start,"
        f" {result.peak_bytes >> 20} at most, {result.end_bytes >> 20} at the end"
    )
    rows = sorted(result.worst.items(), key=lambda row: -row[1].delay_s)
    for api, worst in rows:
        print(
            f"{worst.delay_s * 1e3:6.0f} ms delay {worst.used_s * 1e3:6.0f} ms work {api}"
            f" ({worst.requests} requests, {worst.unanswered} unanswered):"
            f" {worst.delay_what or worst.used_what}"
        )
    for peak in result.peaks:
        print(f"memory rose to {peak}")
    for violation in result.violations:
        print(f"violation: {violation}")


if __name__ == "__main__":
    sys.exit(main())
