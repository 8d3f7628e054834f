"""Data contracts: the metadata and the rules of a schema, as Confluent's clients use them.

The registry stores them; clients run the rules. They are part of a schema's identity, so two
schemas that differ only in them have two ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, TypeVar

T = TypeVar("T")

VERSION_PROPERTY: Final = "confluent:version"
_VERSION_DIGITS_MAX: Final = 10

Pairs = tuple[tuple[str, str], ...]


_KINDS: Final = ("TRANSFORM", "CONDITION")
_DOMAIN_MODES: Final = ("WRITE", "READ", "WRITEREAD")
# The lists of rules, and the moments at which clients run a rule of the list.
_MODES: Final = {
    "migrationRules": ("UPGRADE", "DOWNGRADE", "UPDOWN"),
    "domainRules": _DOMAIN_MODES,
    "encodingRules": _DOMAIN_MODES,
}


class Metadata(NamedTuple):
    """Tags by the path of a field, properties, and the names of sensitive properties; all are
    sorted as Java sorts strings."""

    tags: tuple[tuple[str, tuple[str, ...]], ...] = ()
    properties: Pairs = ()
    sensitive: tuple[str, ...] = ()

    def value(self, name: str) -> str | None:
        """The value of a property."""
        return dict(self.properties).get(name)

    @property
    def version(self) -> int | None:
        """The number in the property confluent:version."""
        text = self.value(VERSION_PROPERTY) or ""
        is_number = text.isascii() and text.isdecimal() and len(text) <= _VERSION_DIGITS_MAX
        return int(text) if is_number else None

    def with_version(self, version: int | None) -> Metadata:
        """The same with another confluent:version, or with none."""
        found = dict(self.properties)
        found.pop(VERSION_PROPERTY, None)
        if version is not None:
            found[VERSION_PROPERTY] = str(version)
        return self._replace(properties=_sorted_pairs(found.items()))

    def merged(self, newer: Metadata) -> Metadata:
        """The same with what `newer` adds and replaces, as `Metadata.mergeMetadata`."""
        return Metadata(
            _sorted_pairs((dict(self.tags) | dict(newer.tags)).items()),
            _sorted_pairs((dict(self.properties) | dict(newer.properties)).items()),
            _sorted_words({*self.sensitive, *newer.sensitive}),
        )

    def fields(self) -> dict[str, Any]:
        """Its JSON in records and answers."""
        found: dict[str, Any] = {}
        if self.tags:
            found["tags"] = {path: list(words) for path, words in self.tags}
        if self.properties:
            found["properties"] = dict(self.properties)
        if self.sensitive:
            found["sensitive"] = list(self.sensitive)
        return found

    def texts(self) -> Iterator[str]:
        """The texts that the GUID is computed from, in order (`Metadata.updateHash`)."""
        for path, words in self.tags:
            yield from (path, *words)
        for pair in self.properties:
            yield from pair
        yield from self.sensitive


class Rule(NamedTuple):
    """A condition or a transformation, which a client's executor of its `type` runs."""

    name: str
    doc: str | None
    kind: str
    mode: str
    type: str
    tags: tuple[str, ...]
    params: Pairs
    expr: str | None
    on_success: str | None
    on_failure: str | None
    is_disabled: bool

    def fields(self) -> dict[str, Any]:
        found = {
            "name": self.name,
            "doc": self.doc,
            "kind": self.kind,
            "mode": self.mode,
            "type": self.type,
            "tags": list(self.tags),
            "params": dict(self.params),
            "expr": self.expr,
            "onSuccess": self.on_success,
            "onFailure": self.on_failure,
        }
        return {name: each for name, each in found.items() if each} | {"disabled": self.is_disabled}

    def texts(self) -> Iterator[str]:
        """As `Rule.updateHash`."""
        yield from (self.name, self.doc or "", self.kind, self.mode, self.type, *self.tags)
        for pair in self.params:
            yield from pair
        yield from (self.expr or "", self.on_success or "", self.on_failure or "")
        yield "\1" if self.is_disabled else ""


class RuleSet(NamedTuple):
    """Rules between versions, on values, and on their bytes, and the time from which they count."""

    lists: tuple[tuple[Rule, ...], ...] = ((), (), ())
    enable_at: str | None = None

    @property
    def by_list(self) -> dict[str, tuple[Rule, ...]]:
        """The rules by the name of their list in JSON."""
        return dict(zip(_MODES, self.lists, strict=True))

    @property
    def write_rules(self) -> tuple[str, ...]:
        """The names of the rules that clients run before they write."""
        found = (*self.by_list["domainRules"], *self.by_list["encodingRules"])
        return tuple(
            each.name for each in found if each.mode.startswith("WRITE") and not each.is_disabled
        )

    def merged(self, newer: RuleSet) -> RuleSet:
        """The same with the rules of `newer`, which replace those of their names."""
        lists = tuple(map(_merged_rules, self.lists, newer.lists))
        return RuleSet(lists, newer.enable_at or self.enable_at)

    def fields(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            name: [each.fields() for each in rules] for name, rules in self.by_list.items() if rules
        }
        return found | ({"enableAt": self.enable_at} if self.enable_at else {})

    def texts(self) -> Iterator[str]:
        """As `RuleSet.updateHash`."""
        for rules in self.lists:
            for rule in rules:
                yield from rule.texts()


