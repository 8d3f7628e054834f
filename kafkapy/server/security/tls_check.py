"""A handshake in memory: reads a listener's certificate, and checks whether two sides accept each
other."""

from __future__ import annotations

import ssl


def certificate_of(accept_context: ssl.SSLContext) -> bytes:
    """The certificate that a listener presents, in DER."""
    any_server = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    any_server.check_hostname = False
    any_server.verify_mode = ssl.CERT_NONE
    any_server.set_ciphers("ALL:@SECLEVEL=0")
    # A listener of TLS 1.2 that requires a client's certificate would end the handshake first.
    verify_mode, accept_context.verify_mode = accept_context.verify_mode, ssl.CERT_NONE
    client, server = _handshake_pair(any_server, accept_context)
    accept_context.verify_mode = verify_mode
    while not _step(client):
        _step(server)
    certificate = client.getpeercert(binary_form=True)
    assert certificate is not None, "a listener without a certificate"
    return certificate


def check_handshake(connect_context: ssl.SSLContext, accept_context: ssl.SSLContext) -> None:
    """Perform a handshake. `connect_context` must not check the host name.

    Raises:
        ssl.SSLError: one side does not accept the other.
    """
    client, server = _handshake_pair(connect_context, accept_context)
    done = [False, False]
    while not all(done):
        done = [_step(client), _step(server)]


def _handshake_pair(
    connect_context: ssl.SSLContext, accept_context: ssl.SSLContext
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    return (
        connect_context.wrap_bio(to_client, to_server),
        accept_context.wrap_bio(to_server, to_client, server_side=True),
    )


def _step(side: ssl.SSLObject) -> bool:
    """Perform the next step. Returns whether the handshake is complete."""
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True
