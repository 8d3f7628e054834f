"""Counts of authentications."""

from __future__ import annotations

from kafkapy.server.network.authentication_counts import TLS, AuthenticationCounts


def test_a_failed_handshake_is_counted_on_its_listener() -> None:
    counts = AuthenticationCounts()
    counts.handshake_failed("A")
    counts.handshake_failed("A")
    assert (counts.failed, counts.succeeded) == ({("A", TLS): 2}, {})
