"""`kafkapy schema-registry` as a child process, and requests to it."""

from __future__ import annotations

import http.client
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tests.harness.processes.broker_process import ServerProcess, free_port

_LIMIT_S = 60.0


class Answer(NamedTuple):
    """A response's status and its JSON."""

    status: int
    json: Any


class SchemaRegistry(ServerProcess):
    """A registry of a cluster; `registry("GET", "/subjects")` is a request."""

    def __init__(self, output: Path, servers: str, *words: str) -> None:
        port = free_port()
        executable = str(Path(sys.executable).parent / "kafkapy")
        command = [executable, "schema-registry", "--bootstrap-server", servers]
        command += ["--listener", f"127.0.0.1:{port}", *words]
        super().__init__(command, port, output, "the schema registry")
        self.url = f"http://127.0.0.1:{port}"

    def answers(self) -> bool:
        return f" at {self.url}" in self.output.read_text()

    def __call__(self, method: str, path: str, body: object = None) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_LIMIT_S)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            response = connection.getresponse()
            return Answer(response.status, json.loads(response.read()))
        finally:
            connection.close()
