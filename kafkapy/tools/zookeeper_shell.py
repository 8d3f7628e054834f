"""Reading and changing znodes by hand (`org.apache.zookeeper.ZooKeeperMain`), over kazoo."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import (
    BadVersionError,
    KazooException,
    NoAuthError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
)
from kazoo.handlers.threading import KazooTimeoutError

from kafkapy.common.errors import ApiError, ErrorCode, KafkapyError

CONNECT_LIMIT_S: Final = 15.0
QUIT: Final = ("quit", "close")

# What ZooKeeper's shell says of an error; the path follows.
_SAID: Final[tuple[tuple[type[KazooException], str], ...]] = (
    (NoNodeError, "Node does not exist: {}"),
    (NodeExistsError, "Node already exists: {}"),
    (NotEmptyError, "Node not empty: {}"),
    (BadVersionError, "version No is not valid : {}"),
    (NoChildrenForEphemeralsError, "Ephemerals cannot have children: {}"),
    (NoAuthError, "Authentication is not valid : {}"),
)
_PERMISSIONS: Final = ((4, "c"), (8, "d"), (1, "r"), (2, "w"), (16, "a"))


class ShellError(KafkapyError):
    """A command of the shell failed; the message is ZooKeeper's."""


def connect(hosts: str) -> KazooClient:
    """A session with `host:port,.../chroot`.

    Raises:
        ApiError: nobody answers within 15 seconds.
    """
    client = KazooClient(hosts=hosts)
    try:
        client.start(timeout=CONNECT_LIMIT_S)
    except KazooTimeoutError as error:
        client.stop()
        client.close()
        raise ApiError(
            ErrorCode.REQUEST_TIMED_OUT,
            f"ZooKeeper at {hosts} does not answer within {CONNECT_LIMIT_S:.0f} s",
        ) from error
    return client


class ZooKeeperShell:
    """The commands; results go to `say`, what is only told to `tell`."""

    def __init__(
        self, client: Any, say: Callable[[str], None], tell: Callable[[str], None]
    ) -> None:
        self._client = client
        self._say = say
        self._tell = tell

    def run_line(self, line: str) -> None:
        """One line of a prompt. Raises as `run`; ShellError for quotes that do not close."""
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise ShellError(f"{line}: {error}") from error
        if words:
            self.run(words)

    def run(self, words: Sequence[str]) -> None:
        """One command.

        Raises:
            ShellError: there is no such command, its words are wrong, or ZooKeeper refused.
        """
        name, *arguments = words
        command = _COMMANDS.get(name)
        if command is None:
            raise ShellError(f"Command not found {name}: one of {', '.join(sorted(_COMMANDS))}")
        flags, operands = _split(arguments, _TAKING_VALUES.get(name, ()))
        path = operands[0] if operands else ""
        if path and not path.startswith("/") and name != "version":
            raise ShellError("Path must start with / character")
        if not path and name in _NEED_PATH:
            raise ShellError(f"{name} needs a path")
        try:
            command(self, flags, operands)
        except KazooException as error:
            for kind, text in _SAID:
                if isinstance(error, kind):
                    raise ShellError(text.format(path)) from error
            raise ShellError(f"{type(error).__name__}: {path}") from error

    def ls(self, flags: dict[str, str], operands: list[str]) -> None:
        path = operands[0] if operands else "/"
        if "R" in flags:
            self._tree(path)
            return
        children, stat = self._client.get_children(path, include_data=True)
        self._say(f"[{', '.join(sorted(children))}]")
        if "s" in flags:
            self._stat(stat)

    def _tree(self, path: str) -> None:
        self._say(path)
        for child in sorted(self._client.get_children(path)):
            self._tree(f"{path.rstrip('/')}/{child}")

    def get(self, flags: dict[str, str], operands: list[str]) -> None:
        data, stat = self._client.get(operands[0])
        self._say(data.decode(errors="replace") if data else "null")
        if "s" in flags:
            self._stat(stat)

    def stat(self, flags: dict[str, str], operands: list[str]) -> None:
        found = self._client.exists(operands[0])
        if found is None:
            raise NoNodeError
        self._stat(found)

    def _stat(self, stat: Any) -> None:
        for line in stat_lines(stat):
            self._say(line)

    def create(self, flags: dict[str, str], operands: list[str]) -> None:
        data = operands[1].encode() if len(operands) > 1 else b""
        made = self._client.create(operands[0], data, ephemeral="e" in flags, sequence="s" in flags)
        self._tell(f"Created {made}")

    def set(self, flags: dict[str, str], operands: list[str]) -> None:
        if len(operands) < 2:
            raise ShellError("set needs a path and data")
        stat = self._client.set(operands[0], operands[1].encode(), _version(flags))
        if "s" in flags:
            self._stat(stat)

    def delete(self, flags: dict[str, str], operands: list[str]) -> None:
        self._client.delete(operands[0], _version(flags))

    def delete_all(self, flags: dict[str, str], operands: list[str]) -> None:
        self._client.delete(operands[0], recursive=True)

    def get_acl(self, flags: dict[str, str], operands: list[str]) -> None:
        acls, _ = self._client.get_acls(operands[0])
        for acl in acls:
            letters = "".join(letter for bit, letter in _PERMISSIONS if acl.perms & bit)
            self._say(f"'{acl.id.scheme},'{acl.id.id}")
            self._say(f": {letters}")

    def count(self, flags: dict[str, str], operands: list[str]) -> None:
        self._say(str(self._descendants(operands[0])))

    def _descendants(self, path: str) -> int:
        children = self._client.get_children(path)
        return len(children) + sum(
            self._descendants(f"{path.rstrip('/')}/{child}") for child in children
        )

    def sync(self, flags: dict[str, str], operands: list[str]) -> None:
        self._client.sync(operands[0])
        self._say("Sync is OK")

    def version(self, flags: dict[str, str], operands: list[str]) -> None:
        self._say(f"ZooKeeper server {'.'.join(map(str, self._client.server_version()))}")

    def help(self, flags: dict[str, str], operands: list[str]) -> None:
        for usage in HELP:
            self._say(usage)


