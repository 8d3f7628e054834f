"""`kafkapy schema-registry` with its clients, several registries, and brokers that stop."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    Metadata,
    MetadataProperties,
    RuleSet,
    Schema,
    SchemaRegistryClient,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.schema_registry.rule_registry import RuleRegistry
from confluent_kafka.schema_registry.serde import RuleContext, RuleExecutor
from confluent_kafka.serialization import (
    MessageField,
    SerializationContext,
    SerializationError,
)
from google.protobuf.timestamp_pb2 import Timestamp
from google.type import interval_pb2

from tests.conftest import BrokerFactory
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.processes.kafkapy_process import Kafkapy
from tests.harness.processes.schema_registry import SchemaRegistry
from tests.harness.security.certificates import can_make, make_identity

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
NOTE = {"name": "note", "type": "string", "default": ""}
NEXT_ORDER = ORDER | {"fields": [*ORDER["fields"], NOTE]}
WRONG_ORDER = ORDER | {"fields": [{"name": "id", "type": "string"}]}


@pytest.fixture(scope="module")
def registries(
    broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[SchemaRegistry]]:
    """Two registries of one cluster."""
    directory = tmp_path_factory.mktemp("registries")
    outputs = [directory / f"{number}.out" for number in (1, 2)]
    with (
        SchemaRegistry(outputs[0], broker.bootstrap_servers) as first,
        SchemaRegistry(outputs[1], broker.bootstrap_servers) as second,
    ):
        yield [first, second]


@pytest.fixture
def clients(registries: list[SchemaRegistry]) -> Iterator[list[SchemaRegistryClient]]:
    """A client of Confluent's for each registry."""
    with ExitStack() as stack:
        yield [stack.enter_context(SchemaRegistryClient({"url": each.url})) for each in registries]


def test_confluents_serializers(clients: list[SchemaRegistryClient]) -> None:
    writer, reader = clients
    context = SerializationContext("orders", MessageField.VALUE)
    data = AvroSerializer(writer, json.dumps(ORDER))({"id": 7}, context)
    later = AvroSerializer(writer, json.dumps(NEXT_ORDER))({"id": 8, "note": "x"}, context)
    read = AvroDeserializer(reader, json.dumps(NEXT_ORDER))
    assert [read(each, context) for each in (data, later)] == [
        {"id": 7, "note": ""},
        {"id": 8, "note": "x"},
    ]
    with pytest.raises(SchemaRegistryError, match="incompatible with an earlier schema") as raised:
        AvroSerializer(writer, json.dumps(WRONG_ORDER))({"id": "9"}, context)
    assert raised.value.error_code == 409
    assert reader.get_versions("orders-value") == [1, 2]


def test_confluents_serializers_with_the_schema_in_a_header(
    clients: list[SchemaRegistryClient],
) -> None:
    writer, reader = clients
    context = SerializationContext("headers", MessageField.VALUE, [])
    to_header = {"schema.id.serializer": header_schema_id_serializer}
    order = {"id": 7, "note": "header"}
    data = AvroSerializer(writer, json.dumps(NEXT_ORDER), conf=to_header)(order, context)
    assert data == b"\x0e\x0cheader"
    assert AvroDeserializer(reader)(data, context) == order
    span = interval_pb2.Interval(start_time=Timestamp(seconds=7))
    context = SerializationContext("header-spans", MessageField.VALUE, [])
    data = ProtobufSerializer(interval_pb2.Interval, writer, to_header)(span, context)
    assert data == span.SerializeToString()
    read = ProtobufDeserializer(interval_pb2.Interval, schema_registry_client=reader)
    assert read(data, context) == span


def test_confluents_json_serializers(clients: list[SchemaRegistryClient]) -> None:
    writer, reader = clients
    context = SerializationContext("invoices", MessageField.VALUE)
    schema = {
        "title": "Invoice",
        "type": "object",
        "properties": {"id": {"type": "integer"}},
        "additionalProperties": False,
    }
    serialize = JSONSerializer(json.dumps(schema), writer)
    data = serialize({"id": 7}, context)
    assert JSONDeserializer(None, schema_registry_client=reader)(data, context) == {"id": 7}
    narrowed = schema | {"properties": {"id": {"type": "integer", "maximum": 5}}}
    with pytest.raises(SchemaRegistryError, match="#/properties/id/maximum: maximum was added"):
        JSONSerializer(json.dumps(narrowed), writer)({"id": 3}, context)
    assert reader.get_latest_version("invoices-value").schema.schema_type == "JSON"


