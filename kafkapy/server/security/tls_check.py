"""A handshake in memory: reads a listener's certificate, and checks whether two sides accept each
other."""

from __future__ import annotations

import ssl


def certificate_of(accepting: ssl.SSLContext) -> bytes:
    """The certificate that a listener presents, in DER."""
    anybody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anybody.check_hostname = False
    anybody.verify_mode = ssl.CERT_NONE
    anybody.set_ciphers("ALL:@SECLEVEL=0")
    client, server = _sides(anybody, accepting)
    while not _goes_on(client):
        _goes_on(server)
    certificate = client.getpeercert(binary_form=True)
    assert certificate is not None, "a listener without a certificate"
    return certificate


def check_handshake(connecting: ssl.SSLContext, accepting: ssl.SSLContext) -> None:
    """Perform a handshake. `connecting` must not check the host name.

    Raises:
        ssl.SSLError: one side does not accept the other.
    """
    client, server = _sides(connecting, accepting)
    done = [False, False]
    while not all(done):
        done = [_goes_on(client), _goes_on(server)]


def _sides(
    connecting: ssl.SSLContext, accepting: ssl.SSLContext
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    return (
        connecting.wrap_bio(to_client, to_server),
        accepting.wrap_bio(to_server, to_client, server_side=True),
    )


def _goes_on(side: ssl.SSLObject) -> bool:
    """Perform the next step. Returns whether the handshake is complete."""
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True
