"""Reads schemas from a schema registry: kafkapy's, or another with Confluent's REST API."""

from __future__ import annotations

import base64
import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

from kafkapy.common.comma_separated import comma_separated
from kafkapy.common.errors import ConfigError, KafkapyError
from kafkapy.schemas.contract import RuleSet, read_contract
from kafkapy.schemas.records import Reference, SchemaType, read_references
from kafkapy.schemas.references import texts_of
from kafkapy.schemas.wire_format import SchemaId

T = TypeVar("T")

_TIMEOUT_S: Final = 10
_WRITE_TIMEOUT_S: Final = 30  # a registry tries a write again for 20 s
CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_RESPONSE_BYTES_MAX: Final = 16 << 20


class RegistryError(KafkapyError):
    """No registry answered, or one answered with an error; the message has the URL."""


class Refused(RegistryError):
    """A registry refuses the request; others would too. `reason` is the message without the URL."""

    def __init__(self, url: str, status: int, reason: str) -> None:
        super().__init__(url, status, reason)  # with these it is pickled, for Spark's driver
        self.reason = reason

    def __str__(self) -> str:
        url, status, reason = self.args
        return f"{url}: HTTP {status} {reason}"


class NotRegistered(Refused):
    """The registry does not have the schema or the subject."""


class RegisteredSchema(NamedTuple):
    """A schema, its id, and the texts of its references by name, each after those that it refers to
    itself. `write_rules` are the names of the rules that a client runs before it writes."""

    schema_id: SchemaId
    schema_type: SchemaType
    text: str
    references: tuple[tuple[str, str], ...]
    write_rules: tuple[str, ...] = ()

    def check_may_write(self) -> None:
        """
        Raises:
            ConfigError: there are rules, which kafkapy does not run: a value could break them.
        """
        if self.write_rules:
            raise ConfigError(
                f"The schema {self.schema_id} has rules for values that are written, which kafkapy "
                f"does not run: {', '.join(self.write_rules)}"
            )


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """urllib would send the credentials to the other host too."""

    def redirect_request(self, *args: Any, **more: Any) -> None:
        return None


# Ignores `http_proxy`, as Kafka's clients do.
_OPENER: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects)


