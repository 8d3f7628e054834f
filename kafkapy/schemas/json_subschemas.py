"""The subschemas of a JSON schema: their references, and the kinds of their keywords."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Final
from urllib.parse import unquote, urldefrag, urljoin

from kafkapy.schemas.parsed_schema import InvalidSchema, finite, json_of

_DRAFTS: Final = {
    "json-schema.org/draft-04/": "4",
    "json-schema.org/draft-06/": "6",
    "json-schema.org/draft-07/": "7",
    "json-schema.org/draft/2019-09/": "201909",
    "json-schema.org/draft/2020-12/": "202012",
}
_DEFAULT_DRAFT: Final = "7"
# The exceptions of `jsonschema` for patterns that Python does not have, huge numbers, and schemas
# that `referencing` cannot search, such as lists beside schemas in `dependencies`.
_NOT_VALIDATED: Final = (re.error, ArithmeticError, ValueError, AttributeError, TypeError)
# In older drafts the keywords beside a $ref have no effect.
_NEW_DRAFTS: Final = ("201909", "202012")

_REFS: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_UNTYPED: Final = ("enum", "allOf", "anyOf", "oneOf", "not", "const")
_NUMBER: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_KEYWORDS: Final[dict[str, tuple[str, ...]]] = {
    "array": (
        *("items", "prefixItems", "additionalItems", "unevaluatedItems", "minItems", "maxItems"),
        *("uniqueItems", "contains", "minContains", "maxContains"),
    ),
    "object": (
        *("properties", "patternProperties", "additionalProperties", "unevaluatedProperties"),
        *("required", "minProperties", "maxProperties", "propertyNames"),
        *("dependencies", "dependentRequired", "dependentSchemas"),
    ),
    "number": _NUMBER,
    "integer": _NUMBER,
    "string": ("minLength", "maxLength", "pattern", "format"),
    "if": ("if", "then", "else"),
}
_SINCE_6: Final = frozenset({"const", "contains", "propertyNames"})
_SINCE_7: Final = frozenset({"if", "then", "else"})
_SINCE_2020: Final = frozenset({"prefixItems", "$dynamicRef", "$dynamicAnchor"})
_SINCE_2019: Final = frozenset(
    {"dependentRequired", "dependentSchemas", "minContains", "maxContains"}
    | {"unevaluatedItems", "unevaluatedProperties", "$recursiveRef", "$defs", "contentSchema"}
)
# Keywords without effect. Since 2019-09, `dependencies` is two keywords, and Confluent treats
# `format` as an annotation.
_IGNORED: Final[dict[str, frozenset[str]]] = {
    "4": _SINCE_6 | _SINCE_7 | _SINCE_2019 | _SINCE_2020,
    "6": _SINCE_7 | _SINCE_2019 | _SINCE_2020,
    "7": _SINCE_2019 | _SINCE_2020,
    "201909": _SINCE_2020 | {"format", "dependencies"},
    "202012": frozenset({"additionalItems", "format", "dependencies", "$recursiveRef"}),
}
# Keywords whose value is a schema, and those with schemas in a list or an object.
_WITH_SCHEMA: Final = frozenset(
    {"items", "additionalItems", "unevaluatedItems", "contains", "not", "if", "then", "else"}
    | {"additionalProperties", "unevaluatedProperties", "propertyNames", "contentSchema"}
)
_WITH_SCHEMAS: Final = frozenset(
    {"items", "prefixItems", "allOf", "anyOf", "oneOf", "definitions", "$defs"}
    | {"properties", "patternProperties", "dependencies", "dependentSchemas"}
)

# Clients choose identifiers and references, and other requests wait.
_URI_LENGTH_MAX: Final = 2_000
_URIS_MAX: Final = 50_000
# The sizes of all schemas, each counted once more when it is validated, which takes 25 us.
_SIZE_MAX: Final = 250_000


def parsed(text: str) -> Any:
    """The JSON of a schema.

    Raises:
        InvalidSchema: the text is not JSON, or neither an object nor a boolean.
    """
    raw = json_of(text, _integer)
    if not isinstance(raw, dict | bool):
        raise InvalidSchema("A JSON schema is an object or a boolean")
    return raw


def _integer(digits: str) -> int:
    finite(digits)  # a limit is compared with doubles
    return int(digits)


def minified(raw: Any, *, sort_keys: bool = False) -> str:
    """JSON without white space; with sorted keys, equal values have equal texts."""
    return json.dumps(raw, separators=(",", ":"), ensure_ascii=False, sort_keys=sort_keys)


def _draft(raw: Any, default: str) -> str:
    uri = str(raw.get("$schema")) if isinstance(raw, dict) else ""
    return next((draft for prefix, draft in _DRAFTS.items() if prefix in uri), default)


def load(raw: Any, references: Mapping[str, Any]) -> Subschema:
    """The schema `raw`. Its references, and identifiers inside, are found by their URIs.

    Raises:
        InvalidSchema: an identifier is not a URI, or there are too many references.
    """
    try:
        return _Documents(raw, references).root
    except InvalidSchema:
        raise
    except ValueError as error:
        raise InvalidSchema(f"An identifier of the schema is not a URI: {error}") from None


def _uri(base: str, reference: str) -> str:
    """A reference as an absolute URI.

    Raises:
        ValueError: it is not a URI.
    """
    found = urldefrag(urljoin(base, reference)).url
    if len(found) > _URI_LENGTH_MAX:
        raise ValueError(f"{found[:50]}... has more than {_URI_LENGTH_MAX:,} characters")
    return found


def _identifier(raw: Any, draft: str) -> str | None:
    """The URI that a schema gives itself."""
    found = raw.get("id" if draft == "4" else "$id") if isinstance(raw, dict) else None
    if not isinstance(found, str):
        return None
    is_none = draft not in _NEW_DRAFTS and ("$ref" in raw or found.startswith("#"))
    return None if is_none else found


def _anchors(raw: dict[str, Any], draft: str) -> Iterator[str]:
    """The names that a schema gives itself."""
    if draft in _NEW_DRAFTS:
        keys = {"$anchor", "$dynamicAnchor"} - _IGNORED[draft]
        yield from (name for key in keys if isinstance(name := raw.get(key), str))
    else:
        name = raw.get("id" if draft == "4" else "$id")
        if isinstance(name, str) and name.startswith("#"):
            yield name[1:]


def _inside(raw: Any, draft: str) -> Iterator[Any]:
    """The schemas directly inside a schema."""
    for key, value in raw.items() if isinstance(raw, dict) else ():
        found: Iterable[Any] = ()
        if key in _WITH_SCHEMA and not isinstance(value, list):
            found = (value,)
        elif key in _WITH_SCHEMAS and isinstance(value, dict | list):
            found = value.values() if isinstance(value, dict) else value
        if key not in _IGNORED[draft]:
            yield from (each for each in found if isinstance(each, dict | bool))


@dataclass(frozen=True)
class _Scope:
    """The surroundings of a schema: the URI that its references are relative to, the schema with
    this URI, and the draft."""

    base: str
    resource: Any
    draft: str


class _Documents:
    """A schema, those that it may refer to, and all schemas inside them. Each is visited once: the
    package `referencing` searches a document again for each reference."""

    def __init__(self, raw: Any, references: Mapping[str, Any]) -> None:
        self.targets: Final[dict[int, Subschema]] = {}
        self._left = _SIZE_MAX
        self._validators: Final[dict[str, Any]] = {}
        self._by_uri: Final[dict[str, Any]] = {}
        self._by_anchor: Final[dict[tuple[int, str], Any]] = {}
        self._scopes: Final[dict[int, _Scope]] = {}
        scope = self._document("", raw, _DEFAULT_DRAFT)
        self.root: Final = Subschema(raw, scope, self)
        self._by_uri[scope.base] = raw
        others = {
            name: self._document(_uri(scope.base, name), other, scope.draft)
            for name, other in references.items()
        }
        # A relative $ref is resolved against the $id of the schema that contains it.
        named = (one for one in others.values() if _identifier(one.resource, one.draft))
        bases = dict.fromkeys(("", scope.base, *(one.base for one in named)))
        if len(bases) * len(others) > _URIS_MAX:
            raise InvalidSchema("The schema has too many references")
        for base in bases:
            for name, other in others.items():
                self._by_uri.setdefault(_uri(base, name), other.resource)
        for one in (scope, *others.values()):
            if not self.has(one.resource):
                self._count(one.resource)
                self._add(one.resource, one)

    def _document(self, uri: str, raw: Any, default_draft: str) -> _Scope:
        draft = _draft(raw, default_draft)
        return _Scope(_uri(uri, _identifier(raw, draft) or ""), raw, draft)

    def _add(self, raw: Any, scope: _Scope) -> None:
        """Add a schema and those inside."""
        waiting = [(raw, scope)]
        while waiting:
            raw, scope = waiting.pop()
            if not isinstance(raw, dict) or id(raw) in self._scopes:
                continue
            identifier = _identifier(raw, scope.draft)
            if identifier is not None:
                scope = _Scope(_uri(scope.base, identifier), raw, scope.draft)
                self._by_uri.setdefault(scope.base, raw)
            for name in _anchors(raw, scope.draft):
                self._by_anchor.setdefault((id(scope.resource), name), raw)
            self._scopes[id(raw)] = scope
            waiting += ((each, scope) for each in _inside(raw, scope.draft))

    def check(self, schema: Subschema) -> None:
        """Validate a schema by the metaschema of its draft.

        Raises:
            InvalidSchema: a keyword has a wrong value, or there are too many schemas.
        """
        self._count(schema.raw)
        if schema.draft not in self._validators:
            self._validators[schema.draft] = _validator_of_schemas(schema.draft)
        for error in self._validators[schema.draft].iter_errors(schema.raw):
            path = "".join(f"/{step}" for step in error.path)
            message = " ".join(error.message.split())
            raise InvalidSchema(f"#{path}: {message[:200]}")

    def _count(self, raw: Any) -> None:
        self._left -= _size(raw)
        if self._left < 0:
            raise InvalidSchema("The schema, with its references, has too many parts")

    def has(self, raw: Any) -> bool:
        """Whether a schema is a part of the documents; `Subschema.parts` makes others."""
        return id(raw) in self._scopes

    def subschema(self, raw: Any, around: _Scope) -> Subschema:
        return Subschema(raw, self._scopes.get(id(raw), around), self)

    def find(self, ref: str, scope: _Scope) -> Subschema | None:
        """The schema that `ref` names in a schema of this scope.

        Raises:
            ValueError: `ref` is not a URI.
        """
        uri, fragment = urldefrag(ref)
        found = self._resource(_uri(scope.base, uri)) if uri else scope.resource
        if fragment and not fragment.startswith("/"):
            found = self._by_anchor.get((id(found), fragment))
        steps = unquote(fragment).split("/")[1:] if fragment.startswith("/") else []
        scope = self._scopes.get(id(found), scope)
        for step in steps:
            if isinstance(found, dict):
                found = found.get(step.replace("~1", "/").replace("~0", "~"))
            elif isinstance(found, list) and step.isdecimal() and int(step) < len(found):
                found = found[int(step)]
            else:
                return None
            scope = self._scopes.get(id(found), scope)
        if isinstance(found, dict) and not self.has(found):
            # The schema is the value of an unknown keyword, or inside.
            scope = replace(scope, draft=_draft(found, scope.draft))
            self._scopes[id(found)] = scope
            for each in _inside(found, scope.draft):
                self._add(each, scope)
        return self.subschema(found, scope) if isinstance(found, dict | bool) else None

    def _resource(self, uri: str) -> Any:
        from jsonschema_specifications import REGISTRY  # a schema may refer to a metaschema

        if uri not in self._by_uri and uri in REGISTRY:
            raw = REGISTRY.contents(uri)
            self._by_uri[uri] = raw
            self._add(raw, _Scope(uri, raw, _draft(raw, _DEFAULT_DRAFT)))
        return self._by_uri.get(uri)

    @cached_property
    def registry(self) -> Any:
        """The documents for `jsonschema`."""
        import referencing.jsonschema  # brokers without a schema registry do not need it
        from jsonschema_specifications import REGISTRY

        def resource(raw: Any) -> Any:
            draft = self.subschema(raw, self.root.scope).draft
            return getattr(referencing.jsonschema, f"DRAFT{draft}").create_resource(raw)

        return REGISTRY.with_resources((uri, resource(raw)) for uri, raw in self._by_uri.items())


@dataclass(frozen=True, eq=False)
class Subschema:
    """A schema inside a document, with its scope and all documents."""

    raw: Any
    scope: _Scope
    documents: _Documents

    @property
    def draft(self) -> str:
        return self.scope.draft

    def child(self, raw: Any) -> Subschema:
        return self.documents.subschema(raw, self.scope)

    def children(self) -> Iterator[Subschema]:
        return (self.child(raw) for raw in _inside(self.raw, self.draft))

    def refs(self) -> list[str]:
        if isinstance(self.raw, bool):
            return []
        ignored = _IGNORED[self.draft]
        return [self.raw[key] for key in _REFS if key in self.raw and key not in ignored]

    def referenced(self, ref: str) -> Subschema:
        try:
            found = self.documents.find(ref, self.scope)
        except (ValueError, TypeError, AttributeError):
            found = None
        if found is None:
            message = f'$ref "{ref}" is neither in the schema nor a registered reference'
            raise InvalidSchema(message) from None
        return found

    def target(self) -> Subschema:
        """The schema that this one stands for: itself, unless it is only a reference."""
        known, here, passed = self.documents.targets, self, dict[int, Subschema]()
        while id(here.raw) not in known and here._is_only_reference():
            if id(here.raw) in passed:
                raise InvalidSchema(f'$ref "{here.refs()[0]}" refers to itself')
            passed[id(here.raw)] = here
            here = here.referenced(here.refs()[0])
        here = known.get(id(here.raw), here)
        for each in (here, *passed.values()):
            if self.documents.has(each.raw):
                known[id(each.raw)] = here
        return here

    def _is_only_reference(self) -> bool:
        return bool(self.refs()) and (self.draft not in _NEW_DRAFTS or len(self.parts()) == 1)

    def parts(self) -> list[dict[str, Any]]:
        """Schemas of one kind each that all must accept a value: {"type": "string", "enum": ["a"]}
        is {"enum": ["a"]} and {"type": "string"}.
        """
        ignored = _IGNORED[self.draft]
        rest = {key: value for key, value in self.raw.items() if key not in ignored}

        def take(keywords: Iterable[str]) -> dict[str, Any]:
            return {key: rest.pop(key) for key in keywords if key in rest}

        parts = [take([key]) for key in (*_REFS, *_UNTYPED)]
        types = rest.get("type", [])
        types = types if isinstance(types, list) else [types]
        if types:
            parts.append(take(["type", *(key for one in types for key in _KEYWORDS.get(one, ()))]))
        parts += [take(keywords) for keywords in _KEYWORDS.values()]
        return [part for part in parts if part]


def validate(root: Subschema) -> None:
    """Validate the schema and all schemas that it refers to, and resolve each reference."""
    seen: set[int] = set()
    referenced, inside = [root], list[Subschema]()
    while referenced or inside:
        if not inside:
            found = referenced.pop()
            if id(found.raw) not in seen:
                found.documents.check(found)
                inside.append(found)
            continue
        here = inside.pop()
        if id(here.raw) not in seen:
            seen.add(id(here.raw))
            inside += here.children()
            referenced += [here.referenced(ref) for ref in here.refs()]
            here.target()


def fault_of(root: Subschema, value: Any) -> str | None:
    """The place and the reason if a value is not of a schema."""
    import jsonschema.exceptions  # brokers without a schema registry do not need it
    from referencing.exceptions import Unresolvable

    validator = getattr(jsonschema, f"Draft{root.draft}Validator")
    errors = validator(root.raw, registry=root.documents.registry).iter_errors(value)
    try:
        found = jsonschema.exceptions.best_match(errors)
    except RecursionError:
        return "$: the value, or its schema, is nested too deeply"
    except (*_NOT_VALIDATED, Unresolvable) as error:
        return f"$: the value cannot be validated: {error}"
    return None if found is None else f"{found.json_path}: {found.message}"


def _size(raw: Any) -> int:
    """The number of schemas that a schema can have inside."""
    found, waiting = 0, [raw]
    while waiting:
        one = waiting.pop()
        found += isinstance(one, dict | list | bool)
        waiting += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
    return found


def _unique_items(_: Any, is_unique: bool, items: Any, __: Any) -> Iterator[Any]:
    """The keyword `uniqueItems`; that of `jsonschema` compares each item with each."""
    from jsonschema import ValidationError

    texts = [minified(one, sort_keys=True) for one in items] if isinstance(items, list) else []
    if is_unique and len(set(texts)) < len(texts):
        yield ValidationError(f"{items!r} has non-unique elements")


def _any_of(validator: Any, schemas: list[Any], value: Any, _: Any) -> Iterator[Any]:
    """The keyword `anyOf`; that of `jsonschema` collects all errors."""
    from jsonschema import ValidationError

    if not any(validator.evolve(schema=each).is_valid(value) for each in schemas):
        yield ValidationError(f"{value!r} is not valid under any of the given schemas")


def _validator_of_schemas(draft: str) -> Any:
    """A validator by the metaschema of a draft. No formats: Python refuses some patterns that other
    languages accept."""
    import jsonschema  # brokers without a schema registry do not need it

    validator = getattr(jsonschema, f"Draft{draft}Validator")
    rules = {"uniqueItems": _unique_items, "anyOf": _any_of}
    metaschema = _in_one_part(validator.META_SCHEMA)
    return jsonschema.validators.extend(validator, rules)(metaschema)


def _in_one_part(metaschema: dict[str, Any]) -> Any:
    """A metaschema without an identifier. Those since 2019-09 consist of parts that refer to the
    whole one for each schema inside: validation takes ten times as long as with one part."""
    from jsonschema_specifications import REGISTRY

    own = ("id", "$id", "$schema", "allOf")
    found = {key: value for key, value in metaschema.items() if key not in own}
    for part in metaschema.get("allOf", ()):
        contents = REGISTRY.contents(urljoin(metaschema["$id"], part["$ref"]))
        for key in ("properties", "$defs"):
            found[key] = found.get(key, {}) | contents.get(key, {})
    text = re.sub(r'"meta/\w+#', '"#', json.dumps(found))
    text = re.sub(r'"\$dynamicRef": "#meta"|"\$recursiveRef": "#"', '"$ref": "#"', text)
    return json.loads(text)


@dataclass(frozen=True, eq=False)
class Node:
    """A schema seen as one kind: a type, an untyped keyword, `any` or `never`. The values of
    `enum`, `const` and `pattern` are texts of JSON, and `multipleOf` is a fraction.

    A schema with several kinds of keywords is an allOf of its parts, and a list of types an anyOf.
    """

    schema: Subschema
    kind: str
    name: str
    keywords: Mapping[str, Any]
    subschemas: tuple[Subschema, ...] = ()

    @cached_property
    def distinct(self) -> list[Subschema]:
        """The subschemas without repetitions."""
        by_text = {minified(one.raw, sort_keys=True): one for one in self.subschemas}
        return list(by_text.values())

    def child(self, keyword: str, default: Any = None) -> Subschema:
        return self.schema.child(self.keywords.get(keyword, default))

    def named(self, keyword: str) -> dict[str, Subschema]:
        found = self.keywords.get(keyword, {})
        return {key: self.schema.child(raw) for key, raw in found.items()}


def _comparable(keyword: str, value: Any) -> Any:
    """A value as it is compared. A node keeps it, because it is compared with those of others."""
    if keyword == "enum":
        return {minified(one, sort_keys=True): None for one in value}
    if keyword == "multipleOf":
        return Fraction(str(value))
    return minified(value, sort_keys=True) if keyword in ("const", "pattern") else value


def node_of(schema: Subschema) -> Node:
    """The node of a schema that is not only a reference."""
    parts = [] if isinstance(schema.raw, bool) else schema.parts()
    if not parts:
        kind, name = ("never", "no value") if schema.raw is False else ("any", "any value")
        return Node(schema, kind, name, {})
    if len(parts) > 1:
        name = " and ".join(str(part.get("type", next(iter(part)))) for part in parts)
        return Node(schema, "allOf", name, {}, tuple(replace(schema, raw=part) for part in parts))
    part = {key: _comparable(key, value) for key, value in parts[0].items()}
    for kind in _UNTYPED:
        if kind in part:
            combined = part[kind] if kind.endswith("Of") else []
            return Node(schema, kind, kind, part, tuple(schema.child(raw) for raw in combined))
    types = part.get("type")
    if isinstance(types, list):
        alternatives = (replace(schema, raw={**parts[0], "type": one}) for one in types)
        return Node(schema, "anyOf", " or ".join(types), {}, tuple(alternatives))
    kinds = (one for one, keys in _KEYWORDS.items() if part.keys() & set(keys))
    kind = types or next(kinds, "any")
    return Node(schema, "number" if kind == "integer" else kind, kind, part)
