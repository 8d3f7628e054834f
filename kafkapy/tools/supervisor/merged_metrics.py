"""The metrics of all brokers of a machine at one address, each sample with its broker's id."""

from __future__ import annotations

import http.client
import http.server
import socket
import threading
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

LABEL: Final = "process"
LIMIT_S: Final = 5.0
# Ignores `http_proxy`: the brokers are on this machine.
_OPENER: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def fetched(port: int) -> str:
    """The metrics that a broker of this machine serves at a port; none of one that does not."""
    try:
        with _OPENER.open(f"http://127.0.0.1:{port}/metrics", timeout=LIMIT_S) as answer:
            text: str = answer.read().decode()
    except (OSError, http.client.HTTPException):  # also one that ended in its answer
        return ""
    return text


def merged(texts: Mapping[int, str]) -> list[Metric]:
    """One family of each name, of the texts by the number of their broker."""
    families: dict[str, Metric] = {}
    for number, text in texts.items():
        for found in text_string_to_metric_families(text):
            family = families.get(found.name)
            if family is None:
                family = families[found.name] = Metric(found.name, found.documentation, found.type)
            for sample in found.samples:
                labels = {LABEL: str(number), **sample.labels}
                family.samples.append(sample._replace(labels=labels))
    return list(families.values())


def total(texts: Iterable[str], name: str) -> float | None:
    """The sum of a metric's samples; None if one of the texts has none."""
    found = 0.0
    for text in texts:
        values = [
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == name
        ]
        if not values:
            return None
        found += sum(values)
    return found


class _Merging:
    """A collector of prometheus_client."""

    def __init__(self, ports: Callable[[], Mapping[int, int]]) -> None:
        self._ports = ports

    def collect(self) -> Iterator[Metric]:
        ports = self._ports()
        with ThreadPoolExecutor(max(1, len(ports))) as threads:
            texts = dict(zip(ports, threads.map(fetched, ports.values()), strict=True))
        yield from merged(texts)


class MergedMetricsServer:
    """Serves GET /metrics in a thread of its own."""

    def __init__(self, host: str, port: int, ports: Callable[[], Mapping[int, int]]) -> None:
        """`ports` are those of the brokers' own metrics, by the number of the broker.

        Raises:
            OSError: the address cannot be listened on.
        """
        registry = CollectorRegistry()
        registry.register(_Merging(ports))

        class Handler(http.server.BaseHTTPRequestHandler):
            timeout = LIMIT_S

            def do_GET(self) -> None:
                found = self.path.partition("?")[0] in ("/", "/metrics")
                body = generate_latest(registry) if found else b"try /metrics\n"
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """No line a request."""

        class Server(http.server.ThreadingHTTPServer):
            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

        self._server = Server((host, port), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics")
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
