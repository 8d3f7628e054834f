"""Handshakes in memory end as those over sockets would."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from kafkapy.server.security.tls_check import certificate_of, check_handshake
from tests.harness.security.certificates import can_make
from tests.harness.security.tls_contexts import TlsContexts


@pytest.fixture
def contexts(tmp_path: Path) -> TlsContexts | None:
    if not can_make("handshakes in memory"):
        return None
    made = TlsContexts.make(tmp_path, "required")
    made.client.check_hostname = made.stranger.check_hostname = False
    return made


def test_what_is_shown(contexts: TlsContexts | None, tmp_path: Path) -> None:
    if contexts is not None:
        expected = ssl.PEM_cert_to_DER_cert((tmp_path / "broker.crt").read_text())
        assert certificate_of(contexts.broker) == expected


def test_who_takes_whom(contexts: TlsContexts | None, tmp_path: Path) -> None:
    if contexts is None:
        return
    check_handshake(contexts.client, contexts.broker)
    with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
        check_handshake(contexts.stranger, contexts.broker)
    (tmp_path / "others").mkdir()
    others = TlsContexts.make(tmp_path / "others", "none")
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
        check_handshake(contexts.client, others.broker)
