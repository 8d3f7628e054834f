"""A decision stands until what it rests on, or the client, has changed."""

from __future__ import annotations

from types import SimpleNamespace

from kafkapy.server.api.standing_decision import CachedDecision


def test_a_decision_is_made_once_for_each_version_and_principal() -> None:
    basis, client = SimpleNamespace(version=0), SimpleNamespace(principal="User:a")
    asked: list[str] = []
    allowed = {"User:a"}

    def decide(principal: str) -> bool:
        asked.append(principal)
        return principal in allowed

    decision = CachedDecision(basis, client, decide)
    assert [decision.holds() for _ in range(3)] == [True] * 3
    assert asked == ["User:a"]
    client.principal = "User:b"
    assert [decision.holds() for _ in range(3)] == [False] * 3
    assert asked == ["User:a", "User:b"]
    allowed.add("User:b")
    assert not decision.holds()
    basis.version += 1
    assert [decision.holds() for _ in range(3)] == [True] * 3
    assert asked == ["User:a", "User:b", "User:b"]
