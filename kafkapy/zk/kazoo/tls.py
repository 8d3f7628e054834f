"""The TLS context of a ZooKeeper client, from its stores."""

from __future__ import annotations

import ssl
from typing import Final

from kafkapy.common.errors import ConfigError
from kafkapy.security.tls.stores import allow_sha1, load_identity, load_trust
from kafkapy.zk.kazoo.client_config import TlsConfig

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def ssl_context(config: TlsConfig) -> ssl.SSLContext:
    """TLS by `zookeeper.ssl.*`; without a truststore the system's authorities are trusted.

    Raises:
        ConfigError: a store is unreadable or has nothing usable, or a cipher is unknown.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    allow_sha1(context, config.stores)
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
    if not load_trust(context, config.stores):
        context.load_default_certs()
    load_identity(context, config.stores)
    return context
