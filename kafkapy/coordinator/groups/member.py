"""One member of a group (`kafka.coordinator.group.MemberMetadata`)."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class Member:
    """A group member: identity, protocols, assignment. Its pending requests are in its group."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Sequence[tuple[str, bytes]]
    """(name, metadata), in the member's order of preference."""
    assignment: bytes = b""
    is_new: bool = True
    """Whether no JoinGroup of the member was answered yet. Without a generation it cannot send
    heartbeats."""

    @property
    def is_static(self) -> bool:
        """Whether it survives a rebalance without rejoining (KIP-345)."""
        return self.group_instance_id is not None

    @property
    def protocol_names(self) -> set[str]:
        """Names of the supported protocols, each once."""
        return {name for name, _ in self.protocols}

    def metadata(self, protocol_name: str | None) -> bytes:
        """Its metadata for a protocol; empty if it has none."""
        return next((data for name, data in self.protocols if name == protocol_name), b"")

    def vote(self, candidates: Container[str]) -> str:
        """The first of its protocols that is in `candidates`."""
        return next(name for name, _ in self.protocols if name in candidates)
