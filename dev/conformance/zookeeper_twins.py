"""Compares our ZooKeeper server with Apache's: random operations must have the same outcomes, and
random histories of concurrent clients one order, both with kill -9 of the server."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.harness.processes.own_zookeeper import OwnZooKeeper
from tests.harness.processes.zookeeper_histories import CLIENTS, run_history
from tests.harness.processes.zookeeper_server import ZooKeeperServer
from tests.harness.processes.zookeeper_twins import steps, twins

STEPS = 400
ROUNDS = 200


def compare(rounds: int, seed: int, print_line: Callable[[str], None]) -> int:
    """Compare with `rounds` seeds, and print the differences. Returns the exit status."""
    found: list[str] = []
    with tempfile.TemporaryDirectory() as directory:
        apaches = ZooKeeperServer(Path(directory) / "apache")
        own = OwnZooKeeper(Path(directory) / "own")
        with apaches, own:
            for each in range(seed, seed + rounds):
                found += _twins(apaches, own, each)
                for name, server in (("Apache's", apaches), ("kafkapy's", own)):
                    found += _history(name, server, each, print_line)
    print_line("\n".join(found) or f"{rounds} seeds: no difference")
    return 1 if found else 0


def _twins(apaches: ZooKeeperServer, own: ZooKeeperServer, seed: int) -> list[str]:
    todo = steps(seed, STEPS, clients=CLIENTS, kills=True)
    theirs, ours = twins(apaches, own, seed, CLIENTS, todo)
    found = [
        f"seed {seed}, step {number}: {mine} instead of {expected}"
        for number, (expected, mine) in enumerate(zip(theirs.outcomes, ours.outcomes, strict=True))
        if mine != expected
    ]
    if ours.events != theirs.events:
        found.append(f"seed {seed}: events {ours.events} instead of {theirs.events}")
    return found


def _history(
    name: str, server: ZooKeeperServer, seed: int, print_line: Callable[[str], None]
) -> list[str]:
    def restart() -> None:
        server.kill()
        server.start()

    try:
        writes = run_history(server.port, f"/history-{seed}", seed, ROUNDS, restart)
    except AssertionError as fault:
        return [f"seed {seed} on {name} server: {fault}"]
    print_line(f"seed {seed}, {name} server: {writes} writes of {CLIENTS} clients in one order")
    return []
