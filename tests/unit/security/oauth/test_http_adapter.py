"""Fetching, from a real server on loopback and from files."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from kafkapy.security.oauth import http_adapter
from kafkapy.security.oauth.http_adapter import fetch
from kafkapy.security.oauth.http_request import FetchFailed, HttpRequest
from tests.harness.processes.broker_process import free_port
from tests.harness.security.certificates import can_make, make_identity


class Handler(BaseHTTPRequestHandler):
    """Answers by the path: /status/<code>, /to/<path> (a redirect), /at/<URL> (one to another
    server), /slow (a byte at a time, for ever), else what was asked."""

    def do_GET(self) -> None:
        self._answer("GET", b"")

    def do_POST(self) -> None:
        self._answer("POST", self.rfile.read(int(self.headers["Content-Length"])))

    def _answer(self, method: str, body: bytes) -> None:
        kind, _, rest = self.path[1:].partition("/")
        self.send_response(int(rest) if kind == "status" else 302 if kind in ("to", "at") else 200)
        if kind in ("to", "at"):
            self.send_header("Location", f"/{rest}" if kind == "to" else rest)
        if kind == "slow":
            self.end_headers()
            try:
                while True:
                    self.wfile.write(b"x")
            except OSError:
                return
        said = b" ".join([method.encode(), self.headers.get("X-Own", "").encode(), body])
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_what_is_asked_for_comes(url: str) -> None:
    assert fetch(HttpRequest(f"{url}/echo", (("X-Own", "a"),))) == b"GET a "
    assert fetch(HttpRequest(f"{url}/echo", (("X-Own", "a"),), b"body")) == b"POST a body"
    assert fetch(HttpRequest(f"{url}/to/echo")) == b"GET  "


def test_a_file(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_bytes(b"content")
    assert fetch(HttpRequest(file.as_uri())) == b"content"
    with pytest.raises(FetchFailed, match=r"missing: .*No such file") as failed:
        fetch(HttpRequest((tmp_path / "missing").as_uri()))
    assert failed.value.is_final


def test_credentials_go_nowhere_else(url: str) -> None:
    with pytest.raises(FetchFailed, match="HTTP 302"):
        fetch(HttpRequest(f"{url}/to/echo", (("Authorization", "Basic x"),), b"body"))


@pytest.mark.parametrize(
    ("status", "is_final"),
    [(400, True), (401, True), (404, True), (501, True), (408, False), (429, False), (503, False)],
)
def test_refusals(url: str, status: int, is_final: bool) -> None:
    with pytest.raises(FetchFailed) as failed:
        fetch(HttpRequest(f"{url}/status/{status}"))
    assert str(failed.value).startswith(f"{url}/status/{status}: HTTP {status}")
    assert failed.value.is_final is is_final


def test_nobody_there() -> None:
    with pytest.raises(FetchFailed, match="Connection refused") as failed:
        fetch(HttpRequest(f"http://127.0.0.1:{free_port()}/"))
    assert not failed.value.is_final


def test_an_answer_that_does_not_end(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_adapter, "ANSWER_BYTES_MAX", 3)
    with pytest.raises(FetchFailed, match="more than 3 bytes"):
        fetch(HttpRequest(f"{url}/echo"))


def test_a_server_that_a_store_vouches_for(url: str, tmp_path: Path) -> None:
    if not can_make("HTTPS to an issuer"):
        return
    plain = url
    identity = make_identity(tmp_path, "issuer")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(identity)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        url = f"https://localhost:{server.server_address[1]}/echo"
        store = ("ssl.truststore.location", str(identity.with_suffix(".crt")))
        tls = (("ssl.truststore.type", "PEM"), store)
        assert fetch(HttpRequest(url, tls=tls)) == b"GET  "
        with pytest.raises(FetchFailed, match="HTTP 302"):
            fetch(HttpRequest(url.replace("/echo", f"/at/{plain}/echo"), tls=tls))
        with pytest.raises(FetchFailed, match="CERTIFICATE_VERIFY_FAILED"):
            fetch(HttpRequest(url))
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_server_that_is_not_trusted(url: str) -> None:
    with pytest.raises(FetchFailed, match="SSL"):
        fetch(HttpRequest(f"{url.replace('http:', 'https:')}/echo"))


def test_a_redirect_goes_to_no_other_scheme(url: str, tmp_path: Path) -> None:
    for target in ("https://localhost:1/", tmp_path.as_uri(), "ftp://localhost/"):
        with pytest.raises(FetchFailed, match="HTTP 302"):
            fetch(HttpRequest(f"{url}/at/{target}"))


def test_redirects_end(url: str) -> None:
    way = "/to" * http_adapter.REDIRECTS_MAX
    assert fetch(HttpRequest(f"{url}{way}/echo")) == b"GET  "
    with pytest.raises(FetchFailed, match="HTTP 302"):
        fetch(HttpRequest(f"{url}{way}/to/echo"))


def test_an_answer_that_comes_too_slowly(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_adapter, "TOTAL_LIMIT_S", 0.0)
    with pytest.raises(FetchFailed, match="not complete after 0 s"):
        fetch(HttpRequest(f"{url}/slow"))
