"""The text of ZooKeeper's shell: flags, stats, ACLs and the list of servers."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from kafkapy.common.errors import KafkapyError
from kafkapy.zk.stores.acls import Acl

_DIGITS_MAX: Final = 20
_LONG: Final = (1 << 64) - 1
_WORD: Final = re.compile(r"""[^"'\s]\S*|"[^"]*"|'[^']*'|["']""", re.ASCII)
_QUOTES: Final = ('"', "'")
PERMISSIONS: Final = ((4, "c"), (8, "d"), (1, "r"), (2, "w"), (16, "a"))


class ShellError(KafkapyError):
    """A command of the shell failed; the message is ZooKeeper's."""


def parse_acl(text: str) -> list[Acl]:
    """Parse `scheme:id:perms,...` as ACL entries; an id may contain colons.

    Raises:
        ShellError: an entry does not have that form; the message has it.
    """
    found = []
    for entry in text.split(","):
        scheme, _, rest = entry.partition(":")
        identity, colon, letters = rest.rpartition(":")
        bits = {letter: bit for bit, letter in PERMISSIONS}
        if not scheme or not colon or not letters or set(letters) - bits.keys():
            raise ShellError(f"{entry} does not have the form scheme:id:perm, with perm of cdrwa")
        found.append(Acl(sum(bits[letter] for letter in set(letters)), scheme, identity))
    return found


def client_addresses(config: str) -> str:
    """The addresses for clients in a dynamic configuration (`server.1=h:2888:3888;h:2181`)."""
    lines = [line.partition("=")[2] for line in config.splitlines() if line.startswith("server.")]
    found = []
    for line in lines:
        peer, _, client = line.partition(";")
        host, colon, port = client.rpartition(":")
        found.append(f"{host if colon else peer.split(':')[0]}:{port}")
    return ",".join(found)


def stat_lines(stat: Any) -> list[str]:
    """The lines that ZooKeeper's shell prints for a `ZnodeStat` of kazoo."""
    return [
        f"cZxid = {_hex(stat.czxid)}",
        f"ctime = {_date(stat.ctime)}",
        f"mZxid = {_hex(stat.mzxid)}",
        f"mtime = {_date(stat.mtime)}",
        f"pZxid = {_hex(stat.pzxid)}",
        f"cversion = {stat.cversion}",
        f"dataVersion = {stat.version}",
        f"aclVersion = {stat.aversion}",
        f"ephemeralOwner = {_hex(stat.ephemeralOwner)}",
        f"dataLength = {stat.dataLength}",
        f"numChildren = {stat.numChildren}",
    ]


def _hex(number: int) -> str:
    """A Java long in hex; a negative number in two's complement, with 64 bits."""
    return f"{number & _LONG:#x}"


def _date(epoch_ms: int) -> str:
    """`java.util.Date.toString()`, in UTC."""
    return datetime.fromtimestamp(epoch_ms / 1000, UTC).strftime("%a %b %d %H:%M:%S UTC %Y")


def words_of(line: str) -> list[str]:
    """Split a line into words, as `MyCommandOptions.parseCommand`.

    Quotes enclose a word only if it begins with one, and a backslash has no meaning: so JSON can be
    written without quotes around it.

    Raises:
        ShellError: a word begins with a quote that is not closed.
    """
    words = _WORD.findall(line)
    if any(quote in words for quote in _QUOTES):
        raise ShellError(f"{line}: No closing quotation")
    return [word[1:-1] if word.startswith(_QUOTES) else word for word in words]


def split_flags(
    words: Sequence[str], value_flags: Sequence[str], known: Collection[str] = ()
) -> tuple[dict[str, str], list[str]]:
    """Split words into flags (name to value) and operands. `-se` is `-s -e`.

    Known flags may stand anywhere. Behind the first operand, unknown flags are operands. Behind a
    `--` before the first operand, all words are operands.
    """
    flags: dict[str, str] = {}
    operands: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--" and not operands:
            return flags, rest
        is_data = bool(operands) and word[1:] not in known
        if is_data or not word.startswith("-") or len(word) == 1:
            operands.append(word)
        elif word[1:] in value_flags:
            flags[word[1:]] = rest.pop(0) if rest else ""
        else:
            letters = set(word[1:])
            is_combined = letters <= set(known) - set(value_flags)
            flags |= dict.fromkeys(letters if is_combined else [word[1:]], "")
    return flags, operands


def version_of(flags: dict[str, str], bits: int = 32) -> int:
    """The version of the flag `-v`; -1 means any version.

    Raises:
        ShellError: it is not a number, or does not fit into a field of `bits` bits.
    """
    text = flags.get("v", "-1")
    limit = 1 << bits - 1
    # `int` refuses texts of thousands of digits.
    is_number = text.removeprefix("-").isdecimal() and len(text) <= _DIGITS_MAX
    if not is_number or not -limit <= int(text) < limit:
        raise ShellError(f"version {text} is not a number")
    return int(text)
