"""Adapter of the Kerberos library `gssapi` (MIT's or Heimdal's).

An acceptor reads the keytab at every login, so that new keys take effect at once, and sends no
requests. An initiator without a ticket sends a request to the KDC, and blocks. The tickets of a
keytab are kept in memory for the whole process, and renewed after half of their lifetime.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from kafkapy.common.errors import ConfigError
from kafkapy.security.kerberos.gss_context import GssContext, GssFailed
from kafkapy.security.kerberos.login import KerberosLogin

# One thread at a time obtains tickets into memory.
_TICKET_LOCK: Final = threading.Lock()


def check_library(key: str) -> None:
    """Check that the library, which `key` requires, is installed. Raises ConfigError."""
    try:
        import gssapi  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            f"{key} needs the package gssapi: pip install gssapi, which needs a C"
            f" compiler and libkrb5-dev ({error})"
        ) from None


def default_realm() -> str:
    """The realm of krb5.conf, or empty."""
    import gssapi

    try:
        name = gssapi.Name("nobody", gssapi.NameType.kerberos_principal)
        return str(name.canonicalize(gssapi.MechType.kerberos)).rpartition("@")[2]
    except gssapi.exceptions.GSSError:
        return ""


class Acceptor:
    """The key of a service, in a keytab."""

    def __init__(self, login: KerberosLogin) -> None:
        """Raises GssFailed: the keytab has no such key."""
        import gssapi

        with _convert_errors(f"No key of {login.principal} in {_keytab(login)}"):
            self._credentials = gssapi.Credentials(
                name=gssapi.Name(login.principal, gssapi.NameType.kerberos_principal),
                mechs=[gssapi.MechType.kerberos],
                usage="accept",
                store={"keytab": login.keytab} if login.keytab else None,
            )

    def begin(self) -> GssContext:
        """Begin the login of one client."""
        import gssapi

        return _Context(gssapi.SecurityContext(creds=self._credentials, usage="accept"))


class Initiator:
    """Begins a client's logins, with tickets."""

    def __init__(self, login: KerberosLogin) -> None:
        """Raises ConfigError: the library is not installed."""
        check_library(f"{login.key} for GSSAPI")
        self._login = login

    def begin(self, host: str) -> GssContext:
        """Begin a login at a broker, `service/host`. Its first step may block, too.

        Raises:
            GssFailed: no ticket can be obtained.
        """
        import gssapi

        with _TICKET_LOCK:
            credentials = self._credentials()
        flags = gssapi.RequirementFlag
        service = f"{self._login.service}@{host}"
        with _convert_errors(f"No Kerberos name of {service}"):
            context = gssapi.SecurityContext(
                name=gssapi.Name(service, gssapi.NameType.hostbased_service),
                creds=credentials,
                mech=gssapi.MechType.kerberos,
                flags=flags.mutual_authentication | flags.integrity,
                usage="initiate",
            )
        return _InitiatorContext(context, f"No Kerberos ticket for {self._login.service}/{host}")

    def check(self) -> None:
        """Get the first ticket, which all logins need. Raises GssFailed."""
        with _TICKET_LOCK:
            self._credentials()

    def _credentials(self) -> Any:
        login = self._login
        if login.ticket_cache is not None:
            cache = login.ticket_cache
            try:
                return self._acquire(
                    {"ccache": cache} if cache else None,
                    f"the ticket cache{f' {cache}' if cache else ''}, which kinit fills",
                )
            except GssFailed:
                if login.keytab is None:
                    raise
        store = {"ccache": f"MEMORY:kafkapy:{login.principal}:{login.keytab}"}
        if login.keytab:
            store["client_keytab"] = login.keytab
        try:
            return self._acquire(store, _keytab(login))
        except GssFailed:
            Acceptor(login)  # has a better message if the keytab is missing or has no key
            raise

    def _acquire(self, store: dict[str, str] | None, source: str) -> Any:
        import gssapi

        principal = self._login.principal
        with _convert_errors(
            f"No Kerberos login{f' of {principal}' if principal else ''} by {source}"
        ):
            name = gssapi.Name(principal, gssapi.NameType.kerberos_principal) if principal else None
            return gssapi.Credentials(
                name=name, mechs=[gssapi.MechType.kerberos], usage="initiate", store=store
            )


class _Context:
    """A GssContext with the library's security context."""

    def __init__(self, context: Any, problem: str = "Kerberos") -> None:
        # By default, if a failed step has a token for the peer, the next call raises the error.
        context.__DEFER_STEP_ERRORS__ = False
        self._context = context
        self._problem = problem

    @property
    def is_established(self) -> bool:
        return bool(self._context.complete)

    @property
    def initiator(self) -> str:
        with _convert_errors(self._problem):
            return str(self._context.initiator_name)

    def step(self, token: bytes) -> bytes:
        with _convert_errors(self._problem):
            answer: bytes | None = self._context.step(token or None)
            return answer or b""

    def wrap(self, message: bytes) -> bytes:
        with _convert_errors(self._problem):
            return bytes(self._context.wrap(message, False).message)

    def unwrap(self, token: bytes) -> bytes:
        with _convert_errors(self._problem):
            return bytes(self._context.unwrap(token).message)


class _InitiatorContext(_Context):
    """The context of a client."""

    def step(self, token: bytes) -> bytes:
        if token:
            return super().step(token)
        with _TICKET_LOCK:  # the first step obtains a ticket for the service
            return super().step(token)


def _keytab(login: KerberosLogin) -> str:
    return f"keytab {login.keytab}" if login.keytab else "the default keytab"


@contextmanager
def _convert_errors(problem: str) -> Iterator[None]:
    """Convert the library's errors to GssFailed, with one line of text."""
    import gssapi

    try:
        yield
    except gssapi.exceptions.GSSError as error:
        raise GssFailed(f"{problem}: {_reason(error)}") from None


def _reason(error: Any) -> str:
    """The message of Kerberos, or of GSS-API if Kerberos has none."""
    codes = (error.min_code, False) if error.min_code else (error.maj_code, True)
    return " ".join("; ".join(error.get_all_statuses(*codes)).split())
