"""Which of the quotas that are set counts for whom, and with whom they share it (KIP-55)."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.metadata.client_quotas import (
    DEFAULT,
    Limit,
    Name,
    QuotaKind,
    QuotaTable,
    Tags,
    limits_of,
)

Key = tuple[Name, Name]

# Each level, most specific first, and what a client of alice's is counted with there.
LEVELS: list[tuple[Key, Tags]] = [
    (("alice", "app"), Tags("alice", "app")),
    (("alice", DEFAULT), Tags("alice", "app")),
    (("alice", None), Tags("alice", "")),
    ((DEFAULT, "app"), Tags("alice", "app")),
    ((DEFAULT, DEFAULT), Tags("alice", "app")),
    ((DEFAULT, None), Tags("alice", "")),
    ((None, "app"), Tags("", "app")),
    ((None, DEFAULT), Tags("", "app")),
]


def table(*keys: Key) -> QuotaTable:
    """Each key's quota is its level's number."""
    made = QuotaTable()
    for key in keys:
        made.set(*key, [known for known, _ in LEVELS].index(key))
    return made


@pytest.mark.parametrize("level", range(len(LEVELS)))
def test_the_most_specific_level_counts(level: int) -> None:
    _, tags = LEVELS[level]
    for present in (LEVELS[level:], LEVELS[level : level + 1]):
        quotas = table(*[key for key, _ in present])
        assert quotas.find("alice", "app") == Limit(tags, level)


def test_a_quota_that_is_taken_away_leaves_the_next() -> None:
    quotas = table(("alice", "app"), (None, DEFAULT))
    quotas.set("alice", "app", None)
    assert quotas.find("alice", "app") == Limit(Tags("", "app"), 7)
    quotas.set(None, DEFAULT, None)
    quotas.set(None, DEFAULT, None)
    assert quotas.find("alice", "app") is None
    assert len(quotas) == 0


def test_others_have_none_of_it() -> None:
    quotas = table(("alice", "app"), (None, "app"), ("alice", None))
    assert quotas.find("bob", "app") == Limit(Tags("", "app"), 6)
    assert quotas.find("bob", "other") is None
    assert quotas.find("alice", "other") == Limit(Tags("alice", ""), 2)


@pytest.mark.parametrize("name", ["<default>", ""])
def test_the_default_is_nobodys_name(name: str) -> None:
    quotas = QuotaTable()
    quotas.set(DEFAULT, None, 5)
    quotas.set(name, None, 6)
    assert quotas.find(name, "") == Limit(Tags(name, ""), 6)
    assert quotas.find("alice", "") == Limit(Tags("alice", ""), 5)


def test_without_a_client_id_those_of_client_ids_do_not_count() -> None:
    everything = table(*[key for key, _ in LEVELS])
    assert everything.find("alice", "") == Limit(Tags("alice", ""), 2)
    assert everything.find("bob", "") == Limit(Tags("bob", ""), 5)
    assert table((None, DEFAULT), (DEFAULT, DEFAULT)).find("bob", "") is None


def test_the_quotas_among_configs() -> None:
    assert limits_of({"producer_byte_rate": "10", "SCRAM-SHA-256": "x"}) == {QuotaKind.PRODUCE: 10}
    assert limits_of({"request_percentage": "1.0E-5", "controller_mutation_rate": "2"}) == {
        QuotaKind.REQUEST: 1e-5,
        QuotaKind.CONTROLLER_MUTATION: 2,
    }


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("producer_byte_rate", "1.5"),
        ("producer_byte_rate", "9" * 400),
        ("consumer_byte_rate", str(2**63)),
        ("consumer_byte_rate", str(-(2**63) - 1)),
        ("consumer_byte_rate", ""),
        ("request_percentage", "much"),
    ],
)
def test_what_is_no_quota_is_named(name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=f"{name}={text}"):
        limits_of({name: text})
