"""A Kerberos realm of a test's own: MIT's KDC on a loopback port, principals, keytabs and tickets.

with KerberosRealm(directory) as realm:  # for processes started meanwhile, Java included
    broker_keytab = realm.keytab("kafka/localhost")
"""

from __future__ import annotations

import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pytest

from dev.fetch_peers import kerberos_program
from kafkapy.security.kerberos.login import MODULE
from tests.harness.processes.broker_process import ServerProcess, free_port

NAME: Final = "KAFKAPY.TEST"
SERVICE: Final = "kafka/localhost"
_LIMIT_S: Final = 60

_CLIENTS = """[libdefaults]
    default_realm = {name}
    dns_lookup_kdc = false
    dns_lookup_realm = false
    dns_canonicalize_hostname = false
    rdns = false
    qualify_shortname = ""
    udp_preference_limit = 1
    clockskew = 2
    default_ccache_name = FILE:{directory}/no-tickets
[realms]
    {name} = {{
        kdc = 127.0.0.1:{port}
    }}
"""
_SERVER = """[kdcdefaults]
    kdc_listen = ""
    kdc_tcp_listen = 127.0.0.1:{port}
[realms]
    {name} = {{
        database_name = {directory}/principals
        key_stash_file = {directory}/stash
        acl_file = {directory}/acl
        max_life = 1h
    }}
[logging]
    default = FILE:{directory}/kdc.log
"""


def program(name: str) -> str:
    """The path of a program of Kerberos."""
    found = kerberos_program(name)
    assert found is not None, f"{name} is not installed"
    return found


class _Kdc(ServerProcess):
    def answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=5):
                return True
        except OSError:
            return False


class KerberosRealm:
    """A realm. Inside its context, this process and the processes that it starts are clients."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        port = free_port()
        self.config = directory / "krb5.conf"
        words = {"name": NAME, "directory": directory, "port": port}
        self.config.write_text(_CLIENTS.format(**words))
        (directory / "kdc.conf").write_text(_SERVER.format(**words))
        (directory / "acl").write_text("")
        command = [program("krb5kdc"), "-n"]
        self._kdc = _Kdc(command, port, directory / "kdc.out", "MIT's KDC")
        self._undo = ExitStack()

    def __enter__(self) -> Self:
        patch = pytest.MonkeyPatch()
        self._undo.callback(patch.undo)
        patch.setenv("KRB5_CONFIG", str(self.config))
        patch.setenv("KRB5_KDC_PROFILE", str(self.directory / "kdc.conf"))
        patch.setenv("KRB5RCACHEDIR", str(self.directory))
        patch.delenv("KRB5CCNAME", raising=False)
        patch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.krb5.conf={self.config}")
        _run([program("kdb5_util"), "create", "-s", "-P", "master"])
        self._kdc.start()
        self._undo.callback(self._kdc.stop)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._undo.close()

    def keytab(self, principal: str, *options: str) -> Path:
        """A new principal's key. `options` are those of addprinc, as `-maxlife 5sec`."""
        path = self.directory / f"{principal.replace('/', '-')}.keytab"
        self.administer(
            f"addprinc {' '.join(options)} -randkey {principal}", f"ktadd -k {path} {principal}"
        )
        assert path.exists(), f"no key of {principal}"
        return path

    def administer(self, *commands: str) -> str:
        """Run commands of kadmin.local. Returns its output."""
        return _run([program("kadmin.local")], "\n".join([*commands, ""]))

    def tickets(self, principal: str, keytab: Path, *options: str) -> Path:
        """A ticket cache, filled by kinit."""
        cache = self.directory / f"{principal}{''.join(options)}.tickets"
        _run([program("kinit"), *options, "-k", "-t", str(keytab), "-c", str(cache), principal])
        return cache


def _run(command: list[str], stdin: str = "") -> str:
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=_LIMIT_S)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def line(keytab: Path, principal: str) -> str:
    """The JAAS line for a keytab."""
    return (
        f'{MODULE} required useKeyTab=true storeKey=true keyTab="{keytab}"'
        f' principal="{principal}@{NAME}";'
    )


def cache_line(cache: Path) -> str:
    """The JAAS line for a ticket cache."""
    return f'{MODULE} required useTicketCache=true ticketCache="{cache}";'


def client(jaas: str) -> dict[str, str]:
    """Client properties for Java clients and for ours."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.jaas.config": jaas,
    }
