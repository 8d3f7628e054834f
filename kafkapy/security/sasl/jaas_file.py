"""JAAS files: sections of login modules, as `java.security.auth.login.config` names them.

KafkaServer {
    org.apache.kafka.common.security.plain.PlainLoginModule required
    username="admin" password="secret" user_alice="hers";
};

A file is parsed by the rules of the JDK's `ConfigFile`. `sasl.jaas.config` takes precedence over a
section, as in Kafka's `JaasContext`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from kafkapy.common.errors import ConfigError
from kafkapy.common.java_environment import LOGIN_CONFIG, system_properties
from kafkapy.common.prefixed_properties import PrefixedProperties
from kafkapy.security.sasl.jaas import unescape

CLIENT: Final = "KafkaClient"
SERVER: Final = "KafkaServer"
JAAS: Final = "sasl.jaas.config"

_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_LOGIN: Final = ("username", "password", "tokenauth")
_MODULES: Final = {"PLAIN": "Plain", "GSSAPI": "Krb5", "OAUTHBEARER": "OAuthBearer"}
_TOKEN: Final = re.compile(
    r"""(?P<skipped>\s+|//[^\n]*|/\*.*?\*/)
    |"(?P<quoted>(?:\\.|[^"\\])*)"
    |(?P<mark>[{};=])
    |(?P<word>(?:(?!//|/\*)[^\s{};="])+)""",
    re.DOTALL | re.VERBOSE,
)
_VARIABLE: Final = re.compile(r"\$\{([^}]*)\}")


class LoginModule(NamedTuple):
    """One login module of a section."""

    name: str
    flag: str
    options: Mapping[str, str]

    def line(self) -> str:
        """The module in the form of `sasl.jaas.config`."""
        words = [f"{_quote(name)}={_quote(value)}" for name, value in self.options.items()]
        return f"{' '.join((self.name, self.flag, *words))};"


class JaasFile(NamedTuple):
    """A file and its sections."""

    path: str
    sections: Mapping[str, tuple[LoginModule, ...]]

    def at_listener(
        self, properties: PrefixedProperties, listener: str, mechanism: str
    ) -> PrefixedProperties:
        """The properties of a listener's mechanism, with the file's section. Only the
        `sasl.jaas.config` of exactly this mechanism takes precedence. The key in messages names
        both.
        """
        if properties.prefixes and f"{properties.prefixes[0]}{JAAS}" in properties.properties:
            return properties
        for section in (f"{listener.lower()}.{SERVER}", SERVER):
            if section in self.sections:
                source = f"{self.path}, {section}: "
                line = login_line(self.sections[section], mechanism)
                given = {**properties.properties, f"{source}{JAAS}": line}
                return PrefixedProperties(given, (source, *properties.prefixes))
        return properties


def of_properties(properties: Mapping[str, str]) -> JaasFile | None:
    """The file that a process's properties name, if any. Raises as `read`."""
    path = properties.get(LOGIN_CONFIG)
    return read(path) if path else None


def with_client_login(properties: Mapping[str, str], mechanism: str) -> Mapping[str, str]:
    """The properties of a client, with the section `KafkaClient` unless they have a login.

    Raises:
        ConfigError: the file cannot be read, or has no such section.
    """
    found = None if JAAS in properties else of_properties(properties)
    if found is None:
        return properties
    if CLIENT not in found.sections:
        raise ConfigError(
            f"Could not find a '{CLIENT}' entry in the JAAS configuration. System property"
            f" 'java.security.auth.login.config' is {found.path}"
        )
    return {**properties, JAAS: login_line(found.sections[CLIENT], mechanism)}


def login_line(modules: tuple[LoginModule, ...], mechanism: str) -> str:
    """The line of a mechanism's module in a section, else of the section's first module. All
    modules of a section take part in a login, so the user may come from another one.
    """
    prefix = _MODULES.get(mechanism.upper(), "Scram")
    matching = [each for each in modules if each.name.rpartition(".")[2] == f"{prefix}LoginModule"]
    chosen = (matching or modules)[0]
    if "username" not in chosen.options:
        other = next((each for each in modules if "username" in each.options), chosen)
        login = {name: other.options[name] for name in _LOGIN if name in other.options}
        chosen = chosen._replace(options={**chosen.options, **login})
    return chosen.line()


def read(path: str) -> JaasFile:
    """Read a file. The path may be a `file:` URL.

    Raises:
        ConfigError: names the file and the fault.
    """
    name = re.sub(r"^=?(file:(//)?)?", "", path)
    try:
        with open(name, "rb") as file:
            text = file.read().decode(errors="replace")
    except OSError as error:
        raise ConfigError(
            f"java.security.auth.login.config={path} cannot be read: {error.strerror}"
        ) from error
    try:
        return JaasFile(name, parse(text, system_properties()))
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from error


def parse(text: str, variables: Mapping[str, str]) -> dict[str, tuple[LoginModule, ...]]:
    """The sections of a file by name. `${name}` in values is replaced from `variables`.

    Raises:
        ConfigError: names the line and what is expected.
    """
    tokens = _Tokens(text)
    sections: dict[str, tuple[LoginModule, ...]] = {}
    while not tokens.at_end:
        name = tokens.text("the name of a section")
        tokens.expect_mark("{")
        modules = []
        while not tokens.skip_if_next("}"):
            modules.append(_module(tokens, variables))
        tokens.expect_mark(";")
        if name in sections:
            raise ConfigError(f"the section {name} stands twice")
        sections[name] = tuple(modules)
    # An empty section, such as `Client {};`, counts as absent, as in Java's Configuration.
    return {name: modules for name, modules in sections.items() if modules}


def _module(tokens: _Tokens, variables: Mapping[str, str]) -> LoginModule:
    name = tokens.text("the class of a login module")
    flag = tokens.text("a control flag")
    if flag.lower() not in _FLAGS:
        raise ConfigError(f"line {tokens.line}: {flag} is not one of {', '.join(_FLAGS)}")
    options = {}
    while not tokens.skip_if_next(";"):
        key = tokens.text("the name of an option")
        tokens.expect_mark("=")
        options[key] = _expand(tokens.text("the value of an option"), variables, tokens.line)
    return LoginModule(name, flag.lower(), options)


def _expand(value: str, variables: Mapping[str, str], line: int) -> str:
    def value_of(found: re.Match[str]) -> str:
        if found[1] not in variables:
            raise ConfigError(f"line {line}: the system property {found[1]} is not set")
        return variables[found[1]]

    return _VARIABLE.sub(value_of, value)


def _quote(text: str) -> str:
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'


class _Tokens:
    """The tokens of a file, in order. `line` is the line of the last token."""

    def __init__(self, text: str) -> None:
        self.line = 1
        self._rest = self._split(text)
        self._next = next(self._rest)

    @property
    def at_end(self) -> bool:
        return self._next[0] == "end"

    def text(self, expected: str) -> str:
        """Read a word or a string. Raises ConfigError for anything else."""
        kind, value, self.line = self._next
        if kind not in ("word", "quoted"):
            raise self._unexpected(expected)
        self._next = next(self._rest)
        return unescape(value) if kind == "quoted" else value

    def skip_if_next(self, mark: str) -> bool:
        """Skip a punctuation mark, if it is next. Returns whether it was."""
        if self._next[:2] != ("mark", mark):
            return False
        self._next = next(self._rest)
        return True

    def expect_mark(self, mark: str) -> None:
        """Skip a punctuation mark. Raises ConfigError for anything else."""
        if not self.skip_if_next(mark):
            raise self._unexpected(f"'{mark}'")

    def _unexpected(self, expected: str) -> ConfigError:
        kind, value, line = self._next
        found = "the end of the file" if kind == "end" else f"'{value}'" if kind == "mark" else kind
        return ConfigError(f"line {line}: expected {expected}, found {found}")

    def _split(self, text: str) -> Iterator[tuple[str, str, int]]:
        position = 0
        while position < len(text):
            line = text.count("\n", 0, position) + 1
            found = _TOKEN.match(text, position)
            if found is None:
                raise ConfigError(f"line {line}: a string or a comment does not end")
            position = found.end()
            if found.lastgroup != "skipped":
                assert found.lastgroup is not None
                yield found.lastgroup, found[found.lastgroup], line
        yield "end", "", text.count("\n") + 1