def test_confluents_protobuf_serializers(clients: list[SchemaRegistryClient]) -> None:
    """The serializer sends descriptors; the registry has .proto source for readers of others."""
    writer, reader = clients
    context = SerializationContext("spans", MessageField.VALUE)
    span = interval_pb2.Interval(start_time=Timestamp(seconds=7))
    data = ProtobufSerializer(interval_pb2.Interval, writer)(span, context)
    read = ProtobufDeserializer(interval_pb2.Interval, schema_registry_client=reader)
    assert read(data, context) == span
    latest = reader.get_latest_version("spans-value")
    assert latest.schema.schema_type == "PROTOBUF"
    source = str(latest.schema.schema_str)
    assert "  .google.protobuf.Timestamp start_time = 1;\n" in source
    assert reader.lookup_schema("spans-value", Schema(source, "PROTOBUF")).version == 1
    changed = source.replace(".google.protobuf.Timestamp start_time", "int64 start_time")
    with pytest.raises(SchemaRegistryError, match="message Interval, field 1: the type changed"):
        writer.register_schema("spans-value", Schema(changed, "PROTOBUF"))


def test_a_protobuf_serializer_and_its_deserializer_share_a_client(
    clients: list[SchemaRegistryClient],
) -> None:
    context = SerializationContext("own-spans", MessageField.VALUE)
    span = interval_pb2.Interval(start_time=Timestamp(seconds=7))
    data = ProtobufSerializer(interval_pb2.Interval, clients[0])(span, context)
    read = ProtobufDeserializer(interval_pb2.Interval, schema_registry_client=clients[0])
    assert read(data, context) == span


class Positive(RuleExecutor):
    """A type of rules: the field that the expression names is positive."""

    def type(self) -> str:
        return "POSITIVE"

    def configure(self, client_conf: dict[str, str], rule_conf: dict[str, str]) -> None:
        """There is nothing to configure."""

    def transform(self, ctx: RuleContext, message: Any) -> bool:
        return bool(message[ctx.rule.expr] > 0)


def test_confluents_data_contracts(
    registries: list[SchemaRegistry], clients: list[SchemaRegistryClient]
) -> None:
    """Clients select versions by metadata, and run the rules that the registry has."""
    writer, reader = clients
    rule = {"name": "sold", "kind": "CONDITION", "type": "POSITIVE", "mode": "WRITE", "expr": "id"}
    registries[0]("PUT", "/config/contracts-value", {"compatibilityGroup": "major"})
    for schema, major in ((ORDER, "1"), (WRONG_ORDER, "2")):
        contract = Metadata(None, MetadataProperties({"major": major}), None)
        rules = RuleSet.from_dict({"domainRules": [rule] if major == "1" else []})
        text = json.dumps(schema)
        writer.register_schema("contracts-value", Schema(text, "AVRO", [], contract, rules))
    first = reader.get_latest_with_metadata("contracts-value", {"major": "1"})
    assert (first.version, reader.get_latest_version("contracts-value").version) == (1, 2)
    context = SerializationContext("contracts", MessageField.VALUE)
    conf = {"auto.register.schemas": False, "use.latest.with.metadata": {"major": "1"}}
    executors = RuleRegistry()
    executors.register_executor(Positive())
    serialize = AvroSerializer(reader, None, conf=conf, rule_registry=executors)
    data = serialize({"id": 7}, context)
    assert AvroDeserializer(writer)(data, context) == {"id": 7}
    with pytest.raises(SerializationError) as raised:
        serialize({"id": -7}, context)
    assert "Rule expr failed: id" in str(raised.value.__cause__)


def test_confluents_client(clients: list[SchemaRegistryClient]) -> None:
    client, schema = clients[0], Schema(json.dumps(ORDER), "AVRO")
    schema_id = client.register_schema("admin/client", schema)
    assert client.lookup_schema("admin/client", schema).schema_id == schema_id
    assert json.loads(str(client.get_schema(schema_id).schema_str)) == ORDER
    assert client.get_latest_version("admin/client").version == 1
    assert "admin/client" in client.get_subjects()
    assert not client.test_compatibility("admin/client", Schema(json.dumps(WRONG_ORDER), "AVRO"))
    client.set_compatibility("admin/client", "NONE")
    assert client.get_compatibility("admin/client") == "NONE"
    assert client.register_schema("admin/client", Schema(json.dumps(WRONG_ORDER), "AVRO"))
    assert client.delete_version("admin/client", 1) == 1
    assert client.delete_subject("admin/client") == [2]
    assert client.delete_subject("admin/client", permanent=True) == [1, 2]


