"""A schema registry in a thread of the process, on a free port."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack
from functools import partial
from threading import Thread
from types import TracebackType
from typing import Any, Final, Self

from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ConfigError
from kafkapy.testing.forks import call_after_fork
from kafkapy.testing.kafka_broker import text_properties

# Serves until the event is set, and first calls the function with the URL.
Serve = Callable[[Callable[[str], None], asyncio.Event], Coroutine[Any, Any, None]]

_TOPIC: Final = "_schemas"
_HOST: Final = "127.0.0.1"


class SchemaRegistry:
    """A registry of the cluster at `bootstrap_servers`, which may be that of a `KafkaBroker`.

    It stores the schemas in the topic `_schemas`. `client_properties` are its login and the trusted
    certificates, as in client.properties. It needs the extra `schemas`. The end of a forked process
    does not stop the registry.
    """

    def __init__(
        self, bootstrap_servers: str, client_properties: Mapping[str, object] | None = None
    ) -> None:
        self._properties = text_properties(client_properties)
        self._properties["bootstrap.servers"] = bootstrap_servers
        self._resources = ExitStack()
        self._url: str | None = None
        call_after_fork(self, SchemaRegistry._leave_to_parent)

    @property
    def url(self) -> str:
        """The address for clients: http://127.0.0.1:PORT."""
        if self._url is None:
            raise ConfigError("The schema registry does not run")
        return self._url

    def start(self) -> Self:
        """Start the registry. Returns when it serves.

        Raises:
            ConfigError: a package is missing, or a property is wrong.
            ApiError: the topic can be neither created nor read.
        """
        if self._url is not None:
            return self
        from kafkapy.schemas.packages import require_packages

        require_packages()
        from kafkapy.schemas.http_server import HttpServer
        from kafkapy.schemas.registry_service import API_TIMEOUT, open_registry

        properties = API_TIMEOUT | self._properties
        with ExitStack() as resources:
            cluster = Cluster(properties["bootstrap.servers"], properties, "schema-registry")
            resources.enter_context(cluster)
            service = resources.enter_context(open_registry(cluster, properties, _TOPIC))
            server = _ServerThread(partial(HttpServer(service).run, _HOST, 0, None))
            resources.callback(server.stop)
            self._url = server.url()
            self._resources = resources.pop_all()
        return self

    def close(self) -> None:
        """Stop the registry. Its schemas are in the topic."""
        self._url = None
        self._resources.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _leave_to_parent(self) -> None:
        """In a forked process: never close the resources, also not when the process ends. A close
        waits for threads of the server and of librdkafka, which do not exist in this process.
        """
        import ctypes  # imported on demand: most processes never fork

        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._resources))
        self._resources = ExitStack()


class _ServerThread:
    """The loop of an HTTP server."""

    def __init__(self, serve: Serve) -> None:
        self._url: Future[Any] = Future()
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._thread = Thread(target=self._loop.run_forever, name="schema-registry", daemon=True)
        self._thread.start()
        serving = serve(self._url.set_result, self._stopping)
        self._serving: Future[Any] = asyncio.run_coroutine_threadsafe(serving, self._loop)

    def url(self) -> str:
        """The URL, when it serves. Raises OSError."""
        wait((self._url, self._serving), return_when=FIRST_COMPLETED)
        if not self._url.done():
            self._serving.result()
        return str(self._url.result())

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        wait((self._serving,))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
