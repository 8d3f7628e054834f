"""Evening out loads by single moves and by chains."""

from __future__ import annotations

from kafkapy.admin.planning.levelling import balance


class Shelves:
    """Items on brokers, each of which may lie only on some."""

    def __init__(self, items: dict[str, tuple[int, set[int]]], brokers: int) -> None:
        self.place = {name: broker for name, (broker, _) in items.items()}
        self.allowed = {name: allowed for name, (_, allowed) in items.items()}
        self.loads = {b: sum(p == b for p in self.place.values()) for b in range(brokers)}
        self.moves: list[tuple[str, int, int]] = []

    def movable(self, source: int, target: int) -> str | None:
        fits = (n for n, p in self.place.items() if p == source and target in self.allowed[n])
        return next(fits, None)

    def move(self, name: str, source: int, target: int) -> None:
        self.place[name] = target
        self.loads[source] -= 1
        self.loads[target] += 1
        self.moves.append((name, source, target))

    def balance(self) -> None:
        balance(self.loads, self.movable, self.move)


def test_the_fullest_gives_to_the_emptiest() -> None:
    shelves = Shelves({name: (0, {0, 1, 2}) for name in "abcd"}, 3)
    shelves.balance()
    assert shelves.loads == {0: 2, 1: 1, 2: 1}
    assert shelves.moves == [("a", 0, 1), ("b", 0, 2)]


def test_a_chain_where_there_is_no_straight_way() -> None:
    items = {"a": (0, {0, 1}), "b": (0, {0}), "c": (1, {1, 2})}
    shelves = Shelves(items, 3)
    shelves.balance()
    assert shelves.loads == {0: 1, 1: 1, 2: 1}
    assert shelves.moves == [("c", 1, 2), ("a", 0, 1)]


def test_what_cannot_be_relieved_stays_and_the_others_go_on() -> None:
    items = {"a": (0, {0}), "b": (0, {0}), "c": (0, {0}), "d": (1, {1, 2}), "e": (1, {1, 2})}
    shelves = Shelves(items, 3)
    shelves.balance()
    assert shelves.loads == {0: 3, 1: 1, 2: 1}


def test_nothing_at_all() -> None:
    balance({}, lambda a, b: None, lambda item, a, b: None)
