"""The subject of a certificate in Java's form, and the rules that map it to a user.

`X500Principal.getName()` (RFC 2253: last part first), `SslPrincipalMapper`, and the names of hosts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Final, NamedTuple

from kafkapy.common.errors import ConfigError
from kafkapy.security.java_patterns import Replace, java_pattern, java_replacement

_VERSION: Final = 0xA0
_EXTENSIONS: Final = 0xA3
_DNS_NAME: Final = 0x82
_IP_ADDRESS: Final = 0x87
_ALTERNATIVE_NAMES: Final = "2.5.29.17"
_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_STRINGS: Final = (0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E)
"""Tags of values that Java shows as text. It reads all of them as UTF-8."""
_RULE: Final = re.compile(r"RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)")
_OUTER_SPACES: Final = re.compile(r"\A[ \r]+|[ \r]+\Z")
_BACK_REFERENCE: Final = re.compile(r"\$(\d)", re.ASCII)


class _Value(NamedTuple):
    """One DER value: its tag, its content, and its bytes with the header."""

    tag: int
    content: bytes
    whole: bytes


def subject_of(certificate: bytes) -> str:
    """The subject of a DER certificate, which TLS has verified: `CN=alice,OU=people,O=acme`."""
    [outer] = _values(certificate)
    to_be_signed = next(_values(outer.content))
    fields = [value for value in _values(to_be_signed.content) if value.tag != _VERSION]
    # serial number, signature, issuer, validity, subject
    parts = ["+".join(map(_attribute, _values(rdn.content))) for rdn in _values(fields[4].content)]
    return ",".join(reversed(parts))


def alternative_names_of(certificate: bytes) -> frozenset[str]:
    """Alternative names in a DER certificate: `DNS:broker`, `IP:7f000001`; others in hex."""
    [outer] = _values(certificate)
    to_be_signed = next(_values(outer.content))
    extensions = [v.content for v in _values(to_be_signed.content) if v.tag == _EXTENSIONS]
    for extension in (e for content in extensions for e in _values(next(_values(content)).content)):
        kind, *_, value = _values(extension.content)
        if _oid(kind.content) == _ALTERNATIVE_NAMES:
            names = next(_values(value.content)).content
            return frozenset(map(_alternative_name, _values(names)))
    return frozenset()


def _alternative_name(name: _Value) -> str:
    if name.tag == _DNS_NAME:
        return f"DNS:{name.content.decode('ascii', 'replace')}"
    return f"IP:{name.content.hex()}" if name.tag == _IP_ADDRESS else name.whole.hex()


def _values(data: bytes) -> Iterator[_Value]:
    position = 0
    while position < len(data):
        tag, size, start = data[position], data[position + 1], position + 2
        if size & 0x80:
            count = size & 0x7F
            size, start = int.from_bytes(data[start : start + count], "big"), start + count
        yield _Value(tag, data[start : start + size], data[position : start + size])
        position = start + size


def _attribute(pair: _Value) -> str:
    kind, value = _values(pair.content)
    oid = _oid(kind.content)
    keyword = _KEYWORDS.get(oid)
    if keyword is None or value.tag not in _STRINGS:
        return f"{keyword or oid}=#{value.whole.hex()}"
    return f"{keyword}={_escape(value.content.decode('utf-8', 'replace'))}"


def _oid(content: bytes) -> str:
    numbers, number = [], 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _escape(text: str) -> str:
    """The text as in Java, which escapes more than RFC 2253 requires (`AVA.toRFC2253String`)."""
    escaped = re.sub(r'([,=+<>#;"\\])', r"\\\1", text).replace("\0", r"\00")
    return _OUTER_SPACES.sub(lambda spaces: "".join(f"\\{each}" for each in spaces[0]), escaped)


class PrincipalMapper:
    """`ssl.principal.mapping.rules`: `RULE:pattern/replacement/[LU]` or `DEFAULT`, separated by
    commas.
    """

    def __init__(self, rules: str, key: str = "ssl.principal.mapping.rules") -> None:
        """Raises ConfigError: `key` has an invalid rule."""
        self._rules: list[tuple[re.Pattern[str], Replace, str] | None] = []
        text = rules.strip() or "DEFAULT"
        while text:
            match = _RULE.match(text)
            end = 7 if match is None else match.end()
            if match is None and not text.startswith("DEFAULT"):
                raise ConfigError(f"{key}={rules} is not a list of DEFAULT and RULE:a/b/[LU]")
            self._rules.append(None if match is None else _compile(match, key))
            text = text[end:].strip()
            if text and not text.startswith(","):
                raise ConfigError(f"{key}={rules}: a comma is expected before {text}")
            text = text.removeprefix(",").strip()

    def name_of(self, distinguished_name: str) -> str | None:
        """The user of a certificate's subject; None if no rule applies."""
        for rule in self._rules:
            if rule is None:
                return distinguished_name
            pattern, replace, case = rule
            if pattern.fullmatch(distinguished_name) is not None:
                # As in Kafka: an unanchored pattern may match a part of the name, or match twice.
                name = pattern.sub(replace, distinguished_name)
                return {"L": name.lower(), "U": name.upper()}.get(case, name)
        return None


def _compile(match: re.Match[str], key: str) -> tuple[re.Pattern[str], Replace, str]:
    pattern, replacement = java_pattern(match[1], key), match[2]
    if pattern.groups:
        replacement = _BACK_REFERENCE.sub(
            partial(_escape_missing_group, pattern.groups), replacement
        )
    return pattern, java_replacement(replacement, pattern, f"{key}: {match[0]}"), match[3]


def _escape_missing_group(groups: int, reference: re.Match[str]) -> str:
    """A reference; escaped if its group does not exist (`escapeLiteralBackReferences`)."""
    return reference[0] if int(reference[1]) <= groups else f"\\{reference[0]}"
