"""The TLS context of a ZooKeeper client, from PEM stores."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from functools import partial
from typing import Final

from kafkapy.common.errors import ConfigError
from kafkapy.zk.client_config import TlsConfig

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def ssl_context(config: TlsConfig) -> ssl.SSLContext:
    """What `zookeeper.ssl.*` describes; without a truststore the system's authorities are trusted.

    Raises:
        ConfigError: a store cannot be read or holds nothing usable, or a cipher is unknown.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = config.verify_host
    versions = [_VERSIONS[name] for name in config.versions]
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    if config.check_revocation:
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_CHAIN
    if config.ciphers:
        try:
            context.set_ciphers(":".join(config.ciphers))
        except ssl.SSLError:
            raise ConfigError(
                f"zookeeper.ssl.cipher.suites={','.join(config.ciphers)} has no cipher that is"
                " known here; write OpenSSL's names"
            ) from None
    if config.truststore is None:
        context.load_default_certs()
    else:
        _load("truststore", config.truststore, context.load_verify_locations)
    if config.keystore is not None:
        # "" and not None: without a password OpenSSL would ask the terminal for one.
        load = partial(context.load_cert_chain, password=config.keystore_password or "")
        _load("keystore", config.keystore, load)
    return context


def _load(store: str, location: str, load: Callable[[str], None]) -> None:
    try:
        load(location)
    except OSError as error:
        raise ConfigError(
            f"zookeeper.ssl.{store}.location={location} cannot be used: {error.strerror or error}"
        ) from error
