"""TLS of a listener at run time: its stores are read again when their configs or files have
changed, for later connections (KIP-226, `SslFactory`).

A change must not add a truststore. The certificate must keep its subject and its alternative names,
unless `ssl.allow.dn.changes` or `ssl.allow.san.changes` allows a change (KIP-978). Between brokers,
the new and the old stores must accept each other, since brokers change their stores one after the
other.
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
    """Settings from the stores. `given` and `modified_ns` show whether they have changed since."""

    given: Mapping[str, str]
    modified_ns: Mapping[str, int]
    accepting: ssl.SSLContext
    certificate: bytes
    connecting: ssl.SSLContext | None
    rehearsing: ssl.SSLContext | None
    """`connecting` without the check of the host name."""


class ListenerTls:
    """The contexts of one TLS listener. Fixed: the listener, its properties at the start, whether
    clients present certificates, and whether this broker connects to this listener of other brokers
    (`connects`)."""

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
        """The current TLS context for accepted connections."""
        return self._stores.accepting

    def connecting(self) -> ssl.SSLContext:
        """The current TLS context for connections to other brokers."""
        assert self._stores.connecting is not None, self._listener
        return self._stores.connecting

    def renewed(self, configs: Mapping[str, str], *, compared: bool = True) -> Stores | None:
        """The stores of the broker's configs; None if neither the configs nor the files have
        changed. With `compared`, the stores must be a permitted change of the current ones.

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
        """Use the stores that `renewed` returned for new connections."""
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
        modified_ns = _modified_ns(given)  # before they are read, so that later changes are found
        accepting = server_context(properties, self._client_auth)
        connecting = rehearsing = None
        if self._connects:
            connecting = client_context(properties)
            key = f"{properties.prefixes[0]}{_HOST_CHECK}"
            anywhere = properties._replace(properties={**properties.properties, key: ""})
            rehearsing = client_context(anywhere)
        try:
            certificate = certificate_of(accepting)
        except ssl.SSLError as error:  # for example, the cipher suites do not allow the key
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
    """The modification times of the stores' files. A missing file counts as unchanged, as in
    Kafka."""
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
