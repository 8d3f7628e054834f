"""registry_client: schemas by HTTP, from the first registry that answers."""

from __future__ import annotations

import base64
import json
import pickle
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from uuid import UUID

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.schemas.records import SchemaType
from kafkapy.schemas.registry_client import (
    NotRegistered,
    RegisteredSchema,
    RegistryClient,
    RegistryError,
    registry_client,
)

UNREACHABLE = "http://127.0.0.1:1"


class Handler(BaseHTTPRequestHandler):
    """Answers as the test has set, and collects the requests."""

    answers: ClassVar[dict[str, tuple[int, Any]]]
    requests: ClassVar[list[tuple[str, str | None]]]

    def do_GET(self) -> None:
        self.requests.append((self.path, self.headers["Authorization"]))
        status, answer = self.answers.get(self.path, (404, {"message": "nothing here"}))
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    Handler.answers, Handler.requests = {}, []
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_the_latest_schema_with_its_references_in_order(url: str) -> None:
    Handler.answers = {
        "/subjects/a%2Fb-value/versions/latest": (
            200,
            {
                "id": 7,
                "schemaType": "PROTOBUF",
                "schema": "main",
                "references": [
                    {"name": "one.proto", "subject": "one", "version": 3},
                    {"name": "two.proto", "subject": "two", "version": 1},
                ],
            },
        ),
        "/subjects/one/versions/3?deleted=true": (
            200,
            {"schema": "1", "references": [{"name": "two.proto", "subject": "two", "version": 1}]},
        ),
        "/subjects/two/versions/1?deleted=true": (200, {"schema": "2"}),
    }
    assert RegistryClient((url,)).latest("a/b-value") == RegisteredSchema(
        7, SchemaType.PROTOBUF, "main", (("two.proto", "2"), ("one.proto", "1"))
    )
    paths = [path for path, _ in Handler.requests]
    assert paths.count("/subjects/two/versions/1?deleted=true") == 1


def test_a_schema_by_its_id_with_a_login(url: str) -> None:
    Handler.answers = {"/schemas/ids/5": (200, {"schema": '"long"'})}
    client = registry_client(f"{UNREACHABLE}, {url}/", "user:p:w")
    assert client.of_id(5) == RegisteredSchema(5, SchemaType.AVRO, '"long"', ())
    assert Handler.requests == [
        ("/schemas/ids/5", "Basic " + base64.b64encode(b"user:p:w").decode())
    ]


def test_a_soft_deleted_reference_is_found(url: str) -> None:
    """Values with the schema can still be read, as with Confluent's clients."""
    reference = {"name": "R", "subject": "r", "version": 2}
    Handler.answers = {
        "/schemas/ids/5": (200, {"schema": '"R"', "references": [reference]}),
        "/subjects/r/versions/2?deleted=true": (200, {"schema": "deleted"}),
    }
    assert RegistryClient((url,)).of_id(5).references == (("R", "deleted"),)


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ({"name": "R", "version": 1}, "schema 5: a reference has a name, a subject and a version"),
        (7, "schema 5: a reference has"),
        ({"name": "R", "subject": "r", "version": "x"}, "schema 5: invalid literal"),
    ],
)
def test_a_malformed_reference(url: str, reference: Any, expected: str) -> None:
    Handler.answers = {"/schemas/ids/5": (200, {"schema": '"R"', "references": [reference]})}
    with pytest.raises(RegistryError, match=expected):
        RegistryClient((url,)).of_id(5)


def test_a_schema_by_its_guid(url: str) -> None:
    guid = UUID("1d20cbb9-e5e3-5e97-54e7-da170b6e5ddb")
    Handler.answers = {f"/schemas/guids/{guid}": (200, {"schema": '"long"', "guid": str(guid)})}
    found = RegistryClient((url,)).of_id(guid)
    assert found == RegisteredSchema(guid, SchemaType.AVRO, '"long"', ())


def test_a_schema_with_rules_cannot_be_written(url: str) -> None:
    """kafkapy runs no rule, such as a condition of values, or an encryption of fields."""
    rule = {"name": "checked", "type": "CEL", "mode": "WRITEREAD"}
    rules = {
        "migrationRules": [rule | {"name": "m", "mode": "UPDOWN"}],
        "domainRules": [
            rule,
            rule | {"name": "r", "mode": "READ"},
            rule | {"name": "off", "disabled": True},
        ],
        "encodingRules": [rule | {"name": "encrypted", "mode": "WRITE"}],
    }
    Handler.answers = {
        "/schemas/ids/5": (200, {"schema": '"long"', "ruleSet": rules}),
        "/schemas/ids/7": (200, {"schema": '"long"', "ruleSet": {"domainRules": {}}}),
    }
    client = registry_client(url)
    with pytest.raises(ConfigError) as raised:
        client.of_id(5).check_may_write()
    assert str(raised.value) == (
        "The schema 5 has rules for values that are written, which kafkapy does not run: checked, "
        "encrypted"
    )
    with pytest.raises(RegistryError, match="schema 7 has malformed rules: domainRules: expected"):
        client.of_id(7)


def test_what_is_not_registered_is_not_asked_elsewhere(url: str) -> None:
    expected = f"{url}/schemas/ids/9: HTTP 404 nothing here"
    with pytest.raises(NotRegistered, match=expected) as raised:
        RegistryClient((url, UNREACHABLE)).of_id(9)
    copy = pickle.loads(pickle.dumps(raised.value))
    assert str(copy) == expected, "Spark's workers send it to the driver"


@pytest.mark.parametrize(
    ("status", "answer", "expected"),
    [
        (401, b"<html>", "HTTP 401 Unauthorized"),
        (500, {"message": "broken"}, "HTTP 500 broken"),
        (302, {}, "HTTP 302 Found"),
        (200, b"<html>", "Expecting value"),
        (200, [], "the answer is not of a schema registry"),
        (200, {"schema": 7}, "the answer is not of a schema registry"),
        (200, {"schema": "x", "schemaType": "XML"}, "schema 1 is of the type XML; expected one of"),
    ],
)
def test_other_answers(url: str, status: int, answer: Any, expected: str) -> None:
    """A redirect too: the login would go to another host."""
    Handler.answers = {"/schemas/ids/1": (status, answer)}
    with pytest.raises(RegistryError, match=expected) as raised:
        RegistryClient((url,), "user:secret").of_id(1)
    assert not isinstance(raised.value, NotRegistered)
    assert "secret" not in str(raised.value)


def test_all_registries_that_cannot_be_reached_are_named() -> None:
    with pytest.raises(RegistryError, match=r"127\.0\.0\.1:1/schemas/ids/1: .*; http://\[::1\]:1/"):
        RegistryClient((UNREACHABLE, "http://[::1]:1")).of_id(1)


@pytest.mark.parametrize(
    ("urls", "expected"),
    [
        ("localhost:8081", "'localhost:8081' is not the URL of a schema registry"),
        ("http://", "is not the URL"),
        ("http://[::1", "is not the URL"),
        ("http://localhost:99999", "is not the URL"),
        ("http://localhost:port", "is not the URL"),
        ("http://localhost:8081?x=1", "is not the URL"),
        ("http://user:pw@[::1", "has credentials"),
        (" , ", "expected the URL of a schema registry"),
        ("https://user:pw@host", "the URL of host has credentials.*basic.auth.user.info"),
    ],
)
def test_urls(urls: str, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected) as raised:
        registry_client(urls)
    assert "pw" not in str(raised.value)
