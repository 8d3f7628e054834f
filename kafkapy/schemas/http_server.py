"""The registry's HTTP server. Requests are answered one after the other, on one thread."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http import HTTPStatus
from ipaddress import ip_address
from ssl import SSLContext
from typing import Any, Final
from urllib.parse import urlsplit

import orjson
from aiohttp import web
from aiohttp.http import HttpProcessingError

from kafkapy.schemas import rest_errors as errors
from kafkapy.schemas.registry_client import CONTENT_TYPE
from kafkapy.schemas.registry_service import Handler, RegistryService
from kafkapy.schemas.rest_api import ROUTES, Call, RawSchema
from kafkapy.schemas.rest_errors import RestError
from kafkapy.schemas.users import User, Users

_ACCEPTS_UNKNOWN_FIELDS: Final = "Confluent-Accept-Unknown-Properties"
_BODY_BYTES_MAX: Final = 1 << 20  # as `max.message.bytes` of the topic
# How long a connection may be without a request, and a request without its body.
_IDLE_S: Final = 30.0  # as `idle.timeout.ms` of Confluent's registry
_STOP_S: Final = 5.0  # for the requests that are answered at the end
_LINGER_S: Final = 2.0  # for a body that is not read, so that its client gets the answer
_FOLLOW_S: Final = 1.0
_HEADERS: Final = {
    HTTPStatus.UNAUTHORIZED: {"WWW-Authenticate": 'Basic realm="schema-registry", charset="UTF-8"'},
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: {"Accept-Encoding": "identity"},
}
# The public DNS has no such domain (RFC 6761 and 6762, and ICANN for "internal").
_LOCAL_DOMAINS: Final = ("localhost", "local", "internal", "test")
_ANONYMOUS: Final = User("", may_write=True)

log: Final = logging.getLogger("kafkapy.schemas.http")


class _WithoutBadRequests(logging.Filter):
    """Drops aiohttp's tracebacks about requests that are not HTTP, or have a line that is too
    long."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


log.addFilter(_WithoutBadRequests())


class HttpServer:
    """Serves a registry: to `users` or, without them, to every client."""

    def __init__(self, service: RegistryService, users: Users | None = None) -> None:
        self._service = service
        self._users = users
        self._thread = ThreadPoolExecutor(1, "schemas")
        self._formatters = ThreadPoolExecutor(1, "formatted schemas")

    async def run_until_signal(
        self, host: str, port: int, tls: SSLContext | None, on_start: Callable[[str], None]
    ) -> None:
        """As `run`, until SIGTERM or SIGINT."""
        stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopping.set)
        await self.run(host, port, tls, on_start, stopping)

    async def run(
        self,
        host: str,
        port: int,
        tls: SSLContext | None,
        on_start: Callable[[str], None],
        stopping: asyncio.Event,
    ) -> None:
        """Listen, and call `on_start` with the URL. A port of 0 is a free one. Returns when
        `stopping` is set.

        Raises:
            OSError: the address cannot be used.
        """
        runner = web.AppRunner(
            self.application(),
            access_log=None,
            logger=log,
            handler_cancellation=True,  # a client that has left needs no answer
            keepalive_timeout=_IDLE_S,
            lingering_time=_LINGER_S,
            shutdown_timeout=_STOP_S,
            auto_decompress=False,
        )
        await runner.setup()
        following = asyncio.create_task(self._follow())
        try:
            await web.TCPSite(runner, host, port, ssl_context=tls).start()
            bound = runner.addresses[0]
            scheme = "http" if tls is None else "https"
            name = f"[{host}]" if ":" in host else host
            on_start(f"{scheme}://{name}:{bound[1]}")
            await stopping.wait()
        finally:
            following.cancel()
            await runner.cleanup()
            for threads in (self._thread, self._formatters):
                await asyncio.to_thread(threads.shutdown, cancel_futures=True)

    def application(self) -> web.Application:
        app = web.Application(middlewares=[_with_json_errors], client_max_size=_BODY_BYTES_MAX)
        handlers: defaultdict[str, dict[str, Handler]] = defaultdict(dict)
        for method, path, handler in ROUTES:
            handlers[path][method] = handler
            if method == "GET":
                handlers[path]["HEAD"] = handler  # aiohttp sends no body
        for path, of_path in handlers.items():
            for method, handler in of_path.items():
                app.router.add_route(method, path, partial(self._serve, handler))
            methods = ",".join([*of_path, "OPTIONS"])
            app.router.add_route("OPTIONS", path, partial(self._options, methods))
        return app

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(_FOLLOW_S)
            await _run_in(self._thread, self._service.follow)

    async def _options(self, methods: str, request: web.Request) -> web.Response:
        self._check_site(request)
        self._user(request)
        return _response(HTTPStatus.OK, b"", {"Allow": methods})

    async def _serve(self, handler: Handler, request: web.Request) -> web.Response:
        self._check_site(request)
        user = self._user(request)
        body = _object(await _body(request))
        accepts_unknown_fields = request.headers.get(_ACCEPTS_UNKNOWN_FIELDS, "").lower() == "true"
        query = {name: request.query.getall(name) for name in request.query}
        call = Call(request.match_info, query, body, accepts_unknown_fields, user.may_write)
        answer = await self._answer(handler, call)
        if isinstance(answer, RawSchema):
            return _response(HTTPStatus.OK, str(answer).encode())
        return _response(HTTPStatus.OK, orjson.dumps(answer))

    async def _answer(self, handler: Handler, call: Call) -> Any:
        asked_s = time.monotonic()
        if "format" in call.query:  # it may need protoc, for which no other client waits
            known = await _run_in(self._formatters, self._service.answer_known, handler, call)
        else:
            known = self._service.answer_known(handler, call)
        if known is not None:
            return known
        return await _run_in(self._thread, self._service.answer, handler, call, asked_s)

    def _check_site(self, request: web.Request) -> None:
        """Refuse requests from pages of other sites. A browser on this machine can reach loopback,
        and sends stored logins. Without logins, public host names are refused on loopback too: a
        site can resolve its own name to loopback (DNS rebinding).

        Raises:
            RestError: 403.
        """
        origin = request.headers.get("Origin")
        if origin is not None and origin.partition("://")[2] != request.host:
            raise errors.other_origin(origin)
        host = request.headers.get("Host", "")
        if self._users is None and _is_to_loopback(request) and _may_be_public(host):
            raise errors.other_host(host)

    def _user(self, request: web.Request) -> User:
        """
        Raises:
            RestError: 401 a login is needed.
        """
        if self._users is None:
            return _ANONYMOUS
        user = self._users.authenticated(request.headers.get("Authorization", ""))
        if user is None:
            raise errors.not_authenticated()
        return user


