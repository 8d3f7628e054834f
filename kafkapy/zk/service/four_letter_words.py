"""Four-letter words: ZooKeeper's text commands, which need no client and no session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kafkapy.common.ports import Clock
from kafkapy.zk.embedded.znode_tree import ZnodeTree
from kafkapy.zk.service.connection import Connection
from kafkapy.zk.service.settings import WORDS, ServiceSettings
from kafkapy.zk.service.watches import Watches

VERSION: Final = "3.9.5-kafkapy"
_UNSUPPORTED_WORDS: Final = (
    "crst",
    "dirs",
    "dump",
    "gtmk",
    "hash",
    "lsnp",
    "srst",
    "stmk",
    "wchc",
    "wchp",
)


@dataclass(slots=True)
class Traffic:
    """Counts of packets, and the latency of requests."""

    received: int = 0
    sent: int = 0
    answered: int = 0
    min_ms: int = 0
    max_ms: int = 0
    total_ms: int = 0

    def count_replies(self, count: int, waited_ms: int) -> None:
        """Count requests whose replies go out together."""
        self.min_ms = min(self.min_ms, waited_ms) if self.answered else waited_ms
        self.max_ms = max(self.max_ms, waited_ms)
        self.total_ms += waited_ms * count
        self.answered += count

    @property
    def average_ms(self) -> float:
        """Mean latency of all requests."""
        return self.total_ms / self.answered if self.answered else 0.0


class FourLetterWords:
    """Answers the words. The lines have ZooKeeper's names."""

    def __init__(
        self,
        tree: ZnodeTree,
        watches: Watches[Connection],
        connections: Iterable[Connection],
        traffic: Traffic,
        settings: ServiceSettings,
        properties: Mapping[str, str],
        clock: Clock,
    ) -> None:
        self._tree = tree
        self._watches = watches
        self._connections = connections
        self._traffic = traffic
        self._settings = settings
        self._properties = properties
        self._clock = clock

    def is_word(self, head: bytes) -> bool:
        """Whether the first four bytes of a connection are a word, and not a frame's length."""
        return head.decode("latin-1") in (*WORDS, *_UNSUPPORTED_WORDS)

    def answer(self, head: bytes) -> str:
        """The answer to a word."""
        word = head.decode("latin-1")
        answers: dict[str, Callable[[], str]] = {
            "ruok": lambda: "imok",
            "isro": lambda: "rw",
            "srvr": lambda: _version_line() + self._summary(),
            "stat": self._stat,
            "mntr": self._mntr,
            "cons": lambda: self._clients(details=True) + "\n",
            "wchs": self._wchs,
            "conf": self._conf,
            "envi": lambda: f"Environment:\nzookeeper.version={VERSION}\n",
        }
        if word not in self._settings.words:
            return f"{word} is not executed because it is not in the whitelist.\n"
        return answers[word]()

    def _stat(self) -> str:
        return f"{_version_line()}Clients:\n{self._clients()}\n{self._summary()}"

    def _summary(self) -> str:
        traffic = self._traffic
        lines = [
            f"Latency min/avg/max: {traffic.min_ms}/{traffic.average_ms:.4f}/{traffic.max_ms}",
            f"Received: {traffic.received}",
            f"Sent: {traffic.sent}",
            f"Connections: {sum(1 for _ in self._connections)}",
            "Outstanding: 0",
            f"Zxid: {self._tree.zxid:#x}",
            "Mode: standalone",
            f"Node count: {len(self._tree.nodes)}",
        ]
        return "".join(f"{line}\n" for line in lines)

    def _clients(self, details: bool = False) -> str:
        lines = []
        # Converts monotonic time to wall-clock time.
        wall_offset_ms = self._clock.time_ms() - self._clock.monotonic_ms()
        for each in self._connections:
            facts = f"queued=0,recved={each.received},sent={each.sent}"
            if details and each.session is not None:
                facts += (
                    f",sid={each.session.session_id:#x},lop={each.last_op}"
                    f",est={wall_offset_ms + each.opened_ms},to={each.session.timeout_ms}"
                )
                if each.last_xid >= 0:  # those of pings and logins are negative
                    facts += f",lcxid={each.last_xid:#x}"
            lines.append(f" {each}[{1 if each.session else 0}]({facts})\n")
        return "".join(lines)

    def _mntr(self) -> str:
        traffic, tree = self._traffic, self._tree
        rows = {
            "version": f"{VERSION}, built on unknown",
            "server_state": "standalone",
            "avg_latency": f"{traffic.average_ms:.4f}",
            "max_latency": traffic.max_ms,
            "min_latency": traffic.min_ms,
            "packets_received": traffic.received,
            "packets_sent": traffic.sent,
            "num_alive_connections": sum(1 for _ in self._connections),
            "outstanding_requests": 0,
            "znode_count": len(tree.nodes),
            "watch_count": self._watches.data.counts()[2] + self._watches.children.counts()[2],
            "ephemerals_count": tree.ephemeral_count(),
            "approximate_data_size": sum(
                len(path) + len(node.data or b"") for path, node in tree.nodes.items()
            ),
            "global_sessions": len(tree.sessions),
        }
        return "".join(f"zk_{name}\t{value}\n" for name, value in rows.items())

    def _wchs(self) -> str:
        watchers, paths, watches = self._watches.data.counts()
        return f"{watchers} connections watching {paths} paths\nTotal watches:{watches}\n"

    def _conf(self) -> str:
        settings = self._settings
        rows = {
            "clientPort": self._properties.get("clientPort", ""),
            "secureClientPort": self._properties.get("secureClientPort", -1),
            "dataDir": self._properties.get("dataDir", ""),
            "tickTime": settings.tick_ms,
            "maxClientCnxns": settings.max_connections,
            "minSessionTimeout": settings.min_session_timeout_ms,
            "maxSessionTimeout": settings.max_session_timeout_ms,
            "clientPortAddress": self._properties.get("clientPortAddress", ""),
            "serverId": 0,
        }
        return "".join(f"{name}={value}\n" for name, value in rows.items())


def _version_line() -> str:
    return f"Zookeeper version: {VERSION}, built on unknown\n"