def test_registries_that_write_at_the_same_time_agree(registries: list[SchemaRegistry]) -> None:
    """Each of the eight schemas has one id, whichever registry wrote it first."""

    def register(number: int) -> tuple[str, int]:
        schema = json.dumps({"type": "fixed", "name": f"F{number % 8}", "size": 4})
        registry = registries[number % 3 % 2]
        answer = registry("POST", f"/subjects/busy-{number}/versions", {"schema": schema})
        assert answer.status == 200, answer
        return schema, answer.json["id"]

    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(register, range(24)))
    assert len(set(found)) == len({schema for schema, _ in found}) == 8
    assert len({schema_id for _, schema_id in found}) == 8
    for registry in registries:
        subjects = registry("GET", "/subjects?subjectPrefix=busy-").json
        assert len(subjects) == 24
        for schema, schema_id in found:
            text = registry("GET", f"/schemas/ids/{schema_id}").json["schema"]
            assert json.loads(text) == json.loads(schema)


def test_a_registry_that_starts_reads_the_topic(
    registries: list[SchemaRegistry], broker: BrokerProcess, tmp_path: Path
) -> None:
    body = {"schema": json.dumps(ORDER)}
    schema_id = registries[0]("POST", "/subjects/kept/versions", body).json["id"]
    described = Kafkapy(broker.bootstrap_servers)("topics", "--describe", "--topic", "_schemas")
    assert "PartitionCount: 1" in described.stdout
    assert "cleanup.policy=compact" in described.stdout
    with SchemaRegistry(tmp_path / "out", broker.bootstrap_servers) as third:
        assert third("POST", "/subjects/kept", body).json["id"] == schema_id
        assert third.stop() == 0


def test_a_topic_that_is_created_again(broker: BrokerProcess, tmp_path: Path) -> None:
    kafkapy, words = Kafkapy(broker.bootstrap_servers), ("--topic", "again")
    schemas = [{"schema": json.dumps({"type": "fixed", "name": "F", "size": n})} for n in range(4)]
    with SchemaRegistry(tmp_path / "1", broker.bootstrap_servers, *words) as first:
        for i in range(3):
            assert first("POST", f"/subjects/old-{i}/versions", schemas[i]).status == 200
        assert kafkapy("topics", "--delete", *words).returncode == 0
        assert first("GET", "/subjects").status == 500
        with SchemaRegistry(tmp_path / "2", broker.bootstrap_servers, *words) as second:
            assert second("POST", "/subjects/a/versions", schemas[3]) == (200, {"id": 1})
            assert first("POST", "/subjects/b/versions", schemas[0]) == (200, {"id": 2})
            assert first("GET", "/subjects") == second("GET", "/subjects") == (200, ["a", "b"])


def test_errors_of_http(registries: list[SchemaRegistry]) -> None:
    registry = registries[0]
    assert registry("GET", "/nope") == (404, {"error_code": 404, "message": "HTTP 404 Not Found"})
    assert registry("PUT", "/subjects").status == 405
    assert registry("POST", "/subjects/a/versions", ["schema"]).status == 400
    assert registry("GET", "/subjects/a%2Fb/versions").json["message"] == "Subject 'a/b' not found."
    too_large = {"schema": "x" * (2 << 20)}
    assert registry("POST", "/subjects/a/versions", too_large).status == 413


def test_known_schemas_are_served_without_kafka(
    broker_factory: BrokerFactory, tmp_path: Path
) -> None:
    """Consumers that start then can read records; nothing else is answered from old state."""
    broker = broker_factory()
    properties = tmp_path / "client.properties"
    # The last one is that of `kafkapy schemas`, which may share the file.
    lines = ("default.api.timeout.ms=1000", "request.timeout.ms=500", "basic.auth.user.info=a:b")
    properties.write_text("\n".join(lines))
    words = ("--command-config", str(properties))
    with SchemaRegistry(tmp_path / "out", broker.bootstrap_servers, *words) as registry:
        registry("POST", "/subjects/a/versions", {"schema": '"string"'})
        broker.stop()
        known = {"guid": "095d71cf-1255-6b9d-5e33-0ad575b3df5d", "schema": '"string"'}
        assert registry("GET", "/schemas/ids/1") == (200, known)
        assert registry("GET", "/schemas/ids/1?format=resolved") == (200, known)
        assert registry("GET", "/schemas/types").status == 200
        for method, path in (("GET", "/subjects"), ("DELETE", "/subjects/a")):
            answer = registry(method, path)
            assert (answer.status, answer.json["error_code"]) == (500, 50001)
        broker.start()
        assert registry("GET", "/subjects") == (200, ["a"])
        assert registry("DELETE", "/subjects/a") == (200, [1])
        assert "rdkafka" not in registry.output.read_text(), "a line for each attempt to connect"


