"""TLS of a listener while the broker runs: its stores are read again when a config says so or their
files have changed, for connections that begin later (KIP-226, `SslFactory`).

What must stay: that there are these stores, and who the certificate is for, unless
`ssl.allow.dn.changes` or `ssl.allow.san.changes` says otherwise (KIP-978). Between brokers the new
stores and the old ones must accept each other, for brokers change theirs one after the other.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from kafkapy.common.errors import ConfigError
from kafkapy.common.prefixed_properties import PrefixedProperties, of_listener
from kafkapy.metadata.dynamic_broker_configs import TLS_STORES
from kafkapy.security.tls.distinguished_name import alternative_names_of, subject_of
from kafkapy.security.tls.stores import client_context, server_context
from kafkapy.server.config.listeners import Listener
from kafkapy.server.security.tls_check import certificate_of, check_handshake

logger = logging.getLogger("kafka.network.SocketServer")

_LOCATIONS: Final = ("ssl.keystore.location", "ssl.truststore.location")
_TRUSTED: Final = ("ssl.truststore.location", "ssl.truststore.certificates")
_HOST_CHECK: Final = "ssl.endpoint.identification.algorithm"


class Stores(NamedTuple):
    """Settings from the stores. `given` and `modified_ns` tell whether they have changed since."""

    given: Mapping[str, str]
    modified_ns: Mapping[str, int]
    accepting: ssl.SSLContext
    certificate: bytes
    connecting: ssl.SSLContext | None
    rehearsing: ssl.SSLContext | None
    """`connecting` without a look at the host's name."""


class ListenerTls:
    """The contexts of one TLS listener. Fixed: the listener, its properties at the start, whether
    clients show certificates, and whether this broker connects to its like (`connects`)."""

    def __init__(
        self,
        listener: Listener,
        properties: Mapping[str, str],
        client_auth: str = "none",
        connects: bool = False,
    ) -> None:
        """Read the stores.

        Raises:
            ConfigError: names the property and what is wrong with it.
        """
        self._listener = listener
        self._properties = properties
        self._client_auth = client_auth
        self._connects = connects
        self._stores = self._read(of_listener(properties, listener.name))

    def accepting(self) -> ssl.SSLContext:
        """The TLS context to accept with from now on."""
        return self._stores.accepting

    def connecting(self) -> ssl.SSLContext:
        """The TLS context to connect to other brokers with from now on."""
        assert self._stores.connecting is not None, self._listener
        return self._stores.connecting

    def renewed(self, configs: Mapping[str, str], *, compared: bool = True) -> Stores | None:
        """The stores by the broker's configs; None if these say what they said, and the files are
        what they were. `compared`: with those in force, which may not be left for any others.

        Raises:
            ConfigError: names the listener, the property and the file, and what is wrong.
        """
        prefix = f"listener.name.{self._listener.name.lower()}."
        keys = {f"{prefix}{name}" for name in TLS_STORES}.intersection(configs)
        own = {key: configs[key] for key in keys}
        properties = of_listener({**self._properties, **own}, self._listener.name)
        if not self._has_changed(properties):
            return None
        try:
            new = self._read(properties)
            if compared:
                self._check_kept(new, properties)
                self._check_trust(new)
        except ConfigError as error:
            name, protocol = self._listener.name, self._listener.security_protocol
            raise ConfigError(f"listener {name} ({protocol}): {error}") from error
        return new

    def replace(self, stores: Stores) -> None:
        """Begin to use what `renewed` gave."""
        self._stores = stores
        logger.info(
            "Listener %s: connections from now on use the stores as they are now, with the"
            " certificate of %s",
            self._listener.name,
            subject_of(stores.certificate),
        )

    def _has_changed(self, properties: PrefixedProperties) -> bool:
        old, given = self._stores, _given(properties)
        files = _modified_ns(given)
        return given != old.given or any(old.modified_ns.get(p) != at for p, at in files.items())

    def _read(self, properties: PrefixedProperties) -> Stores:
        given = _given(properties)
        modified_ns = _modified_ns(given)  # before they are read: what comes later is a change
        accepting = server_context(properties, self._client_auth)
        connecting = rehearsing = None
        if self._connects:
            connecting = client_context(properties)
            key = f"{properties.prefixes[0]}{_HOST_CHECK}"
            anywhere = properties._replace(properties={**properties.properties, key: ""})
            rehearsing = client_context(anywhere)
        try:
            certificate = certificate_of(accepting)
        except ssl.SSLError as error:  # its key is none for the cipher suites, for example
            source, reason = _source(properties, "keystore"), error.reason or str(error)
            raise ConfigError(f"{source}: no client could shake hands ({reason})") from error
        return Stores(given, modified_ns, accepting, certificate, connecting, rehearsing)

    def _check_kept(self, new: Stores, properties: PrefixedProperties) -> None:
        old = self._stores
        source = _source(properties, "keystore")
        was, now = subject_of(old.certificate), subject_of(new.certificate)
        if was.casefold() != now.casefold() and not _allows(properties, "ssl.allow.dn.changes"):
            raise ConfigError(
                f"{source} is a certificate of {now}, and not of {was}; set"
                " ssl.allow.dn.changes=true in server.properties to allow that"
            )
        lost = alternative_names_of(old.certificate) - alternative_names_of(new.certificate)
        if lost and not _allows(properties, "ssl.allow.san.changes"):
            raise ConfigError(
                f"{source}: the certificate is not for {', '.join(sorted(lost))} any more; set"
                " ssl.allow.san.changes=true in server.properties to allow that"
            )
        if _trusts(new) and not _trusts(old):
            raise ConfigError(
                f"{_source(properties, 'truststore')} cannot be added to a listener that began"
                " without a truststore"
            )

    def _check_trust(self, new: Stores) -> None:
        old = self._stores
        if new.rehearsing is None or old.rehearsing is None:
            return
        for connecting, accepting, one, other in (
            (old.rehearsing, new.accepting, "the stores in force", "the new"),
            (new.rehearsing, old.accepting, "the new stores", "those in force"),
        ):
            try:
                check_handshake(connecting, accepting)
            except ssl.SSLError as error:
                reason = error.reason or str(error)
                raise ConfigError(
                    f"a broker with {one} could not connect to one with {other} ({reason})"
                ) from error


def _given(properties: PrefixedProperties) -> dict[str, str]:
    """The properties of the stores, by their bare names."""
    found = {name: properties.get(name) for name in TLS_STORES}
    return {name: text for name, text in found.items() if text is not None}


def _modified_ns(given: Mapping[str, str]) -> dict[str, int]:
    """When the stores' files were changed last; one that is not there has not been, as in Kafka."""
    paths = [Path(given[name]) for name in _LOCATIONS if name in given]
    return {str(path): path.stat().st_mtime_ns for path in paths if path.exists()}


def _allows(properties: PrefixedProperties, key: str) -> bool:
    return properties.text(key, "false").lower() == "true"


def _trusts(stores: Stores) -> bool:
    return any(name in stores.given for name in _TRUSTED)


def _source(properties: PrefixedProperties, store: str) -> str:
    """The property that names a store, with its file."""
    name = f"ssl.{store}.location"
    location = properties.get(name)
    return f"ssl.{store}" if location is None else f"{properties.key(name)}={location}"
