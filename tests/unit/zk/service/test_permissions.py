"""Permissions: schemes, expansion of `auth`, and invalid ACLs."""

from __future__ import annotations

import pytest
from kazoo.security import make_digest_acl_credential

from kafkapy.zk.service import permissions
from kafkapy.zk.service.permissions import (
    ENTRIES_MAX,
    acl_without_digests,
    check,
    identity_of,
    is_allowed,
    stored_acl,
    user_of,
)
from kafkapy.zk.service.refusals import Refused
from kafkapy.zk.wire.records import Acl

IP = ("ip", "10.1.2.3")
USER = ("digest", "user:hash")


@pytest.mark.parametrize(
    ("entry", "granted"),
    [
        ((1, "world", "anyone"), True),
        ((2, "world", "anyone"), False),
        ((1, "world", "someone"), False),
        ((1, "digest", "user:hash"), True),
        ((1, "digest", "user:other"), False),
        ((1, "ip", "10.1.2.3"), True),
        ((1, "ip", "10.0.0.0/8"), True),
        ((1, "ip", "10.1.2.9/31"), False),
        ((1, "ip", "::1"), False),
        ((1, "auth", ""), False),
    ],
)
def test_an_entry_grants_or_not(entry: tuple[int, str, str], granted: bool) -> None:
    assert is_allowed((entry,), 1, [IP, USER]) is granted
    if not granted:
        with pytest.raises(Refused, match="NOAUTH"):
            check((entry,), 1, [IP, USER])


def test_no_entry_grants_nothing() -> None:
    assert not is_allowed((), 31, [IP, USER])


def test_a_digest_is_kazoos() -> None:
    expected = make_digest_acl_credential("user", "secret")
    assert identity_of("digest", b"user:secret", "") == ("digest", expected)
    assert identity_of("ip", b"", "1.2.3.4") == ("ip", "1.2.3.4")
    assert identity_of("sasl", b"", "1.2.3.4") is None
    assert [user_of(each) for each in (IP, USER)] == ["10.1.2.3", "user"]


def test_auth_becomes_the_clients_digests() -> None:
    both = (Acl(31, "auth", ""), Acl(1, "world", "anyone"), Acl(1, "world", "anyone"))
    assert stored_acl(both, [IP, USER]) == ((31, *USER), (1, "world", "anyone"))
    assert acl_without_digests(((31, *USER), (1, *IP))) == (
        Acl(31, "digest", "user:x"),
        Acl(1, *IP),
    )


@pytest.mark.parametrize(
    "acl",
    [
        (),
        (Acl(31, "auth", ""),),
        (Acl(31, "world", "me"),),
        (Acl(31, "digest", "nobody"),),
        (Acl(31, "ip", "10.0.0.0/33"),),
        (Acl(31, "ip", "10.0.0.0/255.0.0.0"),),
        (Acl(31, "ip", "host"),),
        (Acl(31, "sasl", "kafka"),),
        (Acl(31, "super", "x"),),
    ],
)
def test_what_means_nobody_is_refused(acl: tuple[Acl, ...]) -> None:
    with pytest.raises(Refused, match="INVALIDACL"):
        stored_acl(acl, [IP])


@pytest.mark.parametrize(
    ("entry", "is_kept"),
    [
        (Acl(31, "sasl", "kafka"), True),
        (Acl(31, "sasl", "kafka/host@REALM"), True),
        (Acl(31, "sasl", "a@b@c"), False),
        (Acl(31, "x509", "CN=kafka,O=acme"), True),
        (Acl(31, "x509", "kafka"), False),
        (Acl(31, "super", "x"), False),
    ],
)
def test_schemes_that_are_served(entry: Acl, is_kept: bool) -> None:
    schemes = {"world", "digest", "ip", "sasl", "x509"}
    if is_kept:
        assert stored_acl([entry], [IP], schemes) == (tuple(entry),)
    else:
        with pytest.raises(Refused, match="INVALIDACL"):
            stored_acl([entry], [IP], schemes)


def test_auth_is_every_proven_identity() -> None:
    own = [IP, USER, ("sasl", "kafka"), ("x509", "CN=kafka")]
    kept = stored_acl([Acl(31, "auth", "")], own)
    assert kept == ((31, *USER), (31, "sasl", "kafka"), (31, "x509", "CN=kafka"))
    assert is_allowed(kept, 1, [("sasl", "kafka")])
    assert not is_allowed(kept, 1, [("x509", "kafka"), ("sasl", "CN=kafka")])


@pytest.mark.parametrize(
    "acl",
    [
        [Acl(1, "ip", f"10.0.{i >> 8}.{i & 255}") for i in range(ENTRIES_MAX + 1)],
        [Acl(i, "auth", "") for i in range(ENTRIES_MAX // 2 + 1)],
        [Acl(1, "digest", f"user:{'x' * 2000}")],
    ],
    ids=["many entries", "many identities in the place of few entries", "a long name"],
)
def test_an_acl_that_would_slow_down_the_reads_of_all_is_refused(acl: list[Acl]) -> None:
    with pytest.raises(Refused, match="INVALIDACL"):
        stored_acl(acl, [IP, USER, ("digest", "user:other")])


def test_repeated_reads_of_a_node_do_not_compare_its_whole_acl_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A request of 1 MB reads a node 50,000 times, and nothing else is served meanwhile."""
    compared: list[str] = []
    monkeypatch.setattr(permissions, "_contains", lambda name, _: compared.append(name))
    acl = tuple((1, "ip", f"10.7.{i}.0/24") for i in range(ENTRIES_MAX))
    for _ in range(1000):
        assert not is_allowed(acl, 1, [IP, USER])
    assert len(compared) == ENTRIES_MAX
