"""Writes docs/evidence/fuzzing.md: the fuzzer's requests, and the worst delays of other clients."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Final

from dev.report import ROOT, kafkapy_version, machine, today, wrapped

if TYPE_CHECKING:
    from dev.fuzz.result import Result

PAGE: Final = ROOT / "docs" / "evidence" / "fuzzing.md"
_KINDS: Final = {
    "plain": "default configs",
    "guarded": "SASL/PLAIN and an authorizer",
}
_SHOWN: Final = 12
_MB: Final = 1 << 20

_HEAD: Final = """# Fuzzing

No request of at most 1 MB may make another connection wait for more than 100 ms. `scripts/fuzz`
looks for those that do: it starts a broker, sends it hostile but well-formed requests over every
served API and version, and measures what a client on another connection notices. This page is
written by `scripts/fuzz --write`.

```sh
scripts/fuzz                             # 100,000 requests to each of two brokers
scripts/fuzz --requests 3000 --seed 7    # another course, which the seed decides
scripts/fuzz --api FETCH --size 1000000  # one API, each request as large as that
```

## What is sent

Requests are made from the protocol's schema. Each has a shape: one array with as many elements as
fit, all the same or all different, at any depth; one string or bytes field as long as fits; nulls;
the least and greatest numbers; unknown tagged fields. Produce requests carry bombs of each codec
and magic, wrong counts, batches that are cut short, and message sets of before Kafka 0.11; some
carry as many of them as fit. One request in twenty has 1 MB. What speaks for the controller is sent
last.

## What is measured

Another process sends ApiVersions on a connection of its own, every 2 ms. A *delay* is how long an
answer took, without the time in which that process or the broker's event loop was ready and waited
for a processor (`/proc/PID/schedstat`). It is at most the processor time that the broker used
meanwhile: on a machine that is busy with other things, the time alone says little. A request that
brings on more than 100 ms is sent three times more, alone; the least delay counts. *Work* is the
processor time of the broker from the request to its answer.

The run fails if the broker ends, if its log has a traceback or FATAL, if it grows by more than
200 MB of resident memory, or for a delay above 100 ms.

## Results
"""


def write_page(results: list[Result]) -> None:
    """Write the page of these runs."""
    measured = f"Measured on {today()} with {kafkapy_version()}, on {machine()}."
    lines = wrapped(measured)
    PAGE.write_text(f"{_HEAD}\n{lines}\n" + "".join(_section(result) for result in results))


def _section(result: Result) -> str:
    worst = sorted(result.worst.items(), key=lambda row: (-row[1].delay_s, -row[1].used_s))
    violations = _by_api(result.violations) or "None.\n"
    rows = "".join(
        f"| {api} | {row.requests} | {_ms(row.delay_s)} | {row.delay_what or '-'} |"
        f" {_ms(row.used_s)} | {row.used_what} |\n"
        for api, row in worst[:_SHOWN]
    )
    return f"""
### A broker with {_KINDS[result.broker]}

Seed {result.seed}: {result.requests:,} requests and {result.pings:,} pings in {result.took_s:,.0f}
seconds. Resident memory was {result.start_bytes // _MB} MB at the start,
{result.peak_bytes // _MB} MB at most and {result.end_bytes // _MB} MB at the end.

Violations:

{violations}
| API | requests | worst delay | of | most work | of |
|---|---|---|---|---|---|
{rows}"""


def _by_api(violations: list[str]) -> str:
    """Table of delays by API, with their number and the worst; then all other violations."""
    slow: dict[str, list[int]] = {}
    others = []
    for each in violations:
        delay = re.match(r"(\w+) v\d+.*another client by (\d+) ms$", each)
        if delay is None:
            item = textwrap.fill(each, 98, initial_indent="- ", subsequent_indent="  ")
            others.append(f"{item}\n")
        else:
            slow.setdefault(delay[1], []).append(int(delay[2]))
    rows = "".join(
        f"| {api} | {len(delays)} | {max(delays)} ms |\n"
        for api, delays in sorted(slow.items(), key=lambda row: -max(row[1]))
    )
    head = "| API | delays above 100 ms | the worst |\n|---|---|---|\n"
    return (head + rows + "\n" if rows else "") + "".join(others)


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.0f} ms"
