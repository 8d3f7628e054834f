"""The messages about what protects a connection after a login by GSSAPI."""

from __future__ import annotations

import pytest

from kafkapy.security.kerberos.gss_context import (
    CHOICE,
    OFFER,
    GssFailed,
    check_choice,
    check_offer,
)


@pytest.mark.parametrize(
    "offer", [OFFER, b"\x01\x00\xff\xff", b"\x07\x01\x00\x00", b"\x03\x00\x00\x00"]
)
def test_offers_that_have_none(offer: bytes) -> None:
    check_offer(offer)


@pytest.mark.parametrize(
    ("offer", "said"),
    [
        (b"\x06\x00\xff\xff", r"asks for a security layer \(6\): use TLS"),
        (b"\x00\x00\x00\x00", r"asks for a security layer \(0\)"),
        (b"", "0 bytes, not 4"),
        (b"\x01\x00\x00\x00a", "5 bytes, not 4"),
    ],
)
def test_offers_that_cannot_be_met(offer: bytes, said: str) -> None:
    with pytest.raises(GssFailed, match=said):
        check_offer(offer)


@pytest.mark.parametrize("choice", [CHOICE, CHOICE + b"alice@R", b"\x01\x00\xff\xffb"])
def test_the_layer_that_was_offered(choice: bytes) -> None:
    check_choice(choice)


@pytest.mark.parametrize("choice", [b"", b"\x01\x00\x00", b"\x02\x00\x00\x00", b"\x03\x00\x00\x00"])
def test_a_layer_that_was_not_offered(choice: bytes) -> None:
    with pytest.raises(GssFailed, match="Client selected unsupported protection"):
        check_choice(choice)