@web.middleware
async def _with_json_errors(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        return await handler(request)
    except RestError as error:
        body = {"error_code": error.code, "message": error.message}
        return _response(error.status, orjson.dumps(body))
    except web.HTTPException as error:
        message = f"HTTP {error.status} {error.reason}"
        body = {"error_code": error.status, "message": message}
        allowed = {name: each for name, each in error.headers.items() if name == "Allow"}
        return _response(HTTPStatus(error.status), orjson.dumps(body), allowed)


def _is_to_loopback(request: web.Request) -> bool:
    address = request.get_extra_info("sockname")
    return address is not None and ip_address(address[0]).is_loopback


def _may_be_public(host: str) -> bool:
    """Whether the public DNS may have the name in a Host header."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return True
    try:
        ip_address(name)
    except ValueError:
        *others, domain = name.removesuffix(".").split(".")
        return bool(others) and domain not in _LOCAL_DOMAINS
    return False


async def _run_in(threads: ThreadPoolExecutor, function: Callable[..., Any], *given: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(threads, function, *given)


async def _body(request: web.Request) -> bytes:
    """
    Raises:
        RestError: 400 it is not HTTP, 408 it does not come, 415 it is compressed: Confluent's
            clients do not compress, and some bytes may become a thousand times as many.
        HTTPRequestEntityTooLarge: see `_BODY_BYTES_MAX`.
    """
    encoding = request.headers.get("Content-Encoding", "identity")
    if encoding.lower() != "identity":
        raise RestError(415, f"The encoding {encoding} is not supported")
    try:
        async with asyncio.timeout(_IDLE_S):
            return await request.read()
    except TimeoutError:
        raise RestError(408, f"The body has not come within {_IDLE_S:.0f} s") from None
    except (web.RequestPayloadError, ConnectionError) as error:
        raise RestError(400, f"The body cannot be read: {error}") from error


def _object(body: bytes) -> dict[str, Any]:
    """
    Raises:
        RestError: 400 not a JSON object.
    """
    if not body:
        return {}
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RestError(400, f"The body is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise RestError(400, "The body is not a JSON object")
    return found


def _response(
    status: HTTPStatus, body: bytes, headers: Mapping[str, str] | None = None
) -> web.Response:
    found = {"Content-Type": CONTENT_TYPE, **_HEADERS.get(status, {}), **(headers or {})}
    return web.Response(status=status, body=body, headers=found)