class Contract(NamedTuple):
    """Metadata and rules. None is not given, which differs from empty: the next version of a
    subject takes what is not given from the version before."""

    metadata: Metadata | None = None
    rules: RuleSet | None = None

    @property
    def version(self) -> int | None:
        return None if self.metadata is None else self.metadata.version

    def value(self, name: str) -> str | None:
        """The value of a property."""
        return None if self.metadata is None else self.metadata.value(name)

    def with_version(self, version: int | None) -> Contract:
        """The same with another confluent:version, or with none."""
        return self._replace(metadata=(self.metadata or Metadata()).with_version(version))

    def or_else(self, other: Contract) -> Contract:
        """The same, with what is not given taken from another."""
        return Contract(
            other.metadata if self.metadata is None else self.metadata,
            other.rules if self.rules is None else self.rules,
        )

    def merged(self, newer: Contract) -> Contract:
        """The same with what `newer` adds and replaces."""
        metadata, rules = self.or_else(newer)
        if self.metadata is not None and newer.metadata is not None:
            metadata = self.metadata.merged(newer.metadata)
        if self.rules is not None and newer.rules is not None:
            rules = self.rules.merged(newer.rules)
        return Contract(metadata, rules)

    @property
    def content(self) -> Contract:
        """The same, with what is empty as what is not given: both have the same id."""
        metadata = None if self.metadata == Metadata() else self.metadata
        return Contract(metadata, None if self.rules == RuleSet() else self.rules)

    def fields(self) -> dict[str, Any]:
        found = {"metadata": self.metadata, "ruleSet": self.rules}
        return {name: each.fields() for name, each in found.items() if each is not None}

    def texts(self) -> Iterator[str]:
        """The texts that the GUID is computed from, in order."""
        for part in self:
            if part is not None:
                yield from part.texts()


def read_contract(metadata: Any, rules: Any) -> Contract:
    """Read the JSON of both. None is not given.

    Raises:
        ValueError: a field has another type; names it.
    """
    return Contract(
        None if metadata is None else _read_metadata(metadata),
        None if rules is None else _read_rules(rules),
    )


def check_rules(rules: RuleSet) -> None:
    """
    Raises:
        ValueError: a rule lacks a name or a type, has the name of another, or another kind or mode
            than those of its list.
    """
    names: set[str] = set()
    for list_name, rules_of_list in rules.by_list.items():
        for rule in rules_of_list:
            if not rule.name or not rule.type:
                raise ValueError(f"a rule of {list_name} lacks a {'type' if rule.name else 'name'}")
            if rule.name in names:
                raise ValueError(f"two rules have the name '{rule.name}'")
            names.add(rule.name)
            _check_one_of(_KINDS, rule.kind, f"kind of rule '{rule.name}'")
            _check_one_of(_MODES[list_name], rule.mode, f"mode of rule '{rule.name}'")


def _check_one_of(names: tuple[str, ...], name: str, where: str) -> None:
    if name not in names:
        raise ValueError(f"{where}: expected one of {', '.join(names)}, found {name}")


def _read_metadata(given: Any) -> Metadata:
    fields = _object(given, "metadata")
    tags = _object(fields.get("tags"), "metadata.tags")
    return Metadata(
        _sorted_pairs((path, _words(each, "metadata.tags")) for path, each in tags.items()),
        _pairs(fields.get("properties"), "metadata.properties"),
        _words(fields.get("sensitive"), "metadata.sensitive"),
    )


def _read_rules(given: Any) -> RuleSet:
    fields = _object(given, "ruleSet")
    lists = tuple(tuple(map(_read_rule, _list(fields.get(name), name))) for name in _MODES)
    return RuleSet(lists, _text(fields.get("enableAt"), "enableAt"))


def _read_rule(given: Any) -> Rule:
    fields = _object(given, "a rule")
    text = {name: _text(fields.get(name), f"{name} of a rule") for name in _RULE_TEXTS}
    return Rule(
        text["name"] or "",
        text["doc"],
        text["kind"] or "TRANSFORM",
        text["mode"] or "WRITEREAD",
        text["type"] or "",
        _words(fields.get("tags"), "tags of a rule"),
        _pairs(fields.get("params"), "params of a rule"),
        text["expr"],
        text["onSuccess"],
        text["onFailure"],
        _text(fields.get("disabled"), "disabled of a rule") == "true",
    )


_RULE_TEXTS: Final = ("name", "doc", "kind", "mode", "type", "expr", "onSuccess", "onFailure")


def _object(given: Any, name: str) -> dict[str, Any]:
    if not isinstance(given, dict | None):
        raise ValueError(f"{name}: expected an object")
    return given or {}


def _list(given: Any, name: str) -> list[Any]:
    if not isinstance(given, list | None):
        raise ValueError(f"{name}: expected a list")
    return given or []


def _text(given: Any, name: str) -> str | None:
    """A text, or a number or a boolean as Jackson makes a text of it."""
    if isinstance(given, bool):
        return str(given).lower()
    if not isinstance(given, str | int | float | None):
        raise ValueError(f"{name}: expected a text")
    return None if given is None else str(given)


def _pairs(given: Any, name: str) -> Pairs:
    texts = ((key, _text(each, name)) for key, each in _object(given, name).items())
    return _sorted_pairs((key, text) for key, text in texts if text is not None)


def _words(given: Any, name: str) -> tuple[str, ...]:
    texts = (_text(each, name) for each in _list(given, name))
    return _sorted_words({text for text in texts if text is not None})


def _sorted_pairs(pairs: Iterable[tuple[str, T]]) -> tuple[tuple[str, T], ...]:
    return tuple(sorted(pairs, key=lambda pair: _java_order(pair[0])))


def _sorted_words(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(words, key=_java_order))


def _java_order(text: str) -> bytes:
    """The key by which Java sorts strings: its UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def _merged_rules(old: tuple[Rule, ...], newer: tuple[Rule, ...]) -> tuple[Rule, ...]:
    replaced = {rule.name for rule in newer}
    return (*(rule for rule in old if rule.name not in replaced), *newer)
