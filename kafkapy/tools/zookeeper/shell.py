"""Commands to read and change znodes (`org.apache.zookeeper.ZooKeeperMain`), with kazoo."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import (
    BadArgumentsError,
    BadVersionError,
    KazooException,
    NoAuthError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.security import ACL, Id

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.java_environment import with_login_config
from kafkapy.common.java_numbers import is_natural
from kafkapy.common.texts import is_utf8
from kafkapy.tools.zookeeper.text import (
    PERMISSIONS,
    ShellError,
    client_addresses,
    parse_acl,
    split_flags,
    stat_lines,
    version_of,
    words_of,
)
from kafkapy.zk.kazoo.client_config import ZooKeeperClientConfig
from kafkapy.zk.kazoo.handler import CallbackHandler
from kafkapy.zk.kazoo.session import sasl_options
from kafkapy.zk.kazoo.tls import ssl_context

CONNECT_LIMIT_S: Final = 15.0
RECONNECT_DELAY_MAX_S: Final = 1.0
_log = logging.getLogger("org.apache.zookeeper.ZooKeeperMain")
# Suppress the log: the command reports an error once, at its end.
_log.addHandler(logging.NullHandler())
QUIT: Final = ("quit", "close")

# The messages of ZooKeeper's shell for errors. {} is the path.
_ERROR_TEXTS: Final[tuple[tuple[type[KazooException], str], ...]] = (
    (NoNodeError, "Node does not exist: {}"),
    (NodeExistsError, "Node already exists: {}"),
    (NotEmptyError, "Node not empty: {}"),
    (BadVersionError, "version No is not valid : {}"),
    (NoChildrenForEphemeralsError, "Ephemerals cannot have children: {}"),
    (NoAuthError, "Authentication is not valid : {}"),
)
_EVENTS: Final = {
    "CREATED": "NodeCreated",
    "DELETED": "NodeDeleted",
    "CHANGED": "NodeDataChanged",
    "CHILD": "NodeChildrenChanged",
}
_CONFIG_NODE: Final = "/zookeeper/config"
_HISTORY_LINES: Final = 11
_RELATIVE: Final = frozenset((".", ".."))


def connect(
    hosts: str, properties: Mapping[str, str] | None = None, *, reconnects: bool = False
) -> KazooClient:
    """A session with `host:port,.../chroot`; `properties` are `zookeeper.*` keys, for TLS.

    With `reconnects`, requests wait until a server is available again. Otherwise they fail after 15
    seconds: kazoo fails the requests in flight, and would keep others without a limit.

    Raises:
        ApiError: no server answers within 15 seconds.
        ConfigError: `hosts` or a property is malformed.
    """
    config = ZooKeeperClientConfig.from_properties(
        {**with_login_config(properties or {}), "zookeeper.connect": hosts}
    )
    context = None if config.tls is None else ssl_context(config.tls)
    handler = CallbackHandler(CONNECT_LIMIT_S, context)
    auth = [config.auth] if config.auth else None
    client = KazooClient(
        ",".join(config.hosts),
        handler=handler,
        auth_data=auth,
        connection_retry={
            "max_tries": -1,
            "max_delay": RECONNECT_DELAY_MAX_S,
            "deadline": None if reconnects else CONNECT_LIMIT_S,
            "sleep_func": handler.sleep_func,
        },
        sasl_options=sasl_options(config),
        logger=_log,
    )
    try:
        client.start(timeout=CONNECT_LIMIT_S)
    except KazooTimeoutError as error:
        client.stop()
        client.close()
        raise ApiError(
            ErrorCode.REQUEST_TIMED_OUT,
            f"ZooKeeper at {hosts} does not answer within {CONNECT_LIMIT_S:.0f} s"
            + (f": {handler.problem}" if handler.problem else ""),
        ) from error
    # After the start, because kazoo would check the chroot and warn if it does not exist yet.
    client.chroot = config.chroot
    return client


class ZooKeeperShell:
    """The commands of the shell. Results go to `write_result`, notices to `write_notice`."""

    def __init__(
        self, client: Any, write_result: Callable[[str], None], write_notice: Callable[[str], None]
    ) -> None:
        self._client = client
        self._write_result = write_result
        self._write_notice = write_notice
        self._lines: list[str] = []
        self._prints_watches = True

    def run_line(self, line: str) -> None:
        """Run one line of a prompt. Raises as `run`; also ShellError for an unclosed quote."""
        line = line.strip()
        _require_utf8(line)
        words = words_of(line)
        if words:
            self._lines.append(line)
            self.run(words)

    def run(self, words: Sequence[str]) -> None:
        """Run one command.

        Raises:
            ShellError: the command does not exist, its words are wrong, or ZooKeeper refused.
        """
        for word in words:
            _require_utf8(word)
        name, *arguments = words
        command = _COMMANDS.get(name)
        if command is None:
            raise ShellError(f"Command not found {name}: one of {', '.join(sorted(_COMMANDS))}")
        flags, operands = _split(name, arguments)
        path = operands[0] if operands else ""
        if path and name not in _NO_PATH:
            _check_path(path, may_end_with_slash=name == "create" and "s" in flags)
        if not path and name in _NEED_PATH:
            raise ShellError(f"{name} needs a path")
        try:
            command(self, flags, operands)
        except KazooException as error:
            raise ShellError(_refusal(error, path)) from error

    def ls(self, flags: dict[str, str], operands: list[str]) -> None:
        path = operands[0] if operands else "/"
        if "R" in flags:
            for each in self._below(path):
                self._write_result(each)
            return
        watch = self._watch_callback(flags)
        children, stat = self._client.get_children(path, watch=watch, include_data=True)
        self._write_result(f"[{', '.join(sorted(children))}]")
        if "s" in flags:
            self._print_stat(stat)

    def _below(self, path: str) -> Iterator[str]:
        """A node and all its descendants, in the order of ZooKeeper's shell: all children of a
        node, then the descendants of each child. A node that is deleted meanwhile has none.
        """
        names = self._client.get_children(path)
        yield path
        pending: list[str] = []
        while True:
            children = [f"{path.rstrip('/')}/{name}" for name in sorted(names)]
            yield from children
            pending += reversed(children)
            if not pending:
                return
            path = pending.pop()
            try:
                names = self._client.get_children(path)
            except NoNodeError:
                names = []

    def get(self, flags: dict[str, str], operands: list[str]) -> None:
        data, stat = self._client.get(operands[0], watch=self._watch_callback(flags))
        self._write_result(data.decode(errors="replace") if data else "null")
        if "s" in flags:
            self._print_stat(stat)

    def stat(self, flags: dict[str, str], operands: list[str]) -> None:
        found = self._client.exists(operands[0], watch=self._watch_callback(flags))
        if found is None:
            raise NoNodeError
        self._print_stat(found)

    def _print_stat(self, stat: Any) -> None:
        for line in stat_lines(stat):
            self._write_result(line)

    def create(self, flags: dict[str, str], operands: list[str]) -> None:
        data = operands[1].encode() if len(operands) > 1 else b""
        acl = _acls(operands[2]) if len(operands) > 2 else None
        created_path = self._client.create(
            operands[0], data, acl=acl, ephemeral="e" in flags, sequence="s" in flags
        )
        self._write_notice(f"Created {created_path}")

    def set(self, flags: dict[str, str], operands: list[str]) -> None:
        if len(operands) < 2:
            raise ShellError("set needs a path and data")
        stat = self._client.set(operands[0], operands[1].encode(), version_of(flags))
        if "s" in flags:
            self._print_stat(stat)

    def delete(self, flags: dict[str, str], operands: list[str]) -> None:
        self._client.delete(operands[0], version_of(flags))

    def delete_all(self, flags: dict[str, str], operands: list[str]) -> None:
        errors: list[str] = []
        for path in reversed(list(self._below(operands[0]))):
            try:
                self._client.delete(path)
            except NoNodeError:
                continue  # it was deleted meanwhile
            except NotEmptyError as error:
                # If a node below it was refused, that error is enough.
                errors = errors or [_refusal(error, path)]
            except (BadArgumentsError, NoAuthError) as error:
                errors.append(_refusal(error, path))  # the other nodes are still deleted
        if errors:
            raise ShellError("\n".join(["Failed to delete some node(s) in the subtree!", *errors]))

    def get_acl(self, flags: dict[str, str], operands: list[str]) -> None:
        acls, stat = self._client.get_acls(operands[0])
        for acl in acls:
            letters = "".join(letter for bit, letter in PERMISSIONS if acl.perms & bit)
            self._write_result(f"'{acl.id.scheme},'{acl.id.id}")
            self._write_result(f": {letters}")
        if "s" in flags:
            self._print_stat(stat)

    def set_acl(self, flags: dict[str, str], operands: list[str]) -> None:
        if len(operands) < 2:
            raise ShellError("setAcl needs a path and an acl")
        acl, version = _acls(operands[1]), version_of(flags)
        # List all paths first: the new ACL may forbid to list children.
        paths = list(self._below(operands[0])) if "R" in flags else [operands[0]]
        errors = []
        for path in paths:
            try:
                stat = self._client.set_acls(path, acl, version)
            except NoNodeError:
                if path == operands[0]:
                    raise
                continue  # it was deleted meanwhile
            except (BadVersionError, NoAuthError) as error:
                errors.append(_refusal(error, path))
                continue  # the other nodes still get the ACL
            if "s" in flags:
                self._print_stat(stat)
        if errors:
            raise ShellError("\n".join(errors))

    def add_auth(self, flags: dict[str, str], operands: list[str]) -> None:
        if not operands:
            raise ShellError("addauth needs a scheme")
        self._client.add_auth(operands[0], operands[1] if len(operands) > 1 else "")

    def config(self, flags: dict[str, str], operands: list[str]) -> None:
        data, stat = self._client.get(_CONFIG_NODE, watch=self._watch_callback(flags))
        text = data.decode(errors="replace")
        self._write_result(client_addresses(text) if "c" in flags else text)
        if "s" in flags:
            self._print_stat(stat)

    def reconfig(self, flags: dict[str, str], operands: list[str]) -> None:
        members = flags.get("members")
        if "file" in flags:
            members = _members_of_file(flags["file"])
        data, stat = self._client.reconfig(
            flags.get("add"), flags.get("remove"), members, version_of(flags, 64)
        )
        self._write_result(f"Committed new configuration:\n{data.decode(errors='replace')}")
        if "s" in flags:
            self._print_stat(stat)

    def _watch_callback(self, flags: dict[str, str]) -> Callable[[Any], None] | None:
        """With `-w`, a callback that prints the next change of a node."""
        return self._print_event if "w" in flags else None

    def _print_event(self, event: Any) -> None:
        if self._prints_watches:
            kind = _EVENTS.get(event.type, "None")
            self._write_result(
                f"\nWATCHER::\n\nWatchedEvent state:SyncConnected type:{kind} path:{event.path}"
            )

    def print_watches(self, flags: dict[str, str], operands: list[str]) -> None:
        if operands:
            self._prints_watches = operands[0] == "on"
        else:
            self._write_result(f"printwatches is {'on' if self._prints_watches else 'off'}")

    def history(self, flags: dict[str, str], operands: list[str]) -> None:
        first = max(0, len(self._lines) - _HISTORY_LINES)
        for number, line in enumerate(self._lines[first:], first):
            self._write_result(f"{number} - {line}")

    def redo(self, flags: dict[str, str], operands: list[str]) -> None:
        number = operands[0] if operands else ""
        # The last line is the redo itself.
        if not is_natural(number) or int(number) >= len(self._lines) - 1:
            raise ShellError("Command index out of range")
        self._lines.pop()
        line = self._lines[int(number)]
        if words_of(line)[0] == "redo":
            raise ShellError("No redoing redos")  # a redo that was out of range may redo itself
        self.run_line(line)

    def count(self, flags: dict[str, str], operands: list[str]) -> None:
        self._write_result(str(sum(1 for _ in self._below(operands[0])) - 1))

    def sync(self, flags: dict[str, str], operands: list[str]) -> None:
        self._client.sync(operands[0])
        self._write_result("Sync is OK")

    def version(self, flags: dict[str, str], operands: list[str]) -> None:
        self._write_result(f"ZooKeeper server {'.'.join(map(str, self._client.server_version()))}")

    def help(self, flags: dict[str, str], operands: list[str]) -> None:
        for usage in HELP:
            self._write_result(usage)


HELP: Final = (
    "addauth scheme auth",
    "close",
    "config [-c] [-w] [-s]",
    "create [-s] [-e] path [data] [acl]",
    "delete [-v version] path",
    "deleteall path [-b batch size]",
    "get [-s] [-w] path",
    "getAcl [-s] path",
    "getAllChildrenNumber path",
    "history",
    "ls [-s] [-w] [-R] path",
    "printwatches on|off",
    "quit",
    "reconfig [-s] [-v version] [-file path] [-members servers] [-add servers] [-remove ids]",
    "redo cmdno",
    "set [-s] [-v version] path data",
    "setAcl [-s] [-v version] [-R] path acl",
    "stat [-w] path",
    "sync path",
    "version",
)
_FLAGS: Final = {usage.split()[0]: re.findall(r"\[-(\w+)", usage) for usage in HELP}
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
    "setAcl": ZooKeeperShell.set_acl,
    "addauth": ZooKeeperShell.add_auth,
    "config": ZooKeeperShell.config,
    "reconfig": ZooKeeperShell.reconfig,
    "printwatches": ZooKeeperShell.print_watches,
    "history": ZooKeeperShell.history,
    "redo": ZooKeeperShell.redo,
    "getAllChildrenNumber": ZooKeeperShell.count,
    "sync": ZooKeeperShell.sync,
    "version": ZooKeeperShell.version,
    "help": ZooKeeperShell.help,
}
_NO_PATH: Final = frozenset(
    ("addauth", "config", "help", "history", "printwatches", "reconfig", "redo", "version")
)
_NEED_PATH: Final = _COMMANDS.keys() - _NO_PATH - {"ls"}
_FLAGS_WITH_VALUES: Final = {
    "set": ("v",),
    "delete": ("v",),
    "setAcl": ("v",),
    "deleteall": ("b",),
    "reconfig": ("v", "file", "members", "add", "remove"),
}


def _refusal(error: KazooException, path: str) -> str:
    texts = (text for kind, text in _ERROR_TEXTS if isinstance(error, kind))
    return next(texts, f"{type(error).__name__}: {{}}").format(path)


def _require_utf8(text: str) -> None:
    """Raise ShellError if the text has bytes, from a command line or stdin, that are not UTF-8."""
    if not is_utf8(text):
        raise ShellError(f"{text!a} is not UTF-8")


def _check_path(path: str, *, may_end_with_slash: bool) -> None:
    """Refuse the paths that ZooKeeper's shell refuses (`PathUtils.validatePath`), with its texts.
    kazoo drops empty parts of a path: with an empty `B`, `deleteall /a/$B` would delete all of /a.

    Raises:
        ShellError: the path is malformed.
    """
    if not path.startswith("/"):
        raise ShellError("Path must start with / character")
    if path.endswith("/") and path != "/" and not may_end_with_slash:
        raise ShellError("Path must not end with / character")
    if "//" in path:
        place = path.index("//") + 1
        raise ShellError(
            f'Invalid path string "{path}" caused by empty node name specified @{place}'
        )
    if not _RELATIVE.isdisjoint(path.split("/")):
        raise ShellError(f"Invalid path string {path}: relative paths not allowed")


def _split(name: str, arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Flags and operands of a command.

    Raises:
        ShellError: a flag is unknown. To ignore it would change the effect of the command.
    """
    known = _FLAGS.get(name, [])
    flags, operands = split_flags(arguments, _FLAGS_WITH_VALUES.get(name, ()), known)
    unknown = sorted(flags.keys() - known)
    if unknown:
        raise ShellError(f"Unrecognized option: -{unknown[0]}")
    return flags, operands


def _acls(text: str) -> list[ACL]:
    """The ACL entries of `text` for kazoo. Raises ShellError if it is not scheme:id:perms,..."""
    return [ACL(each.permissions, Id(each.scheme, each.identity)) for each in parse_acl(text)]


def _members_of_file(path: str) -> str:
    """The servers of a dynamic configuration file, with commas between them."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ShellError(f"Cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise ShellError(f"{path} is not UTF-8") from None
    return ",".join(line for line in text.split() if line.startswith("server."))
