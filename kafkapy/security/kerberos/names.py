"""Maps Kerberos principals to users: `sasl.kerberos.principal.to.local.rules`, in the syntax of
`auth_to_local` in krb5.conf (`KerberosName`, `KerberosShortNamer`).

    alice@EXAMPLE.COM        two parts: $0 is the realm, $1 alice
    kafka/b1@EXAMPLE.COM     three: $2 is b1
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from kafkapy.common.errors import ConfigError, KafkapyError
from kafkapy.security.java_patterns import Replace, java_pattern, java_replacement

RULES: Final = "sasl.kerberos.principal.to.local.rules"
_PRINCIPAL: Final = re.compile(r"([^/@\\]*)(?:/([^/@\\]*))?@([^/@\\]*)")
_RULE: Final = re.compile(
    r"RULE:\[(?P<count>\d+):(?P<format>[^\]]*)\](?:\((?P<match>[^)]*)\))?"
    r"(?:s/(?P<pattern>[^/]*)/(?P<replacement>[^/]*)/(?P<all>g)?)?/?(?P<case>[LU])?",
    re.ASCII,
)
_FORMAT_PART: Final = re.compile(r"\$(\d*)|[^$]+", re.ASCII)
_CASES: Final[dict[str | None, Callable[[str], str]]] = {"L": str.lower, "U": str.upper, None: str}


class NoLocalName(KafkapyError):
    """No rule maps a principal to a user."""


class Principal(NamedTuple):
    """A principal of one or two components. A principal with more has no local name."""

    realm: str
    components: tuple[str, ...]


def parse_principal(text: str) -> Principal:
    """`alice@REALM` or `kafka/host@REALM`. Raises NoLocalName."""
    found = _PRINCIPAL.fullmatch(text)
    if found is None:
        raise NoLocalName(f"Malformed Kerberos name: {text}")
    first, second, realm = found.groups()
    return Principal(realm, (first,) if second is None else (first, second))


class _Rule(NamedTuple):
    """`parts` are texts, and indices of the realm (0) and the components. `replace` applies to each
    match of `pattern`, or to the first.
    """

    text: str
    arity: int
    parts: tuple[str | int, ...]
    match: re.Pattern[str] | None
    pattern: re.Pattern[str] | None
    replace: Replace
    replaces_all: bool
    case: Callable[[str], str]

    def name_of(self, principal: Principal) -> str | None:
        """The user, or None if the rule does not match."""
        if len(principal.components) != self.arity:
            return None
        words = (principal.realm, *principal.components)
        name = "".join(part if isinstance(part, str) else words[part] for part in self.parts)
        if self.match is not None and self.match.fullmatch(name) is None:
            return None
        if self.pattern is not None:
            name = self.pattern.sub(self.replace, name, count=0 if self.replaces_all else 1)
        return self.case(_simple(name, self.text))


class LocalNames:
    """The rules of a listener. The first one that matches a principal applies."""

    def __init__(self, rules: Sequence[str], default_realm: str, key: str = RULES) -> None:
        """`default_realm` is the realm of the rule DEFAULT; empty without one.

        Raises:
            ConfigError: `key` has an invalid rule.
        """
        self._rules = [None if rule == "DEFAULT" else _rule_of(rule, key) for rule in rules]
        self._default_realm = default_realm

    def name_of(self, text: str) -> str:
        """The user of a principal. Raises NoLocalName."""
        principal = parse_principal(text)
        for rule in self._rules:
            if rule is not None:
                name = rule.name_of(principal)
                if name is not None:
                    return name
            elif principal.realm == self._default_realm:
                return _simple(principal.components[0], "DEFAULT")
        raise NoLocalName(f"No rules apply to {text}")


def _simple(name: str, rule: str) -> str:
    if "/" in name or "@" in name:
        raise NoLocalName(f"Non-simple name {name} after auth_to_local rule {rule}")
    return name


def _rule_of(text: str, key: str) -> _Rule:
    found = _RULE.fullmatch(text)
    if found is None:
        raise ConfigError(
            f"{key}: {text} is not a rule: DEFAULT or RULE:[n:format](match)s/from/to/g/L"
        )
    count = int(found["count"])
    pattern = _pattern(found["pattern"], key)
    return _Rule(
        text,
        count,
        tuple(_parts(found["format"], count, f"{key}: {text}")),
        _pattern(found["match"], key),
        pattern,
        java_replacement(found["replacement"] or "", pattern, f"{key}: {text}"),
        found["all"] is not None,
        _CASES[found["case"]],
    )


def _pattern(text: str | None, key: str) -> re.Pattern[str] | None:
    return None if text is None else java_pattern(text, key)


def _parts(format: str, count: int, where: str) -> Iterator[str | int]:
    for part in _FORMAT_PART.finditer(format):
        if not part[0].startswith("$"):
            yield part[0]
        elif part[1] and int(part[1]) <= count:
            yield int(part[1])
        else:
            raise ConfigError(f"{where}: {part[0]} is none of $0 to ${count}")
