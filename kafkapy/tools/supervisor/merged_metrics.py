"""Serves the metrics of a machine's brokers at one address, with the broker number as label."""

from __future__ import annotations

import http.client
import http.server
import socket
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

LABEL: Final = "process"
LIMIT_S: Final = 5.0
CONNECTIONS_MAX: Final = 16
# Ignores `http_proxy`: the brokers are on this machine.
_OPENER: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def fetch_text(port: int) -> str:
    """The metrics text that a broker of this machine serves at a port; "" if it does not serve."""
    try:
        with _OPENER.open(f"http://127.0.0.1:{port}/metrics", timeout=LIMIT_S) as answer:
            text: str = answer.read().decode()
    except (OSError, http.client.HTTPException):  # or the broker ended during its response
        return ""
    return text


def merge(texts: Mapping[int, str]) -> list[Metric]:
    """Merge metrics texts, by broker number, into one family for each name."""
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
    """The sum of a metric's samples; None if a text has no sample of it."""
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


class _MergingCollector:
    """A prometheus_client collector of the brokers' merged metrics."""

    def __init__(self, ports: Callable[[], Mapping[int, int]]) -> None:
        self._ports = ports

    def collect(self) -> Iterator[Metric]:
        ports = self._ports()
        with ThreadPoolExecutor(max(1, len(ports))) as threads:
            texts = dict(zip(ports, threads.map(fetch_text, ports.values()), strict=True))
        yield from merge(texts)


class _Server(http.server.ThreadingHTTPServer):
    """Serves a limited number of connections. At the limit, a new connection replaces the oldest
    one that has not sent its whole request. If there is none, the new one is closed.
    """

    def __init__(
        self, address: tuple[str, int], handler: type[http.server.BaseHTTPRequestHandler]
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._lock = threading.Lock()
        self._is_waiting: dict[socket.socket, bool] = {}  # for its request; in order of arrival
        super().__init__(address, handler)

    def request_received(self, connection: socket.socket) -> None:
        """Record that a connection waits for its response now."""
        with self._lock:
            self._is_waiting[connection] = False

    def verify_request(self, request: Any, client_address: Any) -> bool:
        with self._lock:
            if len(self._is_waiting) >= CONNECTIONS_MAX:
                oldest = next((each for each, waits in self._is_waiting.items() if waits), None)
                if oldest is None:
                    return False
                self._is_waiting[oldest] = False
                with suppress(OSError):  # the client has disconnected
                    oldest.shutdown(socket.SHUT_RDWR)  # ends the thread, which closes it
            self._is_waiting[request] = True
        return True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print the traceback of an error, unless the client has disconnected."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._is_waiting.pop(request, None)
        super().shutdown_request(request)


class MergedMetricsServer:
    """Serves GET /metrics in a thread of its own."""

    def __init__(self, host: str, port: int, ports: Callable[[], Mapping[int, int]]) -> None:
        """`ports` returns the metrics ports of the brokers, by broker number.

        Raises:
            OSError: the server cannot listen on the address.
        """
        registry = CollectorRegistry()
        registry.register(_MergingCollector(ports))

        class Handler(http.server.BaseHTTPRequestHandler):
            timeout = LIMIT_S

            def do_GET(self) -> None:
                server.request_received(self.connection)
                found = self.path.partition("?")[0] in ("/", "/metrics")
                body = generate_latest(registry) if found else b"try /metrics\n"
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Log nothing for requests."""

        self._server = server = _Server((host, port), Handler)
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
