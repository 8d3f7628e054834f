"""`kafkapy spark-submit`: its own words sorted from Spark's, and SQL from topic to topic.

Scripts are run by tests/spark/test_fork_server.py.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from base64 import b64encode
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest
from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from dev.docs.mistakes_page import mistakes
from kafkapy.cli.commands.spark_submit import COMMAND, SparkSubmitOptions
from kafkapy.testing import SchemaRegistry
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.processes.topics import QUIET
from tests.harness.processes.waiting import wait_until
from tests.harness.spark.spark_topics import Topic


@pytest.mark.parametrize(
    ("line", "own", "theirs"),
    [
        ("job.py", {}, "job.py"),
        ("--from a job.py --from b", {"from_": "a"}, "job.py --from b"),
        ("--master x --from=a --verbose job.py", {"from_": "a"}, "--master x --verbose job.py"),
        ("--name --from job.py", {}, "--name --from job.py"),  # a value that looks like ours
        ("--once --conf a=b job.py --once", {"once": True}, "--conf a=b job.py --once"),
        ("--conf=a=b -c", {}, "--conf=a=b -c"),
        ("--help", {"help": True}, ""),
        ("job.py --help", {}, "job.py --help"),
    ],
)
def test_words_are_sorted_up_to_the_script(line: str, own: dict[str, Any], theirs: str) -> None:
    assert COMMAND.read(line.split()) == SparkSubmitOptions(words=theirs.split(), **own)


TOPIC = ["--from", "t", "--bootstrap-server", "b:1"]


def run(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    executable = Path(sys.executable).parent / "kafkapy"
    return subprocess.run(
        [str(executable), "spark-submit", *words],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **environ},
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--from", "t"], "Name the script to run"),
        (["--from", "t", "job.py"], "--bootstrap-server is required with --from and --to"),
        (["--from", "t", "--bootstrap-server", "b:1", "nowhere.py"], "Cannot read the script"),
        (["--sql", "SELECT 1", "--from", "t", "job.py"], "job.py is one"),
        (["--sql", "SELECT 1"], "--from is required with --sql"),
        (["--once", "job.py"], "--once is for streams: it needs --checkpoint"),
        (["--metrics-port", "1", "job.py"], "--metrics-port is for streams"),
        (
            [*TOPIC, "--checkpoint=c", "--metrics-port=65536", "j.py"],
            "--metrics-port must be 1 to 65535, not 65536",
        ),
        (["--columns", "value", "job.py"], "--columns names columns of the topics"),
        (
            ["--from", "t", "--bootstrap-server", "b:1", "--columns=key", "--schema=a INT", "j.py"],
            "--schema reads the column value, which --columns leaves out",
        ),
        (
            [*TOPIC, "--columns=key", "--schema-registry=http://r", "--from-subject=s", "j.py"],
            "--from-subject reads the column value, which --columns leaves out",
        ),
        (["--from-subject", "s", "job.py"], "--from-subject needs --schema-registry"),
        (
            [*TOPIC, "--columns=value", "--schema-registry=http://r", "--from-key-subject=s", "j"],
            "--from-key-subject reads the column key, which --columns leaves out",
        ),
        (["--from-message", "m", "job.py"], "--from-message needs --from-subject"),
        (["--to-key-message", "m", "job.py"], "--to-key-message needs --to-key-subject"),
        (
            ["--keep-corrupt-records", "job.py"],
            "--keep-corrupt-records needs --from-subject or --from-key-subject",
        ),
        (["--to-message", "m", "job.py"], "--to-message needs --to-subject"),
        (["--schema-registry=http://r", "--to-subject=s", "j.py"], "--to-subject needs --to"),
        (["--schema-registry=http://r", "--from-subject=s", "j.py"], "--from-subject needs --from"),
        (
            [*TOPIC, "--schema-registry=http://r", "--from-subject=s", "--schema=a INT", "job.py"],
            "--schema is for JSON values without a schema: it excludes --from-subject",
        ),
        (
            [*TOPIC, "--schema-registry=r:8081", "--from-subject=s", "--sql", "SELECT 1"],
            "'r:8081' is not the URL of a schema registry",
        ),
        (
            [*TOPIC, "--schema-registry=http://r", "--sql", "SELECT 1"],
            "--schema-registry needs a subject, such as --from-subject",
        ),
    ],
)
def test_one_line_for_what_is_wrong(words: list[str], message: str) -> None:
    done = run(*words)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_help_says_what_is_added() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert "--from TOPICS" in done.stdout
    assert "--checkpoint DIR" in done.stdout


def test_sql_between_topics_until_their_end(broker: BrokerProcess, tmp_path: Path) -> None:
    source, target = (Topic(broker.bootstrap_servers) for _ in range(2))
    source.send((0, None, b'{"user": "u%d", "n": %d}' % (i % 2, i)) for i in range(10))
    words = ["--from", source.name, "--to", target.name, "--once"]
    words += ["--bootstrap-server", broker.bootstrap_servers, "--checkpoint", str(tmp_path / "c")]
    words += ["--schema", "user STRING, n INT", "--sql", "SELECT user, n FROM records WHERE n > 3"]
    (tmp_path / "tmp").mkdir()
    conf = ["--master", "local[1]", "--conf", "spark.ui.enabled=false"]
    status, seen = run_on_terminal(*conf, *words, TMPDIR=str(tmp_path / "tmp"))
    assert status == 0, seen
    assert " INFO " not in seen
    assert "registered data source" not in seen
    assert re.search(f"^batch 0: 10 rows in .* lag {source.name} 0$", seen, re.M), seen
    wait_until(  # the fork server ends after the job
        lambda: not list((tmp_path / "tmp").glob("kafkapy-*")), "no file is left"
    )
    values = values_of(target, 6)
    assert values == [{"user": f"u{n % 2}", "n": n} for n in range(4, 10)]


def test_ctrl_c_ends_a_stream_without_a_traceback(broker: BrokerProcess, tmp_path: Path) -> None:
    topic, checkpoint = Topic(broker.bootstrap_servers), tmp_path / "c"
    topic.write(1)
    words = ["--master", "local[1]", "--conf", "spark.ui.enabled=false", "--from", topic.name]
    words += ["--bootstrap-server", broker.bootstrap_servers, "--checkpoint", str(checkpoint)]
    command = [str(Path(sys.executable).parent / "kafkapy"), "spark-submit", *words]
    with subprocess.Popen(
        [*command, "--sql", "SELECT value FROM records"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            wait_until((checkpoint / "commits" / "0").exists, "a batch is done", 120)
        finally:
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        said = process.communicate()[0]
    assert process.returncode == 130
    assert "/py4j/" not in said, said


class LoginProxy(BaseHTTPRequestHandler):
    """Passes requests with a login on to the registry at `url`."""

    url: ClassVar[str]

    def do_GET(self) -> None:
        if self.headers["Authorization"] != f"Basic {b64encode(b'ann:pw').decode()}":
            self.send_error(401)
            return
        with urllib.request.urlopen(self.url + self.path) as answer:
            body = answer.read()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


def test_avro_values_with_the_property_file_of_confluents_clients(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    source, target = (Topic(broker.bootstrap_servers) for _ in range(2))
    schema = '{"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}'
    config = tmp_path / "client.properties"
    config.write_text(
        "schema.registry.url=http://ignored\nbasic.auth.credentials.source=USER_INFO\n"
        "basic.auth.user.info=ann:pw\n"
    )
    with (
        SchemaRegistry(broker.bootstrap_servers) as registry,
        SchemaRegistryClient({"url": registry.url}) as client,
        ThreadingHTTPServer(("127.0.0.1", 0), LoginProxy) as proxy,
    ):
        serialize = AvroSerializer(client, schema)
        serialize_key = AvroSerializer(client, '"long"')
        of_value = SerializationContext(source.name, MessageField.VALUE)
        of_key = SerializationContext(source.name, MessageField.KEY)
        source.send(
            (0, serialize_key(n * 10, of_key), serialize({"n": n}, of_value)) for n in range(5)
        )
        LoginProxy.url = registry.url
        thread = Thread(target=proxy.serve_forever, args=(0.01,))
        thread.start()
        words = ["--from", source.name, "--to", target.name, "--command-config", str(config)]
        words += ["--bootstrap-server", broker.bootstrap_servers]
        words += ["--schema-registry", f"http://127.0.0.1:{proxy.server_port}"]
        words += ["--from-subject", f"{source.name}-value"]
        words += ["--from-key-subject", f"{source.name}-key"]
        words += ["--to-key-subject", f"{source.name}-key"]
        words += ["--sql", "SELECT n, offset AS at, key + 1 AS key FROM records WHERE n > 2"]
        done = run("--master", "local[1]", "--conf", "spark.ui.enabled=false", *words)
        proxy.shutdown()
        thread.join()
    assert done.returncode == 0, done.stderr
    assert " INFO " not in done.stderr
    assert values_of(target, 2) == [{"n": 3, "at": 3}, {"n": 4, "at": 4}]
    keys = [(message.key() or b"")[5:] for message in messages_of(target, 2)]
    assert keys == [b"\x3e", b"\x52"]  # 31 and 41


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--master", "local[x]"], "Spark does not start: .*Could not parse Master URL: 'local.x"),
        (["--checkpoint", "{file}"], "FileAlreadyExistsException: .*is not a directory: .*/file"),
    ],
)
def test_what_spark_refuses_is_one_line(
    broker: BrokerProcess, tmp_path: Path, words: list[str], message: str
) -> None:
    (tmp_path / "file").touch()
    words = [word.format(file=tmp_path / "file") for word in words]
    topic = ["--from", Topic(broker.bootstrap_servers).name]
    topic += ["--bootstrap-server", broker.bootstrap_servers]
    sql = ["--sql", "SELECT value FROM records"]
    done = run("--master", "local[1]", *words, *topic, *sql, TMPDIR=str(tmp_path))
    assert done.returncode == 1
    assert re.search(f"^kafkapy: {message}", done.stderr, re.M), done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def values_of(topic: Topic, count: int) -> list[dict[str, object]]:
    return [json.loads(message.value() or b"") for message in messages_of(topic, count)]


def messages_of(topic: Topic, count: int) -> list[Message]:
    consumer = Consumer({"bootstrap.servers": topic.servers, "group.id": "test", **QUIET})
    consumer.assign([TopicPartition(topic.name, 0, 0)])
    messages = consumer.consume(count, timeout=30)
    consumer.close()
    return messages


def run_on_terminal(*words: str, **environ: str) -> tuple[int, str]:
    """The status, and what a person sees."""
    executable = Path(sys.executable).parent / "kafkapy"
    master, slave = os.openpty()
    command = [str(executable), "spark-submit", *words]
    env = {**os.environ, **environ}
    with subprocess.Popen(command, stdout=slave, stderr=slave, env=env) as process:
        os.close(slave)
        seen = b""
        with suppress(OSError):  # the end of a terminal
            while part := os.read(master, 4096):
                seen += part
        os.close(master)
    return process.returncode, seen.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("row", [row for row in mistakes() if row.get("where") == "spark"])
def test_a_topic_that_is_not_there_is_one_line_and_the_log_is_kept(
    row: dict[str, Any], broker: BrokerProcess, tmp_path: Path
) -> None:
    words = shlex.split(row["command"].replace("{plain}", broker.bootstrap_servers))
    status, seen = run_on_terminal("--master", "local[1]", *words[1:], TMPDIR=str(tmp_path))
    assert status == 1
    assert "Traceback" not in seen
    assert " INFO " not in seen
    for line in row["says"]:
        assert re.search(f"^{re.escape(line).replace(re.escape('...'), '.*')}$", seen, re.M), seen
    (log,) = tmp_path.glob("kafkapy-spark-log-*/*")
    assert seen.startswith(f"Spark reads nowhere. Its log is in {log} until it ends; --verbose ")
    assert " INFO SparkContext: " in log.read_text()
