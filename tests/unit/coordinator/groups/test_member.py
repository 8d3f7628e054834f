"""One member: what it supports and votes for."""

from __future__ import annotations

from kafkapy.coordinator.groups.member import Member


def member(*protocols: tuple[str, bytes], instance_id: str | None = None) -> Member:
    return Member("m", instance_id, "client", "/host", 60_000, 10_000, protocols)


def test_a_vote_is_the_first_candidate_of_its_list() -> None:
    voter = member(("a", b"1"), ("b", b"2"), ("c", b"3"))
    assert voter.vote({"c", "b"}) == "b"
    assert voter.vote({"c", "b", "a"}) == "a"


def test_metadata_is_by_protocol() -> None:
    one = member(("a", b"1"), ("b", b"2"))
    assert (one.metadata("b"), one.metadata("x"), one.metadata(None)) == (b"2", b"", b"")


def test_a_protocol_named_twice_is_supported_once() -> None:
    assert member(("a", b"1"), ("a", b"2")).protocol_names == {"a"}


def test_an_instance_id_makes_it_static() -> None:
    assert member(instance_id="i").is_static
    assert not member().is_static
