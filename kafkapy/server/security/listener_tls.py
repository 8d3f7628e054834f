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
    """Settings from the stores. `properties` and `modified_ns` show whether they have changed
    since."""

    properties: Mapping[str, str]
    modified_ns: Mapping[str, int]
    accept_context: ssl.SSLContext
    certificate: bytes
    connect_context: ssl.SSLContext | None
    unchecked_connect_context: ssl.SSLContext | None
    """`connect_context` without the check of the host name."""


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

    def accept_context(self) -> ssl.SSLContext:
        """The current TLS context for accepted connections."""
        return self._stores.accept_context

    def connect_context(self) -> ssl.SSLContext:
        """The current TLS context for connections to other brokers."""
        assert self._stores.connect_context is not None, self._listener
        return self._stores.connect_context

    def read_if_changed(self, configs: Mapping[str, str], *, check: bool = True) -> Stores | None:
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
            if check:
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
        old, settings = self._stores, _store_settings(properties)
        files = _modified_ns(settings)
        return settings != old.properties or any(
            old.modified_ns.get(p) != at for p, at in files.items()
        )

    def _read(self, properties: PrefixedProperties) -> Stores:
        settings = _store_settings(properties)
        # Before they are read, so that later changes are found.
        modified_ns = _modified_ns(settings)
        accept_context = server_context(properties, self._client_auth)
        connect_context = unchecked_connect_context = None
        if self._connects:
            connect_context = client_context(properties)
            key = f"{properties.prefixes[0]}{_HOST_CHECK}"
            without_host_check = properties._replace(properties={**properties.properties, key: ""})
            unchecked_connect_context = client_context(without_host_check)
        try:
            certificate = certificate_of(accept_context)
        except ssl.SSLError as error:  # for example, the cipher suites do not allow the key
            source, reason = _source(properties, "keystore"), error.reason or str(error)
            raise ConfigError(f"{source}: no client could shake hands ({reason})") from error
        return Stores(
            settings,
            modified_ns,
            accept_context,
            certificate,
            connect_context,
            unchecked_connect_context,
        )

    def _check_kept(self, new: Stores, properties: PrefixedProperties) -> None:
        old = self._stores
        source = _source(properties, "keystore")
        old_subject, new_subject = subject_of(old.certificate), subject_of(new.certificate)
        if old_subject.casefold() != new_subject.casefold() and not _allows(
            properties, "ssl.allow.dn.changes"
        ):
            raise ConfigError(
                f"{source} is a certificate of {new_subject}, and not of {old_subject}; set"
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
        if new.unchecked_connect_context is None or old.unchecked_connect_context is None:
            return
        for connect_context, accept_context, one, other in (
            (old.unchecked_connect_context, new.accept_context, "the stores in force", "the new"),
            (new.unchecked_connect_context, old.accept_context, "the new stores", "those in force"),
        ):
            try:
                check_handshake(connect_context, accept_context)
            except ssl.SSLError as error:
                reason = error.reason or str(error)
                raise ConfigError(
                    f"a broker with {one} could not connect to one with {other} ({reason})"
                ) from error


def _store_settings(properties: PrefixedProperties) -> dict[str, str]:
    """The properties of the stores, by their bare names."""
    found = {name: properties.get(name) for name in TLS_STORES}
    return {name: text for name, text in found.items() if text is not None}


def _modified_ns(settings: Mapping[str, str]) -> dict[str, int]:
    """The modification times of the stores' files. A missing file counts as unchanged, as in
    Kafka."""
    paths = [Path(settings[name]) for name in _LOCATIONS if name in settings]
    return {str(path): path.stat().st_mtime_ns for path in paths if path.exists()}


def _allows(properties: PrefixedProperties, key: str) -> bool:
    return properties.text(key, "false").lower() == "true"


def _trusts(stores: Stores) -> bool:
    return any(name in stores.properties for name in _TRUSTED)


def _source(properties: PrefixedProperties, store: str) -> str:
    """The property that names a store, with its file."""
    name = f"ssl.{store}.location"
    location = properties.get(name)
    return f"ssl.{store}" if location is None else f"{properties.key(name)}={location}"
