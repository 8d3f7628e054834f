"""The fuzzer's broker, its clients, and the process that measures the delays of other clients.

A second process sends a small request again and again on a connection of its own, and measures the
time to each answer. On a busy machine, this time alone says little. So the process also measures
how long it and the broker's event loop waited for a processor, which is subtracted, and how much
processor time the broker used meanwhile, which is the most that it can have delayed others.
"""

from __future__ import annotations

import multiprocessing
import select
import socket
import struct
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, NamedTuple

from kafkapy.common.uuid import Uuid
from kafkapy.protocol.headers import decode_response, encode_request
from kafkapy.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kafkapy.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kafkapy.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kafkapy.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kafkapy.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.harness.processes.broker_process import API_VERSIONS_V0, BrokerProcess, free_port

USERS: Final = ("admin", "mallory")
TOPICS: Final[dict[str, tuple[int, dict[str, str]]]] = {
    "fuzz": (3, {}),
    "wide": (100, {}),
    "compact": (1, {"cleanup.policy": "compact"}),
    "gzip": (1, {"compression.type": "gzip"}),
    "lz4": (1, {"compression.type": "lz4"}),
    "stamped": (1, {"message.timestamp.type": "LogAppendTime"}),
}
SHARE_GROUPS: Final = ("group-0", "group-1")
_SHARED: Final = [
    AlterShareGroupOffsetsRequestTopic(
        topic_name=name,
        partitions=[
            AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=0)
            for index in range(partitions)
        ],
    )
    for name, (partitions, _) in TOPICS.items()
]
PING_EVERY_S: Final = 0.002
WORTH_NOTING_S: Final = 0.02
LIMIT_S: Final = 60.0
_SCHEDULER_CLOCK: Final = 2


class Ping(NamedTuple):
    """One small request of another client."""

    began_s: float
    took_s: float
    used_s: float  # of processor time, by all threads of the broker, meanwhile
    queued_s: float  # for a processor, by the broker's event loop and by the client

    @property
    def delay_s(self) -> float:
        """Delay that the broker caused: at most the processor time that it used."""
        return max(0.0, min(self.took_s - self.queued_s, self.used_s))


NO_DELAY: Final = Ping(0.0, 0.0, 0.0, 0.0)


def new_broker(directory: Path, is_guarded: bool) -> BrokerProcess:
    """A broker with default configs, not started; or one with logins and an authorizer."""
    port = free_port()
    settings = {"listeners": f"PLAINTEXT://127.0.0.1:{port}"}
    if is_guarded:
        users = " ".join(f'user_{user}="{user}-secret"' for user in USERS)
        settings = {
            "listeners": f"SASL_PLAINTEXT://127.0.0.1:{port}",
            "security.inter.broker.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": "org.apache.kafka.common"
            '.security.plain.PlainLoginModule required username="admin" password="admin-secret"'
            f" {users};",
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:admin",
        }
    broker = BrokerProcess(directory, settings)
    broker.port, broker.bootstrap_servers = port, f"127.0.0.1:{port}"
    return broker


class Client:
    """A connection without TLS, logged in if the broker requires it."""

    def __init__(self, port: int, user: str | None) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if user is not None:
            self.ask(encode_request(SaslHandshakeRequest(mechanism="PLAIN"), 1, 1, "fuzz"))
            token = f"\0{user}\0{user}-secret".encode()
            self.ask(encode_request(SaslAuthenticateRequest(auth_bytes=token), 2, 1, "fuzz"))

    def ask(self, frame: bytes, limit_s: float = LIMIT_S) -> bytes | None:
        """The answer's frame; None if the broker closed the connection or did not answer in time:
        then the connection cannot be used any more."""
        try:
            self._socket.settimeout(limit_s)
            self._socket.sendall(frame)
            size = self._read(4)
            return None if size is None else self._read(struct.unpack(">i", size)[0])
        except OSError:
            return None

    def _read(self, count: int) -> bytes | None:
        data = bytearray()
        while len(data) < count:
            part = self._socket.recv(min(1 << 20, count - len(data)))
            if not part:
                return None
            data += part
        return bytes(data)

    def close(self) -> None:
        self._socket.close()


def make_topics(port: int, user: str | None) -> list[Uuid]:
    """Create the missing topics of the requests, and share groups of the topics. Returns the ids
    of the topics."""
    rows = [
        CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[CreatableTopicConfig(name=k, value=v) for k, v in configs.items()],
        )
        for name, (partitions, configs) in TOPICS.items()
    ]
    client = Client(port, user)
    request = CreateTopicsRequest(topics=rows, timeout_ms=20_000)
    assert client.ask(encode_request(request, 4, 1, "fuzz")) is not None
    for group in SHARE_GROUPS:
        offsets = AlterShareGroupOffsetsRequest(group_id=group, topics=_SHARED)
        assert client.ask(encode_request(offsets, 0, 1, "fuzz")) is not None
    wanted = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in TOPICS])
    answer = client.ask(encode_request(wanted, 12, 1, "fuzz"))
    assert answer is not None
    client.close()
    found = decode_response(MetadataResponse, 12, answer)[1]
    return [topic.topic_id for topic in found.topics if not topic.error_code]


class Pinger:
    """The other client, in a process of its own."""

    def __init__(self, broker: BrokerProcess, user: str | None) -> None:
        self._mine, theirs = multiprocessing.Pipe()
        arguments = (broker.port, user, broker.pid, theirs)
        self._process = multiprocessing.Process(target=_ping_on, args=arguments, daemon=True)
        self._process.start()

    def taken(self) -> tuple[int, list[Ping]]:
        """Number of pings since the last call, and the slow ones (above `WORTH_NOTING_S`)."""
        self._mine.send("report")
        count, slow = self._mine.recv()
        return count, slow

    def close(self) -> None:
        self._mine.send("end")
        self._process.join(LIMIT_S)


def _ping_on(port: int, user: str | None, pid: int, control: Connection) -> None:
    client = Client(port, user)
    count, slow = 0, []
    while True:
        before_s, queued_s = used_seconds(pid), queued_seconds(pid)
        began_s = time.monotonic()
        answer = client.ask(API_VERSIONS_V0)
        took_s = time.monotonic() - began_s
        if answer is None:
            client.close()
            client = Client(port, user)
            took_s = max(took_s, LIMIT_S)
        count += 1
        if took_s > WORTH_NOTING_S:
            used_s, queued_s = used_seconds(pid) - before_s, queued_seconds(pid) - queued_s
            slow.append(Ping(began_s, took_s, used_s, queued_s))
        readable, _, _ = select.select([control], [], [], PING_EVERY_S)
        if readable:
            if control.recv() == "end":
                return
            control.send((count, slow))
            count, slow = 0, []


def used_seconds(pid: int) -> float:
    """Processor time that a process has used (`clock_getcpuclockid`)."""
    return time.clock_gettime(~pid << 3 | _SCHEDULER_CLOCK)


def queued_seconds(pid: int) -> float:
    """Time that the main threads of a process and of this one have waited for a processor."""
    files = (Path("/proc/self/schedstat"), Path(f"/proc/{pid}/schedstat"))
    return sum(int(file.read_text().split()[1]) for file in files) / 1e9


def resident_bytes(pid: int) -> tuple[int, int]:
    """Resident set size of a process: current and peak."""
    found = {}
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        key, _, rest = line.partition(":")
        if key in ("VmRSS", "VmHWM"):
            found[key] = int(rest.split()[0]) << 10
    return found["VmRSS"], found["VmHWM"]
