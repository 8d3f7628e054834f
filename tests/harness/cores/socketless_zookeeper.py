"""A ZooKeeper service driven by hand: clients that speak its protocol without a socket."""

from __future__ import annotations

from typing import Any

from kafkapy.zk.embedded.journal import Journal
from kafkapy.zk.service.connection import Connection
from kafkapy.zk.service.settings import ServiceSettings
from kafkapy.zk.service.zookeeper_service import ZooKeeperService
from kafkapy.zk.wire import replies, requests
from kafkapy.zk.wire.codes import ErrorCode, OpCode
from kafkapy.zk.wire.connecting import (
    CONNECT_REPLY,
    CONNECT_REQUEST,
    ConnectReply,
    ConnectRequest,
)
from kafkapy.zk.wire.frames import FrameDecoder, encode_frame
from kafkapy.zk.wire.jute import Reader, encode
from kafkapy.zk.wire.records import Acl
from kafkapy.zk.wire.requests import CreateRequest, EmptyRequest, WatchedRequest
from tests.harness.cores.ports import ManualClock, SeededRandom
from tests.harness.cores.znodes import BytesFile

OPEN = (Acl(31, "world", "anyone"),)


class SocketlessServer:
    """A service on a file in memory, and its clock; `restart` is a kill -9."""

    def __init__(
        self, settings: ServiceSettings | None = None, file: BytesFile | None = None
    ) -> None:
        self.clock = ManualClock()
        self.random = SeededRandom(7)
        self.settings = settings or ServiceSettings()
        self.file = file or BytesFile()
        self.restart()

    def restart(self) -> None:
        journal = Journal(self.file)
        self.service = ZooKeeperService(
            journal, self.clock, self.random, self.settings, {"clientPort": "2181"}
        )
        self.clients: dict[Connection, Client] = {}

    def turn(self) -> None:
        """Commit and send replies, as the end of an event loop turn does, until none is left."""
        while ready := self.service.commit():
            for connection in ready:
                if connection in self.clients:
                    self.clients[connection].take(connection.take())
                if connection.is_stalled:
                    self.service.handle_buffered(connection)

    def tick(self, passed_ms: int) -> None:
        """Advance the clock tick by tick, as the shell does."""
        tick_ms = self.settings.tick_ms
        for _ in range(passed_ms // tick_ms):
            self.clock.now_ms += tick_ms
            self.service.tick()
            self.turn()

    def client(self, session: ConnectReply | None = None, timeout_ms: int = 30_000) -> Client:
        """A connected client, with a new session or an existing one."""
        made = Client(self)
        made.connect(session, timeout_ms)
        return made

    @property
    def nodes(self) -> dict[str, bytes | None]:
        """Data by path, without the system's own nodes."""
        nodes = self.service.tree.nodes
        own = ("/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config")
        return {path: node.data for path, node in nodes.items() if path not in own}


class Client:
    """One connection: requests with their replies, and the events that it received."""

    def __init__(
        self, server: SocketlessServer, address: str = "127.0.0.1", subject: str | None = None
    ) -> None:
        self._server = server
        connection = server.service.add_connection(address, 4711, subject)
        assert connection is not None, "too many connections"
        self.connection = connection
        server.clients[connection] = self
        self.raw = b""
        self.frames: list[bytes] = []
        self.events: list[tuple[int, str]] = []
        self.session = ConnectReply(0, 0, 0, None)
        self._decoder = FrameDecoder(1 << 30)
        self._xid = 0

    def take(self, data: bytes) -> None:
        self.raw += data
        self._decoder.feed(data)

    def send_bytes(self, data: bytes) -> None:
        """Send bytes."""
        self._server.service.handle_data(self.connection, data)
        self._server.turn()

    def next_frame(self) -> bytes:
        frame = self._decoder.next_frame()
        assert frame is not None, "no answer"
        return frame

    def connect(self, session: ConnectReply | None = None, timeout_ms: int = 30_000) -> None:
        known = session or ConnectReply(0, 0, 0, None)
        hello = ConnectRequest(0, 0, timeout_ms, known.session_id, known.password, False)
        self.send_bytes(encode_frame(encode(CONNECT_REQUEST, hello)))
        self.session = CONNECT_REPLY.read(Reader(self.next_frame()))

    def frame(self, op: int, body: requests.Request) -> bytes:
        """A request as bytes, numbered."""
        self._xid += 1
        return encode_frame(requests.encode_request(self._xid, op, body))

    def call(self, op: OpCode, body: requests.Request = EmptyRequest()) -> Any:  # noqa: B008
        """Send a request. Returns the body of the reply, or the error; records earlier events."""
        self.send_bytes(self.frame(op, body))
        return self.reply(op)

    def reply(self, op: OpCode) -> Any:
        """The next reply."""
        while replies.HEADER.read(Reader(frame := self.next_frame())).xid == -1:
            self._note(frame)
        header, body = replies.decode_reply(op, frame)
        return ErrorCode(header.error) if header.error else body

    def take_events(self) -> list[tuple[int, str]]:
        """The events since the last call."""
        while (frame := self._decoder.next_frame()) is not None:
            self._note(frame)
        events, self.events = self.events, []
        return events

    def _note(self, frame: bytes) -> None:
        event = replies.EVENT.read(Reader(frame, 16))
        self.events.append((event.kind, event.path))

    def create(self, path: str, data: bytes | None = b"", flags: int = 0, acl: Any = OPEN) -> Any:
        """A new node's path, or the error."""
        found = self.call(OpCode.CREATE, CreateRequest(path, data, acl, flags))
        return found.path if isinstance(found, replies.PathReply) else found

    def identities(self) -> list[tuple[str, str]]:
        """The identities of the client on the server."""
        return [tuple(each) for each in self.call(OpCode.WHO_AM_I).identities]

    def exists(self, path: str, watch: bool = False) -> Any:
        return self.call(OpCode.EXISTS, WatchedRequest(path, watch))
