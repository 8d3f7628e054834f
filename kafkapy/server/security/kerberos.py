"""SASL/GSSAPI of a broker: the key with which its listeners authenticate Kerberos clients, and its
own tickets for other brokers.

A client's login needs only the keytab and processor time, and no request to the KDC, so it runs on
the event loop. This broker's own login may need a request to the KDC, so it begins in a thread
(`sasl_link`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from kafkapy.common.errors import ConfigError
from kafkapy.security.kerberos.client import gssapi_conversation
from kafkapy.security.kerberos.gss_context import GssFailed
from kafkapy.security.kerberos.login import kerberos_login, keytab_login
from kafkapy.security.kerberos.names import RULES, LocalNames
from kafkapy.security.kerberos.server import GssapiServer

if TYPE_CHECKING:
    from kafkapy.common.prefixed_properties import PrefixedProperties
    from kafkapy.security.kerberos.gss_library import Acceptor, Initiator
    from kafkapy.security.sasl.client import Conversation
    from kafkapy.security.sasl.server import SaslServer


def server_factory(properties: PrefixedProperties) -> Callable[[], SaslServer]:
    """A factory of logins at a listener, from its properties for GSSAPI.

    Raises:
        ConfigError: names the property and what is wrong with it.
    """
    login = keytab_login(properties)
    # Imported only when needed: most brokers have no Kerberos.
    from kafkapy.security.kerberos.gss_library import Acceptor, check_library, default_realm

    check_library(f"{login.key} for GSSAPI")
    rules = properties.items(RULES, "DEFAULT")
    names = LocalNames(rules, default_realm(), properties.key(RULES))
    try:
        acceptor = Acceptor(login)
    except GssFailed as failed:
        raise ConfigError(f"{login.key}: {failed}") from failed
    return partial(_begin, acceptor, names)


def _begin(acceptor: Acceptor, names: LocalNames) -> SaslServer:
    return GssapiServer(acceptor.begin(), names.name_of)


class OwnLogin:
    """This broker's login with other brokers. Blocking calls belong in its `thread`."""

    def __init__(self, properties: PrefixedProperties) -> None:
        """Raises ConfigError: names the property and what is wrong with it."""
        from concurrent.futures import ThreadPoolExecutor

        from kafkapy.security.kerberos.gss_library import Initiator

        login = kerberos_login(properties)
        # A separate thread: if the KDC does not respond, no other work waits for it.
        self.thread = ThreadPoolExecutor(1, "kafkapy-kerberos")
        self._key = login.key
        self._initiator: Initiator = Initiator(login)

    def begin(self, host: str) -> Conversation:
        """A login with the broker at a host. Its first message may block."""
        return gssapi_conversation(partial(self._initiator.begin, host))

    def check(self) -> None:
        """Request a ticket, and block. Raises ConfigError if the request fails."""
        try:
            self._initiator.check()
        except GssFailed as failed:
            raise ConfigError(f"{self._key}: {failed}") from failed