def test_users_log_in_and_some_only_read(broker: BrokerProcess, tmp_path: Path) -> None:
    """A user that only reads may register a schema that is there, as serializers do."""
    users = tmp_path / "users.properties"
    users.write_text("ann: secret\nbob: hidden,read-only\n")
    words = ("--users", str(users), "--topic", "of-users")
    with SchemaRegistry(tmp_path / "out", broker.bootstrap_servers, *words) as registry:

        def client(login: str) -> SchemaRegistryClient:
            return SchemaRegistryClient({"url": registry.url, "basic.auth.user.info": login})

        order, later = (Schema(json.dumps(each), "AVRO") for each in (ORDER, NEXT_ORDER))
        with client("ann:secret") as ann, client("bob:hidden") as bob:
            schema_id = ann.register_schema("a", order)
            assert bob.register_schema("a", order) == schema_id
            assert bob.test_compatibility("a", later)
            for refused in (
                lambda: bob.register_schema("a", later),
                lambda: bob.delete_subject("a"),
                lambda: bob.set_compatibility("a", "NONE"),
            ):
                with pytest.raises(SchemaRegistryError, match="may only read") as raised:
                    refused()
                assert (raised.value.http_status_code, raised.value.error_code) == (403, 40301)
            assert ann.get_versions("a") == [1]
        with client("ann:hidden") as wrong, pytest.raises(SchemaRegistryError) as raised:
            wrong.get_subjects()
        assert (raised.value.http_status_code, raised.value.error_code) == (401, 401)
        with pytest.raises(urllib.error.HTTPError) as failed:
            urllib.request.urlopen(f"{registry.url}/schemas/types")
        with failed.value as answer:
            assert answer.headers["WWW-Authenticate"].startswith("Basic realm=")


def test_pages_of_other_sites_are_refused(registries: list[SchemaRegistry]) -> None:
    """Without a login, any page in a browser on this machine could register schemas."""
    url, data = f"{registries[0].url}/subjects/page/versions", b'{"schema": "\\"int\\""}'
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1"):
        request = urllib.request.Request(url, data, {"Origin": origin})
        with pytest.raises(urllib.error.HTTPError) as raised:
            urllib.request.urlopen(request)
        with raised.value as answer:
            assert answer.status == 403
    with urllib.request.urlopen(
        urllib.request.Request(url, data, {"Origin": registries[0].url})
    ) as response:
        assert response.status == 200


def test_https(broker: BrokerProcess, tmp_path: Path) -> None:
    if not can_make("HTTPS of the schema registry"):
        return
    identity = make_identity(tmp_path, "registry")
    words = ("--tls-certificate", str(identity))
    registry = SchemaRegistry(tmp_path / "out", broker.bootstrap_servers, *words)
    registry.url = registry.url.replace("http:", "https:")
    with registry:
        context = ssl.create_default_context(cafile=str(identity.with_suffix(".crt")))
        with urllib.request.urlopen(f"{registry.url}/subjects", context=context) as response:
            assert response.status == 200


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--listener", "8081"), "--listener: expected HOST:PORT, found '8081'"),
        (("--listener", "127.0.0.1:99999"), "--listener: expected HOST:PORT"),
        (("--tls-key", "x"), "--tls-key needs --tls-certificate"),
        (("--tls-certificate", "/nope"), "--tls-certificate /nope: [Errno 2] No such file"),
        (("--tls-certificate", __file__), f"--tls-certificate {__file__}: expected certificates"),
        (("--listener", "no-host.invalid:1"), "Cannot listen on no-host.invalid:1: "),
        (("--users", "/nope"), "Cannot read /nope: No such file or directory"),
        (("--topic", "several"), "Topic several has 2 partitions; the topic of schemas has one"),
        (("--topic", "expires"), "Topic expires has cleanup.policy=delete, by which"),
        (("--listener", "{taken}"), "Cannot listen on {taken}: "),
    ],
)
def test_a_start_that_fails_says_why(
    broker: BrokerProcess, words: tuple[str, str], line: str
) -> None:
    kafkapy = Kafkapy(broker.bootstrap_servers)
    kafkapy("topics", "--create", "--topic", "several", "--partitions", "2", "--if-not-exists")
    kafkapy("topics", "--create", "--topic", "expires", "--if-not-exists")
    taken = broker.bootstrap_servers
    given = [word.format(taken=taken) for word in words]
    if "--listener" not in given:
        given += ["--listener", "127.0.0.1:0"]
    done = kafkapy("schema-registry", *given)
    assert done.returncode != 0
    assert line.format(taken=taken) in done.stderr
    assert "Traceback" not in done.stderr
    assert "Hint: " not in done.stderr, "hints are about the brokers"
