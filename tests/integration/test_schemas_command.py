"""`kafkapy schemas` with a registry that requires a login."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.cli.commands.schemas import LEVELS, TYPES
from kafkapy.schemas.records import Level, SchemaType
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.processes.schema_registry import SchemaRegistry
from tests.harness.scripted.cli import Outcome, kafkapy

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
WITH_NOTE = ORDER | {"fields": [*ORDER["fields"], {"name": "note", "type": "string"}]}
MANY_DIGITS = "x=y:" + "9" * 5000
POINT = 'syntax = "proto3";\n\nmessage Point {\n  int32 x = 1;\n}\n'
LINE = 'syntax = "proto3";\nimport "point.proto";\nmessage Line {\n  Point a = 1;\n}\n'


class Tool:
    """`kafkapy schemas` in a directory with files of schemas."""

    def __init__(self, registry: SchemaRegistry, directory: Path) -> None:
        self.words = ["--schema-registry", f"http://127.0.0.1:1,{registry.url}"]
        self.words += ["--command-config", str(directory / "login.properties")]
        self.directory = directory

    def __call__(self, *words: str) -> Outcome:
        return kafkapy("schemas", *self.words, *words)

    def file(self, name: str, content: object) -> str:
        path = self.directory / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    def registered(self, subject: str, file: str, *words: str) -> str:
        done = self("--register", "--subject", subject, "--schema-file", file, *words)
        assert done.status == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def tool(broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tool]:
    directory = tmp_path_factory.mktemp("schemas")
    (directory / "users").write_text("ann: secret\n")
    (directory / "login.properties").write_text("basic.auth.user.info=ann:secret\n")
    words = ("--users", str(directory / "users"), "--topic", "of-the-tool")
    with SchemaRegistry(directory / "out", broker.bootstrap_servers, *words) as registry:
        yield Tool(registry, directory)


def test_a_schema_is_checked_registered_and_described(tool: Tool) -> None:
    order, other = tool.file("order.avsc", ORDER), tool.file("other.avsc", WITH_NOTE)
    schema = ("--subject", "orders/value", "--schema-file")
    assert (
        tool("--check", *schema, order).stdout == "Subject orders/value would accept the schema.\n"
    )
    line = "Subject orders/value has the schema as version 1 with the id {}.\n"
    first = tool.registered("orders/value", order)
    schema_id = int(first.rstrip(".\n").rpartition(" ")[2])
    assert first == tool.registered("orders/value", order) == line.format(schema_id)
    refused = tool("--check", *schema, other)
    assert refused.status == 1
    assert "note" in refused.stdout
    assert refused.stderr.startswith(
        "Subject orders/value would refuse the schema: it is not compatible\n"
    )
    refused = tool("--register", *schema, other)
    assert refused.status == 1
    assert "incompatible with an earlier schema" in refused.stderr
    assert "http" not in refused.stderr
    done = tool("--alter", "--subject", "orders/value", "--compatibility", "FORWARD")
    assert done.stdout == "The compatibility level of subject orders/value is FORWARD.\n"
    assert "version 2" in tool.registered("orders/value", other)
    described = tool("--describe", "--subject", "orders/value").stdout.splitlines()
    assert described[::2] == [
        f"Subject: orders/value\tVersion: {each}\tId: {schema_id + each - 1}\tType: AVRO"
        "\tCompatibility: FORWARD"
        for each in (1, 2)
    ]
    assert [json.loads(each) for each in described[1::2]] == [ORDER, WITH_NOTE]
    latest = ("--describe", "--subject", "orders/value", "--schema-version", "latest")
    rows = tool(*latest, "--output", "json").data
    assert [(row["version"], row["compatibilityLevel"]) for row in rows] == [(2, "FORWARD")]


def test_references_and_protobuf(tool: Tool) -> None:
    tool.registered("point", tool.file("point.proto", POINT))
    line = tool.file("line.txt", LINE)
    words = ("--schema-type", "PROTOBUF", "--reference", "point.proto=point:-1")
    assert "version 1" in tool.registered("line", line, *words)
    shown = tool("--describe", "--subject", "line").stdout
    assert "Type: PROTOBUF" in shown
    assert "  Point a = 1;" in shown


def test_deletion(tool: Tool) -> None:
    tool.registered("gone", tool.file("gone.json", {"type": "integer"}))
    delete = ("--delete", "--subject", "gone")
    refused = tool(*delete, "--permanent")
    assert (refused.status, "was not deleted first" in refused.stderr) == (1, True)
    done = tool(*delete, "--schema-version", "1")
    assert done.stdout == "Soft-deleted version 1 of subject gone.\n"
    assert "gone" not in tool("--list").stdout.splitlines()
    assert "gone" in tool("--list", "--deleted").stdout.splitlines()
    assert "Version: 1" in tool("--describe", "--subject", "gone", "--deleted").stdout
    assert tool(*delete, "--permanent").stdout == "Removed version 1 of subject gone.\n"
    assert "gone" not in tool("--list", "--deleted").stdout.splitlines()
    missing = tool(*delete)
    assert missing.stderr == "Subject 'gone' not found.\n"


def test_the_choices_are_those_of_the_registry() -> None:
    assert sorted(TYPES) == sorted(SchemaType)
    assert sorted(LEVELS) == sorted(Level)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--list", "--describe"), "Command must include exactly one action: --list, --describe"),
        (("--describe",), 'Missing required argument "[subject]"'),
        (("--check", "--subject", "a"), 'Missing required argument "[schema-file]"'),
        (("--alter",), 'Missing required argument "[compatibility]"'),
        (("--alter", "--subject", "", "--compatibility", "NONE"), "--subject: expected a name"),
        (("--list", "--subject", "a"), 'Option "[subject]" can\'t be used with "list"'),
        (("--describe", "--subject", "nope"), "Subject 'nope' not found."),
        (
            ("--describe", "--subject", "nope", "--schema-version", "x"),
            "The specified version 'x' is not a valid version id.",
        ),
        (
            ("--register", "--subject", "a", "--schema-file", "/nope.avsc"),
            "Cannot read /nope.avsc: ",
        ),
        (
            ("--register", "--subject", "a", "--schema-file", "/nope.txt"),
            "--schema-type is required for a file with the suffix '.txt'",
        ),
        (
            ("--check", "--subject", "a", "--schema-file", "{order}", "--reference", "x=y"),
            "--reference: expected NAME=SUBJECT:VERSION, found 'x=y'",
        ),
        (
            ("--check", "--subject", "a", "--schema-file", "{order}", "--reference", MANY_DIGITS),
            f"--reference: expected NAME=SUBJECT:VERSION, found '{MANY_DIGITS}'",
        ),
        (
            ("--alter", "--compatibility", "SOME"),
            "--compatibility: expected one of BACKWARD, BACKWARD_TRANSITIVE, FORWARD, ",
        ),
        (
            ("--check", "--subject", "a", "--schema-file", "{order}", "--schema-type", "XML"),
            "--schema-type: expected one of AVRO, JSON, PROTOBUF, found 'XML'",
        ),
    ],
)
def test_mistakes_are_one_line(tool: Tool, words: tuple[str, ...], line: str) -> None:
    order = tool.file("order.avsc", ORDER)
    done = tool(*(word.format(order=order) for word in words))
    assert done.status == 1
    assert done.stdout == ""
    assert line in done.stderr.splitlines()[0]
    assert "Traceback" not in done.stderr


def test_without_the_login_or_a_registry(tool: Tool) -> None:
    url = tool.words[1].rpartition(",")[2]
    done = kafkapy("schemas", "--schema-registry", url, "--list")
    assert (done.status, done.stderr) == (
        1, "Unauthorized: this registry needs a user and a password\n",
    )  # fmt: skip
    done = kafkapy("schemas", "--schema-registry", "http://127.0.0.1:1", "--list")
    assert done.status == 1
    assert done.stderr.startswith("http://127.0.0.1:1/subjects: ")
    done = kafkapy("schemas", "--list")
    assert 'Missing required argument "[schema-registry]"' in done.stderr