HELP: Final = (
    "create [-s] [-e] path [data]",
    "delete [-v version] path",
    "deleteall path",
    "get [-s] path",
    "getAcl path",
    "getAllChildrenNumber path",
    "ls [-s] [-R] path",
    "quit",
    "set [-s] [-v version] path data",
    "stat path",
    "sync path",
    "version",
)
_Action = Callable[[ZooKeeperShell, dict[str, str], list[str]], None]
_COMMANDS: Final[dict[str, _Action]] = {
    "ls": ZooKeeperShell.ls,
    "get": ZooKeeperShell.get,
    "stat": ZooKeeperShell.stat,
    "create": ZooKeeperShell.create,
    "set": ZooKeeperShell.set,
    "delete": ZooKeeperShell.delete,
    "deleteall": ZooKeeperShell.delete_all,
    "rmr": ZooKeeperShell.delete_all,
    "getAcl": ZooKeeperShell.get_acl,
    "getAllChildrenNumber": ZooKeeperShell.count,
    "sync": ZooKeeperShell.sync,
    "version": ZooKeeperShell.version,
    "help": ZooKeeperShell.help,
}
_NEED_PATH: Final = _COMMANDS.keys() - {"ls", "version", "help"}
_TAKING_VALUES: Final = {"set": ("v",), "delete": ("v",)}


def stat_lines(stat: Any) -> list[str]:
    """A `ZnodeStat` of kazoo as ZooKeeper's shell writes it."""
    return [
        f"cZxid = {stat.czxid:#x}",
        f"ctime = {_date(stat.ctime)}",
        f"mZxid = {stat.mzxid:#x}",
        f"mtime = {_date(stat.mtime)}",
        f"pZxid = {stat.pzxid:#x}",
        f"cversion = {stat.cversion}",
        f"dataVersion = {stat.version}",
        f"aclVersion = {stat.aversion}",
        f"ephemeralOwner = {stat.ephemeralOwner:#x}",
        f"dataLength = {stat.dataLength}",
        f"numChildren = {stat.numChildren}",
    ]


def _date(epoch_ms: int) -> str:
    """`java.util.Date.toString()`, in UTC."""
    return datetime.fromtimestamp(epoch_ms / 1000, UTC).strftime("%a %b %d %H:%M:%S UTC %Y")


def _split(words: Sequence[str], taking_values: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Flags by letter (with their values), and the rest."""
    flags: dict[str, str] = {}
    operands: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if operands or not word.startswith("-") or len(word) == 1:
            operands.append(word)
        elif word[1:] in taking_values:
            flags[word[1:]] = rest.pop(0) if rest else ""
        else:
            flags[word[1:]] = ""
    return flags, operands


def _version(flags: dict[str, str]) -> int:
    text = flags.get("v", "-1")
    if not text.removeprefix("-").isdecimal():
        raise ShellError(f"version {text} is not a number")
    return int(text)
