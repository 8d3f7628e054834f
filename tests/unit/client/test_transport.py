"""Real sockets on the loopback: plain, TLS, and what goes wrong when they open."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.client.security import security_from
from kafkapy.client.transport import Transport, connect, network_error
from kafkapy.common.errors import ApiError, ErrorCode
from tests.harness.plugins import unchecked

PLAIN = security_from({})


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """A key and a certificate of 127.0.0.1 in one file; None where openssl is not installed."""
    if shutil.which("openssl") is None:
        unchecked.note("client TLS", "openssl is not installed")
        return None
    directory = tmp_path_factory.mktemp("tls")
    key, made = directory / "key.pem", directory / "store.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command = ["openssl", "req", "-x509", *curve, *subject, "-keyout", key, "-out", made]
    subprocess.run(command, check=True, capture_output=True)
    made.write_text(key.read_text() + made.read_text())
    return made


def test_a_name_that_no_host_can_have_is_an_error_of_the_network() -> None:
    with pytest.raises(ApiError, match=r"ü\.\.de:9092 could not be established: ") as caught:
        connect("ü..de", 9092, PLAIN, 1)
    assert caught.value.code is ErrorCode.NETWORK_EXCEPTION


def port_of(listener: socket.socket) -> int:
    port: int = listener.getsockname()[1]
    return port


def exchange(transport: Transport) -> bytes:
    transport.sendall(b"ping")
    buffer = bytearray(4)
    assert transport.recv_into(memoryview(buffer)) == 4
    transport.close()
    return bytes(buffer)


def echo_once(listener: socket.socket, context: ssl.SSLContext | None = None) -> threading.Thread:
    """Answer one connection with what it sent."""

    def serve() -> None:
        peer, _ = listener.accept()
        try:
            connection = context.wrap_socket(peer, server_side=True) if context else peer
            with connection:
                connection.sendall(connection.recv(4))
        except ssl.SSLError:
            peer.close()

    thread = threading.Thread(target=serve)
    thread.start()
    return thread


def test_a_plain_connection(listener: socket.socket) -> None:
    server = echo_once(listener)
    assert exchange(connect("127.0.0.1", port_of(listener), PLAIN, 5)) == b"ping"
    server.join()


def test_the_system_asks_whether_a_silent_broker_is_still_there(listener: socket.socket) -> None:
    connected = connect("127.0.0.1", listener.getsockname()[1], PLAIN, 5)
    assert isinstance(connected, socket.socket)
    with connected:
        assert connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


def test_a_closed_port_is_named(listener: socket.socket) -> None:
    port = port_of(listener)
    listener.close()
    said = f"Connection to 127.0.0.1:{port} could not be established: Connection refused"
    with pytest.raises(ApiError, match=said) as caught:
        connect("127.0.0.1", port, PLAIN, 5)
    assert caught.value.code is ErrorCode.NETWORK_EXCEPTION


def test_a_timeout_is_said_plainly() -> None:
    assert "timed out" in network_error("h", 1, TimeoutError()).message


def test_tls_with_a_trusted_certificate(listener: socket.socket, certificate: Path | None) -> None:
    if certificate is None:
        return
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = echo_once(listener, context)
    security = security_from(
        {"security.protocol": "SSL", "ssl.truststore.location": str(certificate)}
    )
    assert exchange(connect("127.0.0.1", port_of(listener), security, 5)) == b"ping"
    server.join()


def test_tls_with_an_unknown_certificate(listener: socket.socket, certificate: Path | None) -> None:
    if certificate is None:
        return
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = echo_once(listener, context)
    with pytest.raises(ApiError, match="CERTIFICATE_VERIFY_FAILED"):
        connect("127.0.0.1", port_of(listener), security_from({"security.protocol": "SSL"}), 5)
    server.join()


def test_a_client_certificate_is_shown(listener: socket.socket, certificate: Path | None) -> None:
    if certificate is None:
        return
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.load_verify_locations(certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    pem = certificate.read_text()
    key, _, chain = pem.partition("-----BEGIN CERTIFICATE-----")
    security = security_from(
        {
            "security.protocol": "SSL",
            "ssl.truststore.certificates": pem,
            "ssl.keystore.certificate.chain": "-----BEGIN CERTIFICATE-----" + chain,
            "ssl.keystore.key": key,
        }
    )
    server = echo_once(listener, context)
    assert exchange(connect("127.0.0.1", port_of(listener), security, 5)) == b"ping"
    server.join()
