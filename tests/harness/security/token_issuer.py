"""An issuer of bearer tokens: an HTTP server in a thread of the test.

It serves a key set and, for client credentials, tokens that one of its keys signed. `Signer.sign`
and `hmac_by_public_key` make invalid tokens too.
"""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs

import jwt
import orjson
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

CLIENT_ID, CLIENT_SECRET = "alice", "secret of alice"
ISSUER, AUDIENCE = "https://issuer.example", "kafka"


def rsa_key(bits: int = 2048) -> Any:
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


def public_jwk(key: Any, key_id: str, **more: Any) -> dict[str, Any]:
    """The public half of a key of RSA or of P-256, as a key set has it."""
    if isinstance(key, ec.EllipticCurvePrivateKey):
        numbers = key.public_key().public_numbers()
        fields = {"kty": "EC", "crv": "P-256", "x": _b64(numbers.x, 32), "y": _b64(numbers.y, 32)}
    else:
        public = key.public_key().public_numbers()
        fields = {"kty": "RSA", "n": _b64(public.n), "e": _b64(public.e)}
    return {**fields, "kid": key_id, "use": "sig", **more}


def public_pem(key: Any) -> bytes:
    pem: bytes = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return pem


def _b64(number: int, size: int = 0) -> str:
    data = number.to_bytes(size or (number.bit_length() + 7) // 8, "big")
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def claims(subject: str = CLIENT_ID, lifetime_s: int = 3600, **more: Any) -> dict[str, Any]:
    """Claims that are valid now; a claim that is None is left out."""
    now_s = int(time.time())
    whole = {
        "sub": subject,
        "iat": now_s,
        "exp": now_s + lifetime_s,
        "iss": ISSUER,
        "aud": AUDIENCE,
        **more,
    }
    return {name: value for name, value in whole.items() if value is not None}


class Signer:
    """Keys, and the tokens that they sign. `keys` may be changed: the last key signs."""

    def __init__(self) -> None:
        self.keys: list[tuple[str, Any]] = [("first", rsa_key())]

    def rotate(self, key_id: str) -> None:
        """Replace the keys by a new one, which signs from now on."""
        self.keys = [(key_id, rsa_key())]

    def key_set(self) -> dict[str, Any]:
        return {"keys": [public_jwk(key, key_id) for key_id, key in self.keys]}

    def sign(self, content: Mapping[str, Any] | None = None, **headers: Any) -> str:
        """A token that the last key signed."""
        key_id, key = self.keys[-1]
        content = claims() if content is None else content
        return jwt.encode(dict(content), key, "RS256", headers={"kid": key_id, **headers})


class Issuer(Signer):
    """A server of a signer's keys, and of tokens; a context manager."""

    def __init__(self) -> None:
        super().__init__()
        self.lifetime_s = 3600
        self.answers = threading.Event()  # cleared: requests for keys wait
        self.answers.set()
        self.status = 200
        self.requests: list[tuple[str, Mapping[str, str], str]] = []  # path, headers, body
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.requests.append((self.path, dict(self.headers), ""))
                issuer.answers.wait()
                self._answer(issuer.status, issuer.key_set())

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                issuer.requests.append((self.path, dict(self.headers), body))
                self._answer(*issuer.grant(self.headers.get("Authorization", ""), body))

            def _answer(self, status: int, content: Any) -> None:
                data = orjson.dumps(content)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                """Log nothing: the tests check `requests`."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def jwks_url(self) -> str:
        return f"{self.url}/jwks"

    @property
    def token_url(self) -> str:
        return f"{self.url}/token"

    def grant(self, authorization: str, body: str) -> tuple[int, dict[str, Any]]:
        """Status and content of the answer to a request for a token."""
        expected = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        if authorization != f"Basic {expected}":
            return 401, {"error": "invalid_client"}
        form = parse_qs(body)
        if form.get("grant_type") != ["client_credentials"]:
            return 400, {"error": "unsupported_grant_type"}
        if self.status != 200:
            return self.status, {"error": "server_error"}
        scope = form.get("scope", [""])[0].split()
        content = claims(lifetime_s=self.lifetime_s, scope=scope or None)
        return 200, {"access_token": self.sign(content), "expires_in": self.lifetime_s}


def hmac_by_public_key(issuer: Signer) -> str:
    """A forged token: an HMAC whose secret is the public RSA key."""
    import hashlib
    import hmac

    key_id, key = issuer.keys[-1]
    head = {"alg": "HS256", "typ": "JWT", "kid": key_id}
    text = ".".join(
        base64.urlsafe_b64encode(orjson.dumps(part)).rstrip(b"=").decode()
        for part in (head, claims())
    )
    signature = hmac.new(public_pem(key), text.encode(), hashlib.sha256).digest()
    return f"{text}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"
