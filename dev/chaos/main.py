"""Chaos: a real cluster of brokers, real clients, and faults chosen by a seed.

A failing run names its seed and keeps its directories: `scripts/chaos --seed N` aims the same
faults in the same order (what the processes do meanwhile is not repeated).
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import KafkaException
from kazoo.exceptions import KazooException

from dev.chaos import growth, upgrade
from dev.report import ROOT, add_row, kafkapy_version, machine, replace_rows, table, today
from tests.harness.faults import chaos_run, group_workload, transaction_workload
from tests.harness.faults.chaos_run import Verdict, Workload
from tests.harness.faults.fault_cluster import FaultCluster
from tests.harness.faults.faults import DISK_FAULTS, FAULTS, Chaos
from tests.harness.faults.group_workload import GroupWorkload
from tests.harness.faults.scenario import Scenario
from tests.harness.faults.system_scenarios import SYSTEM
from tests.harness.faults.transaction_workload import TransactionWorkload

DOCUMENT = ROOT / "docs" / "evidence" / "chaos.md"
CURVES = DOCUMENT.with_suffix(".svg")
RUNS = "Runs"
SYSTEM_RUN = "Kafka's system tests, the last run of each"
HEAD = ["scenario", "outcome", "date", "version", "machine", "seconds", "acknowledged",
        "ISR full after", "anomalies", "what was done"]  # fmt: skip


class Outcome(NamedTuple):
    """Result of a run: its verdict, or the reason for its absence."""

    verdict: Verdict | None
    complaint: str
    seconds: float

    @property
    def passed(self) -> bool:
        return self.verdict is not None and self.verdict.clean


def main() -> int:
    options = parse()
    if options.system is not None:
        return system(options)
    if options.upgrade is not None:
        return upgraded(options)
    usual = FAULTS.keys() if options.bad_disks else FAULTS.keys() - DISK_FAULTS
    names = options.faults.split(",") if options.faults else sorted(usual)
    unknown = sorted(set(names) - FAULTS.keys())
    if unknown:
        print(f"no such fault: {', '.join(unknown)}; there are {', '.join(FAULTS)}")
        return 2
    options.bad_disks = not DISK_FAULTS.isdisjoint(names)
    if options.bad_disks and shutil.which("cc") is None:
        print("disks that misbehave need a C compiler (cc), and there is none")
        return 2
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    title = f"seed {seed}, {options.minutes:g} minutes, RF {options.rf}, min ISR {options.min_isr}"
    title += ", transactions" if options.transactions else f", {options.rate:g} records/s"
    title += ", groups of Kafka 4" * options.groups
    title += f", {options.faults}" * bool(options.faults)
    title += ", bad disks" * options.bad_disks
    if options.apache:
        title += f", Apache Kafka's: {', '.join(map(str, options.apache))}"
    if options.zookeeper == "kafkapy":
        title += ", kafkapy's ZooKeeper"
    return one_row(title, lambda path: chaos(path, names, seed, options), options)


def one_row(title: str, scenario: Callable[[Path], Verdict], options: argparse.Namespace) -> int:
    """Run a scenario, and add a row to the document."""
    started_on = measured()
    outcome = run_one(title, scenario, options)
    if outcome.verdict is not None:
        faults = str(len(outcome.verdict.faults))
        add_row(DOCUMENT, RUNS, [*started_on, title, faults, *figures(outcome.verdict)])
    return 0 if outcome.passed else 1


def upgraded(options: argparse.Namespace) -> int:
    """Replace the brokers one by one with brokers of another commit, and back."""
    commit = options.upgrade or upgrade.two_days_ago()

    def run(directory: Path) -> Verdict:
        other = upgrade.older(commit, directory / "other")

        def faults(cluster: FaultCluster, workload: Workload) -> Iterator[str]:
            for done in upgrade.roll(cluster, workload, other):
                print(done, flush=True)
                yield done

        shape = Scenario(faults, overrides=upgrade.COMPACTING, workload=upgrade.CompactedWorkload)
        return shape.run(directory)

    return one_row(f"rolled from and to {commit}, transactions, compacted topics", run, options)


def system(options: argparse.Namespace) -> int:
    """Run Kafka's system tests one after another, whatever their outcomes; print a table.

    Their rows in the document are replaced.
    """
    chosen = {name: s for name, s in SYSTEM.items() if options.system in name}
    if not chosen:
        print(f"no such scenario: {options.system}; there are: {'; '.join(SYSTEM)}")
        return 2
    rows, passed = [], True
    for name, scenario in chosen.items():
        started_on = measured()
        outcome = run_one(name, scenario.run, options)
        passed = passed and outcome.passed
        rows.append(row(name, started_on, outcome))
    print(table(HEAD, rows), flush=True)
    replace_rows(DOCUMENT, SYSTEM_RUN, HEAD, rows)
    return 0 if passed else 1


def chaos(directory: Path, names: list[str], seed: int, options: argparse.Namespace) -> Verdict:
    """Inject the faults of a seed for `--minutes`."""

    def faults(cluster: FaultCluster, workload: Workload) -> Iterator[str]:
        sampler.watch(cluster)
        aimed = Chaos(cluster, chaos_run.TOPIC, chaos_run.PARTITIONS, seed)
        for done in aimed.run_for(options.minutes * 60, names):
            print(f"{time.strftime('%H:%M:%S')} {workload.acked:8d} acked; {done}", flush=True)
            yield done

    workload, overrides = chosen(options)
    shape = Scenario(
        faults,
        brokers=options.brokers,
        rf=options.rf,
        min_isr=options.min_isr,
        rate=options.rate,
        log_dirs=2 if options.bad_disks else 1,
        overrides=overrides,
        apache=tuple(options.apache),
        own_zookeeper=options.zookeeper == "kafkapy",
        workload=workload,
        bad_disks=options.bad_disks,
    )
    with growth.Sampler(chaos_run.TOPIC) as sampler:
        verdict = shape.run(directory)
    print(table(["broker", *growth.MEASURES], growth.table(sampler.samples)), flush=True)
    if options.transactions:
        growth.draw(sampler.samples, CURVES)
    # The heap of Apache Kafka's JVM grows up to its limit.
    ours = (sample for sample in sampler.samples if sample.broker_id not in options.apache)
    verdict.anomalies["growth"] = growth.grown(ours)
    return verdict


def chosen(options: argparse.Namespace) -> tuple[type[Workload], Mapping[str, str]]:
    """The clients of a run, and the settings that they need."""
    if options.transactions:
        return TransactionWorkload, transaction_workload.SETTINGS
    if options.groups:
        return GroupWorkload, group_workload.SETTINGS
    return Workload, {}


def run_one(
    title: str, scenario: Callable[[Path], Verdict], options: argparse.Namespace
) -> Outcome:
    """Run a scenario and print its outcome. A failed run keeps its directories."""
    directory = Path(tempfile.mkdtemp(prefix="kafkapy-chaos-", dir=options.dir))
    print(f"{title}: in {directory}", flush=True)
    start = time.monotonic()
    verdict, complaint = None, ""
    try:
        verdict = scenario(directory)
    except (AssertionError, RuntimeError, OSError, KafkaException, KazooException) as fault:
        traceback.print_exc()
        complaint = f"{type(fault).__name__}: {fault}".partition("\n")[0]
    outcome = Outcome(verdict, complaint, time.monotonic() - start)
    print(complaint if verdict is None else verdict.text(), flush=True)
    if not outcome.passed:
        print(f"FAILED: {title}; the directories stay in {directory}", flush=True)
    elif not options.keep:
        shutil.rmtree(directory)
    return outcome


def measured() -> list[str]:
    """Date, version and machine of a run."""
    return [today(), kafkapy_version(), machine()]


def figures(verdict: Verdict) -> list[str]:
    """Figures of a verdict: acknowledged records, recovery time, anomalies."""
    found = {name: len(cases) for name, cases in verdict.anomalies.items() if cases}
    return [
        str(verdict.acked),
        f"{verdict.full_isr_s:.1f} s" if verdict.full_isr_s >= 0 else "never",
        ", ".join(f"{name} {count}" for name, count in found.items()) or "none",
    ]


def row(name: str, started_on: list[str], outcome: Outcome) -> list[str]:
    """A scenario's row of the table."""
    said = "passed" if outcome.passed else "FAILED"
    head = [name, said, *started_on, f"{outcome.seconds:.0f}"]
    if outcome.verdict is None:
        return [*head, "", "", "", outcome.complaint]
    return [*head, *figures(outcome.verdict), "; ".join(outcome.verdict.faults)]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/chaos", description=__doc__)
    parser.add_argument(
        "--system",
        nargs="?",
        const="",
        metavar="WORDS",
        help="Kafka's system tests instead, those that have WORDS in their name",
    )
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--faults", help=f"of {','.join(FAULTS)}; all if not given")
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--rf", type=int, default=3)
    parser.add_argument("--min-isr", type=int, default=2)
    parser.add_argument("--rate", type=float, default=400.0, help="records a second")
    parser.add_argument(
        "--apache", type=int, nargs="*", default=(), metavar="ID", help="Apache Kafka's brokers"
    )
    parser.add_argument(
        "--zookeeper", choices=("apache", "kafkapy"), default="apache", help="whose ZooKeeper"
    )
    clients = parser.add_mutually_exclusive_group()
    clients.add_argument(
        "--transactions", action="store_true", help="transactional producers, zombies and copiers"
    )
    clients.add_argument(
        "--groups", action="store_true", help="consumer groups and share groups of Kafka 4 too"
    )
    parser.add_argument(
        "--bad-disks", action="store_true", help="faults of disks too: EIO, ENOSPC, slow, lying"
    )
    parser.add_argument(
        "--upgrade",
        nargs="?",
        const="",
        metavar="COMMIT",
        help="brokers of another commit (of two days ago) and of Apache Kafka by turns instead",
    )
    parser.add_argument("--keep", action="store_true", help="keep the directories of a clean run")
    parser.add_argument("--dir", help="where the directories are made; the system's place for them")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
