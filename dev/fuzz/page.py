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

No request of at most 1 MB may delay a client on another connection by more than 100 ms. The last
run found {found} violations of this and of the other limits [below](#measurement).

`scripts/fuzz` starts a broker, sends hostile but well-formed requests of every served API and
version, and measures the delays of another client. `scripts/fuzz --write` writes this page.

```sh
scripts/fuzz                             # 100,000 requests to each of two brokers
scripts/fuzz --requests 3000 --seed 7    # fewer requests, from another seed
scripts/fuzz --api FETCH --size 1000000  # one API, requests of this size
```

## Requests

The requests are built from the protocol's schema. Each has one of these shapes:

- one array with as many elements as fit, all equal or all different, at any depth;
- one string or bytes field of the greatest size that fits;
- nulls;
- the least and greatest numbers;
- unknown tagged fields.

Produce requests contain decompression bombs of each codec and magic, wrong counts, truncated
batches, and message sets of the formats before Kafka 0.11; some contain as many of them as fit. One
request in twenty has 1 MB. Requests in the controller's name are sent last.

## Measurement

Another process sends ApiVersions on its own connection every 2 ms.

- *Delay*: the time until the response, less the time in which that process or the broker's event
  loop waited for a processor (`/proc/PID/schedstat`). It is at most the processor time that the
  broker used meanwhile, because elapsed time alone is no measure on a busy machine.
- *Work*: the processor time of the broker from a request to its response.

A request that causes a delay of more than 100 ms is repeated three times, alone; the least delay
counts. The run fails if

- a delay exceeds 100 ms;
- the broker ends;
- the broker's log has a traceback or FATAL;
- the broker's resident memory grows by more than 200 MB.

## Results
"""


def write_page(results: list[Result]) -> None:
    """Write the page of these runs."""
    measured = f"Measured on {today()} with {kafkapy_version()}, on {machine()}."
    lines = wrapped(measured)
    head = _HEAD.format(found=sum(len(result.violations) for result in results))
    PAGE.write_text(f"{head}\n{lines}\n" + "".join(_section(result) for result in results))


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
