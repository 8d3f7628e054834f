"""Which records of a share group are acknowledged. With brokers: test_share_groups."""

from __future__ import annotations

import errno
import io
from typing import Any

import pytest
from confluent_kafka import AcknowledgeType

from kafkapy.common.errors import KafkapyError
from kafkapy.tools.console import console_share_consumer
from kafkapy.tools.console.console_share_consumer import ConsoleShareConsumer
from kafkapy.tools.console.message_formatter import Message
from tests.unit.tools.console.test_console_consumer import Raw


class SharedRaw(Raw):
    def delivery_count(self) -> int:
        return 1


class FakeShareConsumer:
    """One batch of records, and what became of them."""

    def __init__(self, offsets: range) -> None:
        self.batch = [SharedRaw(offset) for offset in offsets]
        self.acknowledged: dict[int, AcknowledgeType] = {}
        self.committed: list[int] = []

    def subscribe(self, topics: list[str]) -> None:
        """Nothing to know."""

    def poll(self, timeout_s: float) -> list[SharedRaw]:
        return self.batch

    def acknowledge(self, raw: SharedRaw, kind: AcknowledgeType) -> None:
        self.acknowledged[raw.offset()] = kind

    def commit_sync(self) -> None:
        self.committed = sorted(self.acknowledged)

    def close(self) -> None:
        """Nothing to end."""


class Full(io.BytesIO):
    """A disk that fills up as the buffer is written."""

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeShareConsumer:
    fake = FakeShareConsumer(range(3))
    monkeypatch.setattr(console_share_consumer, "make_share_consumer", lambda *_: fake)
    return fake


def show(message: Message) -> bytes:
    if message.offset == 1:
        raise KafkapyError("odd")
    return b"%d\n" % message.offset


def run(out: io.BytesIO, render: Any = lambda message: b"x", max_messages: int = 3) -> None:
    ConsoleShareConsumer("t", {}, lambda _: None).run(
        render, out, max_messages=max_messages, timeout_ms=None
    )


def test_what_was_printed_is_acknowledged_and_the_rest_released(fake: FakeShareConsumer) -> None:
    run(io.BytesIO(), max_messages=2)
    kinds = [AcknowledgeType.ACCEPT, AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE]
    assert list(fake.acknowledged.values()) == kinds
    assert fake.committed == [0, 1, 2]


def test_what_could_not_be_written_is_not_acknowledged(fake: FakeShareConsumer) -> None:
    """The broker forgets what is acknowledged: a full disk took the records from all."""
    with pytest.raises(OSError, match="No space left"):
        run(Full())
    assert not fake.acknowledged


def test_what_was_printed_before_a_mistake_is_acknowledged(fake: FakeShareConsumer) -> None:
    out = io.BytesIO()
    with pytest.raises(KafkapyError, match="odd"):
        run(out, show)
    assert (out.getvalue(), list(fake.acknowledged)) == (b"0\n", [0])
