"""TLS contexts of both sides for tests in one process, from throw-away identities."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import NamedTuple, Self

from kafkapy.common.prefixed_properties import PrefixedProperties
from kafkapy.security.tls.stores import client_context, server_context
from tests.harness.security.certificates import make_identity


class TlsContexts(NamedTuple):
    """`broker` accepts; `client` trusts it and has a certificate; `stranger` has none."""

    broker: ssl.SSLContext
    client: ssl.SSLContext
    stranger: ssl.SSLContext

    @classmethod
    def make(cls, directory: Path, client_auth: str = "none") -> Self:
        """New identities in `directory`, `broker` and `client`."""
        broker, client = make_identity(directory, "broker"), make_identity(directory, "client")

        def properties(own: Path | None, peer: Path) -> PrefixedProperties:
            given = {"ssl.truststore.location": str(peer.with_suffix(".crt"))}
            if own is not None:
                given["ssl.keystore.location"] = str(own)
            return PrefixedProperties(given)

        return cls(
            server_context(properties(broker, client), client_auth),
            client_context(properties(client, broker)),
            client_context(properties(None, broker)),
        )
