"""Security contexts with scripted tokens, for tests without Kerberos."""

from __future__ import annotations

from collections.abc import Iterator

from kafkapy.security.kerberos.gss_context import GssFailed


class ScriptedContext:
    """Answers each token of `script` with its answer, and is established with the last."""

    def __init__(self, *script: tuple[bytes, bytes], initiator: str = "alice@R") -> None:
        self.initiator = initiator
        self.is_established = False
        self._script: Iterator[tuple[bytes, bytes]] = iter(script)
        self._left = len(script)

    def step(self, token: bytes) -> bytes:
        expected, answer = next(self._script)
        if token != expected:
            raise GssFailed(f"{token!r} is no token")
        self._left -= 1
        self.is_established = self._left == 0
        return answer

    @staticmethod
    def wrap(message: bytes) -> bytes:
        return b"wrapped " + message

    @staticmethod
    def unwrap(token: bytes) -> bytes:
        if not token.startswith(b"wrapped "):
            raise GssFailed("A token had an invalid signature")
        return token.removeprefix(b"wrapped ")
