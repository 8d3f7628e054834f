"""Transactions are whole: committed ones are read once everywhere, aborted ones nowhere."""

from __future__ import annotations

from tests.simulation.checkers.base import Checker
from tests.simulation.history import LEDGER
from tests.simulation.transactional_clients import Fate


class Transactions(Checker):
    """Holds what readers of committed records found, and the group's offset, against what the
    producer was told."""

    def on_end(self) -> None:
        history = self.cluster.history
        if history.lost_of_transactions:
            return
        for number, fate in history.transactions.items():
            found = [values.count(number) for values in history.ledger.values()]
            allowed = {
                Fate.COMMITTED: found == [1] * len(found),
                Fate.ABORTED: found == [0] * len(found),
                Fate.UNKNOWN: found in ([0] * len(found), [1] * len(found)),
            }
            if not allowed[fate]:
                self.violated(f"transaction {number}, {fate.value}, is read {found} times")
        for partition, values in history.ledger.items():
            if values != sorted(values):
                self.violated(f"{LEDGER}-{partition} has its transactions out of order: {values}")
            last = values[-1] + 1 if values else -1
            if history.ledger_offset is not None and history.ledger_offset != last:
                self.violated(f"the group's offset is {history.ledger_offset}, not {last}")
