"""The server's core: connections, sessions, requests, and transactions to make durable.

Replies and notifications may be sent only after `commit`, which makes the transactions durable.
This includes replies to reads, because a read may return data that is not durable yet. Zxids are
used as in ZooKeeper: the beginning and the end of a session take one each, and so does a refused
write.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from kafkapy.common.log_text import on_one_line
from kafkapy.common.ports import Clock, Random
from kafkapy.security.sasl.digest_md5 import DigestMd5Server, LoginRefused
from kafkapy.zk.embedded.journal import Journal
from kafkapy.zk.embedded.znode_tree import (
    CloseSession,
    OpenSession,
    Transaction,
    TreeNode,
    ZnodeTree,
)
from kafkapy.zk.service.connection import Connection
from kafkapy.zk.service.four_letter_words import FourLetterWords, Traffic
from kafkapy.zk.service.node_paths import CONFIG, SYSTEM
from kafkapy.zk.service.permissions import READ_ONLY, SASL, SUPER, X509, identity_of, is_allowed
from kafkapy.zk.service.reads import Reads
from kafkapy.zk.service.refusals import Refused
from kafkapy.zk.service.sessions import PASSWORD_BYTES, Session, SessionTable, next_session_id
from kafkapy.zk.service.settings import ServiceSettings
from kafkapy.zk.service.watch_requests import WatchRequests
from kafkapy.zk.service.watches import Watches
from kafkapy.zk.service.writes import Change, WriteTransaction
from kafkapy.zk.wire.codes import (
    NO_ZXID,
    PING_XID,
    SYNC_CONNECTED,
    ErrorCode,
    OpCode,
    Permission,
)
from kafkapy.zk.wire.connecting import CONNECT_REPLY, CONNECT_REQUEST, ConnectReply, ConnectRequest
from kafkapy.zk.wire.jute import Malformed, Reader, encode
from kafkapy.zk.wire.replies import (
    Reply,
    ReplyHeader,
    SaslReply,
    WatcherEvent,
    encode_event,
    encode_reply,
)
from kafkapy.zk.wire.requests import (
    BODIES,
    AuthRequest,
    MultiRequest,
    Request,
    RequestHeader,
    SaslRequest,
    SetWatchesRequest,
    WatchKindRequest,
    decode_body,
    decode_header,
)
from kafkapy.zk.zookeeper import ZnodeStat

FRAMES_A_TURN: Final = 100
"""The number of requests of one connection that are handled before those of others."""

UNSENT_MAX_BYTES: Final = 1 << 20
"""The requests of a connection wait while more bytes than this of its replies are unsent."""

UNREAD_MAX_BYTES: Final = 16 << 20
"""A connection that receives notifications is closed if it leaves more bytes than this unread."""

CONNECT_LIMIT_MS: Final = 10_000
"""The time in which a connection must open a session."""

LOCAL_FRAME_MAX_BYTES: Final = (1 << 31) - 1
"""The largest request within a process."""

NONCE_BYTES: Final = 16
"""The random part of a SASL challenge."""

IDENTITIES_MAX: Final = 32
"""The number of identities of a connection. Clients may add them before they log in."""

IDENTITY_CHARS_MAX: Final = 512
"""The length of an identity that a client adds. It has the user name as it was sent, and a hash."""

_WRITES: Final = frozenset(
    (
        *(OpCode.CREATE, OpCode.CREATE2, OpCode.CREATE_CONTAINER, OpCode.CREATE_TTL),
        *(OpCode.DELETE, OpCode.DELETE_CONTAINER, OpCode.SET_DATA, OpCode.SET_ACL),
    )
)

logger = logging.getLogger("kafkapy.zk.service")


def initial_tree() -> ZnodeTree:
    """The tree of a new server, with its system nodes."""
    tree = ZnodeTree()
    for path in SYSTEM:
        node = TreeNode(b"", ZnodeStat(0, 0, 0, 0, 0))
        if path == CONFIG:
            node = node._replace(acl=READ_ONLY, acl_version=-1)
        tree.restore(path, node)
    return tree


class ZooKeeperService:
    """A standalone ZooKeeper server without I/O: `event_loop` passes it the received bytes, and
    sends the queued replies after `commit`.
    """

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        random: Random,
        settings: ServiceSettings,
        properties: Mapping[str, str],
    ) -> None:
        """Recover the nodes and the sessions in the journal.

        Raises:
            JournalCorrupt: the journal's file is damaged, not merely torn at its end.
            OSError: the file cannot be read or rewritten.
        """
        self._clock = clock
        self._random = random
        self._journal = journal
        self._settings = settings
        self.tree = journal.recover(clock.time_ms(), initial_tree())
        self.traffic = Traffic()
        self._watches: Watches[Connection] = Watches()
        self._connections: dict[Connection, None] = {}
        self._ready: dict[Connection, None] = {}
        self._pending: list[Transaction] = []
        self._answers = 0
        self._answering_since_ms = 0
        now_ms = clock.monotonic_ms()
        limits = (settings.tick_ms, settings.min_session_timeout_ms)
        self._sessions: SessionTable[Connection] = SessionTable(
            *limits, settings.max_session_timeout_ms, now_ms
        )
        self._sessions.restore(self.tree.sessions.values(), now_ms)
        self._reads = Reads(self.tree, self._watches)
        self._watch_requests = WatchRequests(self.tree, self._watches)
        self._words = FourLetterWords(
            *(self.tree, self._watches, self._connections.keys(), self.traffic),
            *(settings, properties, clock),
        )

    def add_connection(
        self, address: str, port: int, subject: str | None = None
    ) -> Connection | None:
        """Add a connection. Returns None if its address has too many. `subject` is the name in the
        client's certificate, if it sent one."""
        if not self.has_capacity(address):
            return None
        now_ms = self._clock.monotonic_ms()
        connection = Connection(address, port, self._settings.max_frame_bytes, now_ms)
        if subject is not None:
            connection.identities[X509, subject] = None
        self._connections[connection] = None
        return connection

    def has_capacity(self, address: str, handshakes: int = 0) -> bool:
        """Whether an address may have one more connection, besides `handshakes` in progress."""
        limit = self._settings.max_connections
        count = handshakes + sum(each.address == address for each in self._connections)
        if limit and count >= limit:
            logger.warning("Too many connections from %s - max is %d", address, limit)
            return False
        return True

    def add_local_connection(self) -> Connection:
        """Add a connection within this process, with all permissions.

        Its session is not written to the journal and ends with the process. A recovery deletes its
        ephemerals, because they have no session.
        """
        connection = Connection("local", 0, LOCAL_FRAME_MAX_BYTES, self._clock.monotonic_ms())
        session_id = next_session_id(self.tree.last_session_id, self._clock.time_ms())
        self.tree.last_session_id = session_id
        connection.session = Session(session_id, b"", 0, 0, connection)
        connection.identities[SUPER] = None
        self._connections[connection] = None
        return connection

    def handle_data(self, connection: Connection, data: bytes) -> None:
        """Handle bytes from a client."""
        connection.decoder.feed(data)
        self.handle_buffered(connection)

    def handle_buffered(self, connection: Connection) -> None:
        """Handle the buffered requests of a connection. It stalls until its next turn after
        `FRAMES_A_TURN` requests, or with more than `UNSENT_MAX_BYTES` bytes of unsent replies.
        """
        connection.is_stalled = False
        for _ in range(FRAMES_A_TURN):
            if connection.is_closing:
                return
            if connection.waiting_bytes() > UNSENT_MAX_BYTES:
                break
            try:
                if not self._handle_next_frame(connection):
                    return
            except Malformed as fault:
                self._close_with_warning(connection, str(fault))
                return
        connection.is_stalled = True
        self._ready[connection] = None

    def remove_connection(self, connection: Connection) -> None:
        """Remove a closed connection. Its session stays until it expires."""
        self._detach(connection)
        self._connections.pop(connection, None)
        self._ready.pop(connection, None)

    def commit(self) -> list[Connection]:
        """Make the pending transactions durable. Returns the connections to send to or to close.

        Raises:
            OSError: nothing is durable, so nothing may be sent: the process must end.
        """
        if self._pending:
            self._journal.append(self._pending, self.tree)
            self._pending = []
        if self._answers:
            waited_ms = self._clock.monotonic_ms() - self._answering_since_ms
            self.traffic.count_replies(self._answers, waited_ms)
            self._answers = 0
        ready = list(self._ready)
        self._ready.clear()
        return ready

    def tick(self) -> None:
        """End expired sessions, and connections that opened none in time. Called once a tick."""
        now_ms = self._clock.monotonic_ms()
        for session in self._sessions.expired_sessions(now_ms):
            logger.info(
                "Expiring session 0x%x, timeout of %dms exceeded",
                *(session.session_id, session.timeout_ms),
            )
            connection = session.connection
            self._end(session)
            if connection is not None:
                self._close(connection)
        for connection in self._connections:
            is_late = now_ms - connection.opened_ms > CONNECT_LIMIT_MS
            if connection.session is None and is_late and not connection.is_closing:
                self._close_with_warning(connection, f"no session within {CONNECT_LIMIT_MS} ms")

    def _handle_next_frame(self, connection: Connection) -> bool:
        """Handle the next frame or four-letter word. Returns whether more frames may follow."""
        if connection.session is None and self._words.is_word(head := connection.decoder.head()):
            connection.send_text(self._words.answer(head))
            self._close(connection)
            return False
        frame = connection.decoder.next_frame()
        if frame is None:
            return False
        connection.received += 1
        self.traffic.received += 1
        if not self._answers:
            self._answering_since_ms = self._clock.monotonic_ms()
        self._answers += 1
        if connection.session is None:
            self._connect(connection, CONNECT_REQUEST.read(Reader(frame)))
        else:
            self._request(connection, connection.session, frame)
        return True

    def _connect(self, connection: Connection, request: ConnectRequest) -> None:
        if request.last_zxid_seen > self.tree.zxid:
            self._close_with_warning(
                connection,
                f"it has seen zxid {request.last_zxid_seen:#x}, the last one here is"
                f" {self.tree.zxid:#x}",
            )
            return
        timeout_ms = self._sessions.negotiated_timeout_ms(request.timeout_ms)
        session = self._session_for(request, timeout_ms)
        flag = None if request.read_only is None else False
        if session is None:
            logger.info("Invalid session 0x%x for client %s", request.session_id, connection)
            reply = ConnectReply(0, 0, 0, bytes(PASSWORD_BYTES), flag)
            self._send(connection, encode(CONNECT_REPLY, reply))
            self._close(connection)
            return
        if session.connection is not None:
            self._close(session.connection)
        session.connection, connection.session = connection, session
        session.timeout_ms = timeout_ms
        self._sessions.touch(session, self._clock.monotonic_ms())
        reply = ConnectReply(0, timeout_ms, session.session_id, session.password, flag)
        self._send(connection, encode(CONNECT_REPLY, reply))

    def _session_for(self, request: ConnectRequest, timeout_ms: int) -> Session[Connection] | None:
        """The session to resume, or a new one. None if the session to resume has ended, or the
        password is wrong.
        """
        if request.session_id:
            session = self._sessions.get(request.session_id)
            return (
                session if session is not None and session.has_password(request.password) else None
            )
        wall_ms = self._clock.time_ms()
        session_id = next_session_id(self.tree.last_session_id, wall_ms)
        opened = OpenSession(session_id, self._random.bytes(PASSWORD_BYTES), timeout_ms)
        transaction = WriteTransaction(self.tree, wall_ms, session_id)
        transaction.apply_session(opened)
        self._finish_write(transaction)
        return self._sessions.add(opened, self._clock.monotonic_ms())

    def _request(self, client: Connection, session: Session[Connection], frame: bytes) -> None:
        header, reader = decode_header(frame)
        client.last_xid = header.xid
        self._sessions.touch(session, self._clock.monotonic_ms())
        if header.op not in BODIES:
            unknown = ReplyHeader(header.xid, NO_ZXID, ErrorCode.UNIMPLEMENTED)
            self._send(client, encode_reply(unknown))
            self._close(client)
            return
        client.last_op = OpCode(header.op).name
        try:
            body = decode_body(header.op, reader)
        except Malformed:
            self._answer(client, header, ErrorCode.MARSHALLINGERROR)
            raise
        if self._needs_login(client, header.op):
            self._refuse_login(client, header, ErrorCode.SESSIONCLOSEDREQUIRESASLAUTH)
            return
        match header.op:
            case OpCode.PING:
                self._answer(client, RequestHeader(PING_XID, OpCode.PING), ErrorCode.OK)
            case OpCode.AUTH:
                self._authenticate(client, header, body)
            case OpCode.SASL:
                self._log_in(client, header, body)
            case OpCode.CLOSE_SESSION:
                self._end(session)
                self._answer(client, header, ErrorCode.OK)
                self._close(client)
            case OpCode.RECONFIG:
                self._refuse_write(session)
                self._answer(client, header, ErrorCode.RECONFIGDISABLED)
            case _:
                self._perform(client, session, header, body)

    def _perform(
        self,
        client: Connection,
        session: Session[Connection],
        header: RequestHeader,
        body: Request,
    ) -> None:
        reply: Reply | None = None
        error = ErrorCode.OK
        try:
            if header.op in _WRITES or header.op == OpCode.MULTI:
                reply = self._write(client, session, header.op, body)
            elif isinstance(body, SetWatchesRequest):
                for event in self._watch_requests.set_watches(body, client):
                    self._send(client, encode_event(NO_ZXID, event))
            elif isinstance(body, WatchKindRequest):
                reply = self._watch_requests.answer(header.op, body, client)
            else:
                reply = self._reads.answer(header.op, body, client)
        except Refused as refused:
            error = refused.code
        self._answer(client, header, error, reply)

    def _write(
        self, client: Connection, session: Session[Connection], op: int, body: Request
    ) -> Reply:
        ids = client.identities
        schemes = self._settings.schemes
        transaction = WriteTransaction(
            self.tree, self._clock.time_ms(), session.session_id, ids, schemes
        )
        try:
            if isinstance(body, MultiRequest):
                reply: Reply = transaction.write_all(body)
            else:
                reply = transaction.write(op, body)
        except BaseException as fault:
            transaction.undo()
            if isinstance(fault, Refused):
                self._finish_write(transaction)
            raise
        self._finish_write(transaction)
        return reply

    def _refuse_write(self, session: Session[Connection]) -> None:
        self._finish_write(WriteTransaction(self.tree, self._clock.time_ms(), session.session_id))

    def _finish_write(self, transaction: WriteTransaction) -> None:
        """Assign the zxid of a transaction, queue it for the journal, and notify watchers."""
        self.tree.zxid = transaction.journal_entry.zxid
        self._pending.append(transaction.journal_entry)
        for change in transaction.changes:
            self._notify(change)

    def _notify(self, change: Change) -> None:
        watchers = self._watches.trigger(change.kind, change.path)
        if not watchers:
            return
        event = WatcherEvent(change.kind, SYNC_CONNECTED, change.path)
        payload = encode_event(self.tree.zxid, event)
        for client in watchers:
            # Clients that may not read a node are not notified of its changes (CVE-2024-23944).
            if not is_allowed(change.acl, Permission.READ, client.identities):
                continue
            if client.waiting_bytes() > UNREAD_MAX_BYTES:
                self._close_with_warning(
                    client, f"it leaves more than {UNREAD_MAX_BYTES} bytes unread"
                )
            else:
                self._send(client, payload)

    def _authenticate(self, client: Connection, header: RequestHeader, body: Request) -> None:
        assert isinstance(body, AuthRequest)
        identities = client.identities
        identity = identity_of(body.scheme, body.auth or b"", client.address)
        if identity is None:
            refusal = "no scheme of that name"
        elif len(identity[1]) > IDENTITY_CHARS_MAX:
            refusal = f"an identity has at most {IDENTITY_CHARS_MAX} characters"
        elif identity not in identities and len(identities) >= IDENTITIES_MAX:
            refusal = f"a connection has at most {IDENTITIES_MAX} identities"
        else:
            identities[identity] = None
            self._send(client, encode_reply(ReplyHeader(header.xid, 0, ErrorCode.OK)))
            return
        logger.warning("Authentication of %s failed: %s", client, refusal)
        self._refuse_login(client, header, ErrorCode.AUTHFAILED)

    def _log_in(self, client: Connection, header: RequestHeader, body: Request) -> None:
        """One step of a SASL login."""
        assert isinstance(body, SaslRequest)
        if client.login is None:
            nonce = self._random.bytes(NONCE_BYTES)
            client.login = DigestMd5Server(self._settings.users, nonce)
        try:
            if not self._settings.users:
                raise LoginRefused("this server has no SASL")
            token = client.login.evaluate(body.token or b"")
        except LoginRefused as refused:
            logger.warning("The login of %s failed: %s", client, on_one_line(str(refused)))
            required = self._settings.requires_login
            code = ErrorCode.SESSIONCLOSEDREQUIRESASLAUTH if required else ErrorCode.AUTHFAILED
            self._refuse_login(client, header, code)
            return
        if client.login.user is not None:
            client.identities[SASL, client.login.user] = None
            logger.info("%s has logged in as %s", client, client.login.user)
        reply = ReplyHeader(header.xid, 0, ErrorCode.OK)
        self._send(client, encode_reply(reply, OpCode.SASL, SaslReply(token)))

    def _needs_login(self, client: Connection, op: int) -> bool:
        if not self._settings.requires_login or op in (OpCode.SASL, OpCode.AUTH):
            return False
        return all(scheme not in (SASL, SUPER[0]) for scheme, _ in client.identities)

    def _refuse_login(self, client: Connection, header: RequestHeader, code: ErrorCode) -> None:
        self._send(client, encode_reply(ReplyHeader(header.xid, 0, code)))
        self._close(client)

    def _answer(
        self,
        client: Connection,
        header: RequestHeader,
        error: ErrorCode,
        reply: Reply | None = None,
    ) -> None:
        reply_header = ReplyHeader(header.xid, self.tree.zxid, error)
        self._send(client, encode_reply(reply_header, header.op, reply))

    def _send(self, client: Connection, payload: bytes) -> None:
        if not client.is_closing:
            client.send(payload)
            self.traffic.sent += 1
            self._ready[client] = None

    def _end(self, session: Session[Connection]) -> None:
        """End a session, and delete its ephemerals."""
        transaction = WriteTransaction(self.tree, self._clock.time_ms(), session.session_id)
        for path in self.tree.ephemerals(session.session_id):
            transaction.delete(path)
        transaction.apply_session(CloseSession(session.session_id))
        self._sessions.remove(session)
        self._finish_write(transaction)

    def _close_with_warning(self, connection: Connection, reason: str) -> None:
        logger.warning("Closing the connection of %s: %s", connection, reason)
        self._close(connection)

    def _close(self, connection: Connection) -> None:
        connection.is_closing = True
        self._detach(connection)
        self._ready[connection] = None

    def _detach(self, connection: Connection) -> None:
        self._watches.drop(connection)
        session, connection.session = connection.session, None
        if session is not None and session.connection is connection:
            session.connection = None