class RegistryClient(NamedTuple):
    """The URLs of a cluster's registries, and "user:password" for HTTP's basic authentication. It
    keeps no connection."""

    urls: tuple[str, ...]
    user_info: str | None = None

    def latest(self, subject: str) -> RegisteredSchema:
        """The latest version of a subject.

        Raises:
            NotRegistered: there is no such subject.
            RegistryError: no registry answers.
        """
        return self._registered(self._get(f"subjects/{in_path(subject)}/versions/latest"))

    def of_id(self, schema_id: SchemaId) -> RegisteredSchema:
        """The schema with an id.

        Raises:
            NotRegistered: there is none.
            RegistryError: no registry answers.
        """
        kind = "ids" if isinstance(schema_id, int) else "guids"
        return self._registered(self._get(f"schemas/{kind}/{schema_id}") | {"id": schema_id})

    def _registered(self, answer: dict[str, Any]) -> RegisteredSchema:
        references = self._references(answer)
        kind = answer.get("schemaType", SchemaType.AVRO)
        try:
            schema_type = SchemaType(kind)
        except ValueError:
            raise RegistryError(
                f"schema {answer['id']} is of the type {kind}; expected one of "
                f"{', '.join(SchemaType)}"
            ) from None
        try:
            rules = read_contract(None, answer.get("ruleSet")).rules or RuleSet()
        except ValueError as error:
            raise RegistryError(f"schema {answer['id']} has malformed rules: {error}") from None
        return RegisteredSchema(
            answer["id"], schema_type, answer["schema"], references, rules.write_rules
        )

    def _references(self, answer: dict[str, Any]) -> tuple[tuple[str, str], ...]:
        def find(reference: Reference) -> tuple[str, Iterable[Reference]]:
            path = f"subjects/{in_path(reference.subject)}/versions/{reference.version}"
            # Values remain after the soft deletion of a reference.
            referred = self._get(f"{path}?deleted=true")
            return referred["schema"], read_references(referred.get("references"))

        try:
            found = texts_of(read_references(answer.get("references")), find)
        except ValueError as error:
            raise RegistryError(f"schema {answer['id']}: {error}") from None
        return tuple(found.items())

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The JSON that the first registry answers that can be reached.

        Raises:
            Refused: a registry refuses the request; NotRegistered: HTTP 404.
            RegistryError: no registry answers.
        """
        data = None if body is None else json.dumps(body).encode()
        return self._first(lambda url: self._send(f"{url}/{path}", method, data))

    def _get(self, path: str) -> dict[str, Any]:
        """The first answer with a schema."""

        def get(url: str) -> dict[str, Any]:
            answer = self._send(f"{url}/{path}")
            if not isinstance(answer, dict) or not isinstance(answer.get("schema"), str):
                raise RegistryError(f"{url}/{path}: the answer is not of a schema registry")
            return answer

        return self._first(get)

    def _first(self, ask: Callable[[str], T]) -> T:
        failures = []
        for url in self.urls:
            try:
                return ask(url)
            except Refused:
                raise
            except RegistryError as error:
                failures.append(str(error))
        raise RegistryError("; ".join(failures))

    def _send(self, url: str, method: str = "GET", body: bytes | None = None) -> Any:
        request = urllib.request.Request(url, body, {"Content-Type": CONTENT_TYPE}, method=method)
        if self.user_info is not None:
            credentials = base64.b64encode(self.user_info.encode()).decode("ascii")
            request.add_unredirected_header("Authorization", f"Basic {credentials}")
        timeout_s = _TIMEOUT_S if method == "GET" else _WRITE_TIMEOUT_S
        try:
            with _OPENER.open(request, timeout=timeout_s) as response:
                return json.loads(response.read(_RESPONSE_BYTES_MAX))
        except urllib.error.HTTPError as error:
            with error:
                raise _refusal(url, error.code, _message(error)) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            raise RegistryError(f"{url}: {reason}") from None


def registry_client(urls: str, user_info: str | None = None) -> RegistryClient:
    """A client of the registries with these URLs, comma-separated.

    Raises:
        ConfigError: there is no URL, one is not of http or https, or one has credentials.
    """
    given = tuple(url.rstrip("/") for url in comma_separated(urls))
    for url in given:
        if "@" in url:
            raise ConfigError(
                f"the URL of {url.rpartition('@')[2]} has credentials, which every user of this"
                " machine can read: give them as basic.auth.user.info"
            )
        if not _is_of_registry(url):
            raise ConfigError(
                f"{url!r} is not the URL of a schema registry, such as http://127.0.0.1:8081"
            )
    if not given:
        raise ConfigError("expected the URL of a schema registry, such as http://127.0.0.1:8081")
    return RegistryClient(given, user_info)


def _is_of_registry(url: str) -> bool:
    try:
        parts = urlsplit(url)
        # The resolver takes port 65537 for port 1.
        is_complete = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and is_complete and not parts.query


def in_path(name: str) -> str:
    """A subject as a part of a path."""
    return quote(name, safe="")


def _refusal(url: str, status: int, reason: str) -> RegistryError:
    if status == http.HTTPStatus.NOT_FOUND:
        return NotRegistered(url, status, reason)
    if http.HTTPStatus.BAD_REQUEST <= status < http.HTTPStatus.INTERNAL_SERVER_ERROR:
        return Refused(url, status, reason)
    return RegistryError(f"{url}: HTTP {status} {reason}")


def _message(error: urllib.error.HTTPError) -> str:
    """The message in the body of a registry's error, or HTTP's own."""
    try:
        answer = json.loads(error.read(_RESPONSE_BYTES_MAX))
    except (OSError, http.client.HTTPException, ValueError):
        return error.reason
    message = answer.get("message") if isinstance(answer, dict) else None
    return message if isinstance(message, str) else error.reason
