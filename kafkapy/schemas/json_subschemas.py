"""The subschemas of a JSON schema: their references, and the kinds of their keywords."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urljoin

from kafkapy.schemas.parsed_schema import InvalidSchema

_DRAFTS: Final = {
    "json-schema.org/draft-04/": "4",
    "json-schema.org/draft-06/": "6",
    "json-schema.org/draft-07/": "7",
    "json-schema.org/draft/2019-09/": "201909",
    "json-schema.org/draft/2020-12/": "202012",
}
_DEFAULT_DRAFT: Final = "7"
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
_SINCE_2020: Final = frozenset({"prefixItems", "$dynamicRef"})
_SINCE_2019: Final = frozenset(
    {"dependentRequired", "dependentSchemas", "minContains", "maxContains"}
    | {"unevaluatedItems", "unevaluatedProperties", "$recursiveRef"}
)
# Keywords without effect. Confluent treats `format` as an annotation since 2019-09.
_IGNORED: Final[dict[str, frozenset[str]]] = {
    "4": _SINCE_6 | _SINCE_7 | _SINCE_2019 | _SINCE_2020,
    "6": _SINCE_7 | _SINCE_2019 | _SINCE_2020,
    "7": _SINCE_2019 | _SINCE_2020,
    "201909": _SINCE_2020 | {"format"},
    "202012": frozenset({"additionalItems", "format", "$recursiveRef"}),
}


def parsed(text: str) -> Any:
    """The JSON of a schema.

    Raises:
        InvalidSchema: the text is not JSON, or neither an object nor a boolean.
    """

    def number(digits: str) -> float:
        if math.isfinite(value := float(digits)):
            return value
        raise ValueError(f"the number {digits} is not supported")

    try:
        raw = json.loads(text, parse_constant=number, parse_float=number)
        minified(raw).encode()  # an escaped half of a surrogate pair cannot be stored
    except ValueError as error:
        raise InvalidSchema(f"The schema is not valid JSON: {error}") from None
    if not isinstance(raw, dict | bool):
        raise InvalidSchema("A JSON schema is an object or a boolean")
    return raw


def minified(raw: Any, *, sort_keys: bool = False) -> str:
    """JSON without white space; with sorted keys, equal values have equal texts."""
    return json.dumps(raw, separators=(",", ":"), ensure_ascii=False, sort_keys=sort_keys)


def _draft(raw: Any, default: str) -> str:
    uri = str(raw.get("$schema")) if isinstance(raw, dict) else ""
    return next((draft for prefix, draft in _DRAFTS.items() if prefix in uri), default)


def _resource(raw: Any, draft: str) -> Any:
    import referencing.jsonschema  # brokers without a schema registry do not need it

    return getattr(referencing.jsonschema, f"DRAFT{draft}").create_resource(raw)


def load(raw: Any, references: Mapping[str, Any]) -> Subschema:
    """The schema `raw`, with a resolver for its own identifiers and the references."""
    from jsonschema_specifications import REGISTRY  # a schema may refer to a metaschema

    draft = _draft(raw, _DEFAULT_DRAFT)
    root = _resource(raw, draft)
    others = {name: _resource(other, _draft(other, draft)) for name, other in references.items()}
    # A relative $ref is resolved against the $id of the schema that contains it.
    documents = [one for one in (root, *others.values()) if isinstance(one.contents, dict)]
    bases = ["", *(one.id() or "" for one in documents)]
    try:
        named = [(urljoin(base, name), o) for base in bases for name, o in others.items()]
        registry = REGISTRY.with_resources(named)
        return Subschema(raw, registry.resolver_with_root(root), draft, registry)
    except ValueError as error:
        raise InvalidSchema(f"An identifier of the schema is not a URI: {error}") from None


@dataclass(frozen=True, eq=False)
class Subschema:
    """A schema inside a document. `resolver` is that of referencing, in the scope of the schema;
    `registry` has all documents."""

    raw: Any
    resolver: Any
    draft: str
    registry: Any

    def child(self, raw: Any) -> Subschema:
        if not isinstance(raw, dict):
            return replace(self, raw=raw)
        resource = _resource(raw, self.draft)
        return replace(self, raw=raw, resolver=self.resolver.in_subresource(resource))

    def children(self) -> Iterator[Subschema]:
        if isinstance(self.raw, dict):
            for resource in _resource(self.raw, self.draft).subresources():
                yield self.child(resource.contents)

    def refs(self) -> list[str]:
        if isinstance(self.raw, bool):
            return []
        ignored = _IGNORED[self.draft]
        return [self.raw[key] for key in _REFS if key in self.raw and key not in ignored]

    def referenced(self, ref: str) -> Subschema:
        from referencing.exceptions import Unresolvable

        try:
            found = self.resolver.lookup(ref)
        except (Unresolvable, ValueError, TypeError, AttributeError):
            found = None
        if found is None or not isinstance(found.contents, dict | bool):
            message = f'$ref "{ref}" is neither in the schema nor a registered reference'
            raise InvalidSchema(message) from None
        draft = _draft(found.contents, self.draft)
        return Subschema(found.contents, found.resolver, draft, self.registry)

    def target(self) -> Subschema:
        """The schema that this one stands for: itself, unless it is only a reference."""
        here, passed = self, set()
        while (refs := here.refs()) and (here.draft not in _NEW_DRAFTS or len(here.parts()) == 1):
            if id(here.raw) in passed:
                raise InvalidSchema(f'$ref "{refs[0]}" refers to itself')
            passed.add(id(here.raw))
            here = here.referenced(refs[0])
        return here

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
                _check_keywords(found)
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

    validator = getattr(jsonschema, f"Draft{root.draft}Validator")
    errors = validator(root.raw, registry=root.registry).iter_errors(value)
    try:
        found = jsonschema.exceptions.best_match(errors)
    except RecursionError:
        return "$: the value, or its schema, is nested too deeply"
    except (re.error, ArithmeticError, ValueError) as error:
        return f"$: the value cannot be validated: {error}"
    return None if found is None else f"{found.json_path}: {found.message}"


def _check_keywords(schema: Subschema) -> None:
    import jsonschema  # brokers without a schema registry do not need it

    validator = getattr(jsonschema, f"Draft{schema.draft}Validator")
    try:
        # No formats: Python refuses some patterns that other languages accept.
        validator.check_schema(schema.raw, format_checker=jsonschema.FormatChecker([]))
    except jsonschema.SchemaError as error:
        path = "".join(f"/{step}" for step in error.path)
        message = " ".join(error.message.split())
        raise InvalidSchema(f"#{path}: {message[:200]}") from None


@dataclass(frozen=True, eq=False)
class Node:
    """A schema seen as one kind: a type, an untyped keyword, `any` or `never`.

    A schema with several kinds of keywords is an allOf of its parts, and a list of types an anyOf.
    """

    schema: Subschema
    kind: str
    name: str
    keywords: Mapping[str, Any]
    subschemas: tuple[Subschema, ...] = ()

    def child(self, keyword: str, default: Any = None) -> Subschema:
        return self.schema.child(self.keywords.get(keyword, default))

    def named(self, keyword: str) -> dict[str, Subschema]:
        found = self.keywords.get(keyword, {})
        return {key: self.schema.child(raw) for key, raw in found.items()}


def node_of(schema: Subschema) -> Node:
    """The node of a schema that is not only a reference."""
    parts = [] if isinstance(schema.raw, bool) else schema.parts()
    if not parts:
        kind, name = ("never", "no value") if schema.raw is False else ("any", "any value")
        return Node(schema, kind, name, {})
    if len(parts) > 1:
        name = " and ".join(str(part.get("type", next(iter(part)))) for part in parts)
        return Node(schema, "allOf", name, {}, tuple(replace(schema, raw=part) for part in parts))
    part = parts[0]
    for kind in _UNTYPED:
        if kind in part:
            combined = part[kind] if kind.endswith("Of") else []
            return Node(schema, kind, kind, part, tuple(schema.child(raw) for raw in combined))
    types = part.get("type")
    if isinstance(types, list):
        alternatives = (replace(schema, raw={**part, "type": one}) for one in types)
        return Node(schema, "anyOf", " or ".join(types), {}, tuple(alternatives))
    kinds = (one for one, keys in _KEYWORDS.items() if part.keys() & set(keys))
    kind = types or next(kinds, "any")
    return Node(schema, "number" if kind == "integer" else kind, kind, part)
