"""Tools on librdkafka whose certificate, or whose broker's certificate, is refused.

What a user would lose: the reason, and a minute for each attempt.
"""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

import pytest
from confluent_kafka import KafkaError

from kafkapy.tools.librdkafka_client import Reporter
from tests.harness.security.certificates import can_make, make_identity


@contextmanager
def tls_listener(certificate: Path, verify_mode: ssl.VerifyMode) -> Iterator[int]:
    """The port of a listener that performs handshakes with a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.load_verify_locations(certificate)
    context.verify_mode = verify_mode
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=_shake_hands, args=(listener, context))
        thread.start()
        address = listener.getsockname()
        yield address[1]
        socket.create_connection(address).close()
        thread.join()


def _shake_hands(listener: socket.socket, context: ssl.SSLContext) -> None:
    """Serve clients until one closes its connection without data."""
    while True:
        client, _ = listener.accept()
        with client, suppress(OSError):
            if not client.recv(1, socket.MSG_PEEK):
                return
            with context.wrap_socket(client, server_side=True) as encrypted:
                encrypted.recv(1)


@pytest.mark.parametrize(
    ("host", "verify_mode", "reason", "advice"),
    [
        ("localhost", ssl.CERT_NONE, "Hostname mismatch", "connect to a name in the broker's"),
        (
            "127.0.0.1",
            ssl.CERT_REQUIRED,
            "alert certificate required",
            "the listener requires a client certificate",
        ),
    ],
)
def test_a_refused_certificate_ends_a_tool_with_the_reason(
    tmp_path: Path, host: str, verify_mode: ssl.VerifyMode, reason: str, advice: str
) -> None:
    """librdkafka retried, and its text named the location of the authority as the likely cause."""
    if not can_make("refused certificates"):
        return
    certificate = make_identity(tmp_path, "broker", host="elsewhere")
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SSL\nssl.truststore.type=PEM\n"
        f"ssl.truststore.location={certificate.with_suffix('.crt')}\n"
    )
    with tls_listener(certificate, verify_mode) as port:
        tool = [sys.executable, "-m", "kafkapy", "console-producer", "--topic", "t"]
        at = ["--bootstrap-server", f"{host}:{port}", "--producer.config", str(config)]
        ended = subprocess.run([*tool, *at], input="a\n", capture_output=True, text=True)
    assert ended.returncode == 1
    *_, last, hint = ended.stderr.splitlines()
    assert reason in last
    assert hint.startswith(f"Hint: {advice}")


def test_a_client_that_retries_reports_the_reason(tmp_path: Path) -> None:
    """The agent waits until the certificate is valid."""
    if not can_make("the reasons of refused certificates"):
        return
    certificate = make_identity(tmp_path, "broker", host="elsewhere")
    said: list[str] = []
    properties = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificate.with_suffix(".crt")),
    }
    reporter = Reporter(said.append, properties, retries_authentication=True)
    with tls_listener(certificate, ssl.CERT_NONE) as port:
        text = f"ssl://localhost:{port}/bootstrap: SSL handshake failed: certificate verify failed"
        reporter.error(KafkaError(KafkaError._SSL, text))
    (line,) = said
    assert line.startswith(f"WARN Connection to localhost:{port} could not be established: ")
    assert "Hostname mismatch" in line
