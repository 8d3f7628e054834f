"""The registry's HTTP server. Requests are answered one after the other, on one thread."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http import HTTPStatus
from ssl import SSLContext
from typing import Any, Final

import orjson
from aiohttp import web

from kafkapy.schemas import rest_errors as errors
from kafkapy.schemas.registry_client import CONTENT_TYPE
from kafkapy.schemas.registry_service import Handler, RegistryService
from kafkapy.schemas.rest_api import ROUTES, Call, RawSchema
from kafkapy.schemas.rest_errors import RestError
from kafkapy.schemas.users import User, Users

_ACCEPTS_UNKNOWN_FIELDS: Final = "Confluent-Accept-Unknown-Properties"
_BODY_BYTES_MAX: Final = 1 << 20  # as `max.message.bytes` of the topic
_LOGIN: Final = {"WWW-Authenticate": 'Basic realm="schema-registry", charset="UTF-8"'}
_ANONYMOUS: Final = User("", may_write=True)


class HttpServer:
    """Serves a registry: to `users` or, without them, to every client."""

    def __init__(self, service: RegistryService, users: Users | None = None) -> None:
        self._service = service
        self._users = users
        self._thread = ThreadPoolExecutor(1, "schemas")

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
        runner = web.AppRunner(self.application(), access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port, ssl_context=tls).start()
            bound = runner.addresses[0]
            scheme = "http" if tls is None else "https"
            name = f"[{host}]" if ":" in host else host
            on_start(f"{scheme}://{name}:{bound[1]}")
            await stopping.wait()
        finally:
            await runner.cleanup()
            self._thread.shutdown()

    def application(self) -> web.Application:
        app = web.Application(middlewares=[_with_json_errors], client_max_size=_BODY_BYTES_MAX)
        for method, path, handler in ROUTES:
            app.router.add_route(method, path, partial(self._serve, handler))
        return app

    async def _serve(self, handler: Handler, request: web.Request) -> web.Response:
        _check_origin(request)
        user = self._user(request)
        body = _object(await request.read())
        accepts_unknown_fields = request.headers.get(_ACCEPTS_UNKNOWN_FIELDS, "").lower() == "true"
        query = {name: request.query.getall(name) for name in request.query}
        call = Call(request.match_info, query, body, accepts_unknown_fields, user.may_write)
        answer = self._service.answer_known(handler, call)
        if answer is None:
            loop = asyncio.get_running_loop()
            answer = await loop.run_in_executor(self._thread, self._service.answer, handler, call)
        if isinstance(answer, RawSchema):
            return _response(HTTPStatus.OK, str(answer).encode())
        return _response(HTTPStatus.OK, orjson.dumps(answer))

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
        return _response(HTTPStatus(error.status), orjson.dumps(body))


def _check_origin(request: web.Request) -> None:
    """Refuse a page of another site: a browser on this machine reaches loopback, and sends the
    login that it knows.

    Raises:
        RestError: 403.
    """
    origin = request.headers.get("Origin")
    if origin is not None and origin.partition("://")[2] != request.host:
        raise errors.other_origin(origin)


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


def _response(status: HTTPStatus, body: bytes) -> web.Response:
    headers = {"Content-Type": CONTENT_TYPE}
    if status is HTTPStatus.UNAUTHORIZED:
        headers |= _LOGIN
    return web.Response(status=status, body=body, headers=headers)
