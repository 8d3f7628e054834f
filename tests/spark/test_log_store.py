"""The pipeline: log files, the agent, a topic, the job, a store; held against a plain count."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from kafkapy.tools.agent import Agent, State, TopicSink
from scripts.jobs import log_store
from scripts.jobs.log_summary import LAYOUTS, LEVEL, LEVEL_NAMES, MASKS, NOTHING
from tests.conformance.workload import data_files
from tests.harness.spark.spark_topics import Topic
from tests.harness.spark.spark_wiring import Wire

MakeTopic = Callable[..., Topic]


def plain_level_and_template(line: str) -> tuple[str, str]:
    """Level and template that the job should find in a line, in plain Python."""
    found = next(((each, m) for each in LAYOUTS if (m := re.search(each.pattern, line))), None)
    message = line
    level = m[1] if (m := re.search(LEVEL, line)) else ""
    if found is not None:
        layout, match = found
        message = match[3 if layout.has_level else 2]
        level = match[2] if layout.has_level else ""
    for pattern, name in MASKS:
        message = re.sub(pattern, name, message)
    return LEVEL_NAMES.get(level.upper(), level.upper()) or NOTHING, message.strip(" ")


def send_files(topic: Topic, files: list[Path], state: Path) -> None:
    """Run the agent to the end of the files, in two lives."""
    for _ in range(2):
        sink = TopicSink(topic.name, {"bootstrap.servers": topic.servers}, print)
        agent = Agent([str(path) for path in files], State(state), sink, print)
        agent.run(threading.Event(), once=True)
        agent.close()


def test_counts_of_real_logs_in_parquet(
    spark: SparkSession, make_topic: MakeTopic, wire: Wire, tmp_path: Path
) -> None:
    files = data_files()
    topic = make_topic(3)
    send_files(topic, files, tmp_path / "state")
    wire(source=topic.name, servers=topic.servers, checkpoint=tmp_path / "checkpoint")
    log_store.main(["--out", str(tmp_path / "out"), "--once"])
    counted = spark.read.parquet(str(tmp_path / "out" / "counts"))
    of_spark = {
        (row["level"], row["template"]): row["sum(count)"]
        for row in counted.groupBy("level", "template").sum("count").collect()
    }
    lines = [
        line.removesuffix("\r")
        for path in files
        for line in path.read_bytes().decode(errors="replace").removesuffix("\n").split("\n")
    ]
    assert of_spark == Counter(map(plain_level_and_template, lines))
    places = spark.read.parquet(str(tmp_path / "out" / "events"))
    assert places.select("partition", "offset").distinct().count() == len(lines)


class Elastic(ThreadingHTTPServer):
    """The bulk API as a real HTTP server: documents by id; an index `closed` refuses."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.documents: dict[str, Any] = {}
        self.requests: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    """Answers `POST /_bulk`."""

    server: Elastic

    def do_POST(self) -> None:
        self.server.requests.append(f"{self.path} {self.headers['Content-Type']}")
        lines = self.rfile.read(int(self.headers["Content-Length"])).decode().splitlines()
        items = []
        for action, document in zip(lines[::2], lines[1::2], strict=True):
            where = json.loads(action)["index"]
            item: dict[str, Any] = {"_id": where["_id"], "status": 201}
            if where["_index"] == "closed":
                item = {"_id": where["_id"], "status": 403, "error": {"type": "index_closed"}}
            else:
                self.server.documents[where["_id"]] = json.loads(document)
            items.append({"index": item})
        body = json.dumps({"errors": any("error" in i["index"] for i in items), "items": items})
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def elastic() -> Iterator[Elastic]:
    server = Elastic()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_every_line_is_a_document_once(
    spark: SparkSession, make_topic: MakeTopic, wire: Wire, tmp_path: Path, elastic: Elastic
) -> None:
    topic = make_topic(2)
    line = b"2026-11-20 12:00:0%d,000 ERROR disk %d is full"
    topic.send((i % 2, None, line % (i % 10, i)) for i in range(20))
    for life in ("first", "again"):  # the second as if the first had left no checkpoint
        wire(source=topic.name, servers=topic.servers, checkpoint=tmp_path / life)
        log_store.main(["--elasticsearch", elastic.url, "--once"])
    assert len(elastic.documents) == 20
    assert set(elastic.requests) == {"/_bulk application/x-ndjson"}
    one = elastic.documents[f"{topic.name}-1-3"]
    assert (one["level"], one["template"], one["offset"]) == ("ERROR", "disk <n> is full", 3)


def test_a_document_that_is_refused_is_a_failure(elastic: Elastic) -> None:
    row = Row(topic="t", partition=0, offset=1, level="INFO")
    with pytest.raises(log_store.BulkFailure, match=r"1 documents, .*index_closed"):
        log_store.bulk(elastic.url, "closed", [row])
    with pytest.raises(log_store.BulkFailure, match="/_bulk"):
        log_store.bulk("http://127.0.0.1:1", "logs", [row])
    assert [len(some) for some in log_store.portions([row] * 5, 2)] == [2, 2, 1]


def test_a_store_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        log_store.main([])
    assert "name --out or --elasticsearch" in capsys.readouterr().err
