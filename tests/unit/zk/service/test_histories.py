"""Random requests of eight clients: none sees data that is newer than an event of its own watch."""

from __future__ import annotations

import random

import pytest

from kafkapy.zk.service.connection import Connection
from kafkapy.zk.wire.codes import ErrorCode, OpCode
from kafkapy.zk.wire.frames import FrameDecoder, encode_frame
from kafkapy.zk.wire.requests import CreateRequest, SetDataRequest
from tests.harness.cores.znodes import BytesFile
from tests.harness.cores.zookeeper_conversation import new_service
from tests.harness.cores.zookeeper_history import (
    OPEN,
    Observer,
    Serial,
    random_request,
    replay,
)

CLIENTS = 8
STEPS = 400


class Story:
    """Requests wait in the service for the next commit. Clients lose their connections, all of them
    with the service, and come back later."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.file = BytesFile()
        self.service = new_service(self.file)
        self.observers = [Observer(number) for number in range(CLIENTS)]
        self.connections: dict[int, Connection] = {}
        self.decoders: dict[int, FrameDecoder] = {}
        for observer in self.observers:
            self.connect(observer)

    def connect(self, observer: Observer) -> None:
        connection = self.service.add_connection("127.0.0.1", 1)
        assert connection is not None
        self.connections[observer.number] = connection
        self.decoders[observer.number] = FrameDecoder(1 << 30)
        self.service.handle_data(connection, encode_frame(observer.connect_request_frame()))
        self.commit()

    def commit(self) -> None:
        while ready := self.service.commit():
            for number, connection in self.connections.items():
                if connection in ready:
                    self.decoders[number].feed(connection.take())
                    for frame in iter(self.decoders[number].next_frame, None):
                        self.observers[number].received(frame)

    def step(self) -> None:
        observer = self.chance.choice(self.observers)
        what = self.chance.random()
        if observer.number not in self.connections:
            if what < 0.3:
                self.come_back(observer)
        elif what < 0.02:
            self.commit()
            self.service.remove_connection(self.connections.pop(observer.number))
        elif what < 0.03:
            self.commit()
            self.service = new_service(self.file)
            self.connections.clear()
        elif what < 0.3:
            self.commit()
        else:
            frame = observer.request(*random_request(self.chance, ""))
            self.service.handle_data(self.connections[observer.number], encode_frame(frame))

    def come_back(self, observer: Observer) -> None:
        self.connect(observer)
        frame = observer.set_watches_frame()
        self.service.handle_data(self.connections[observer.number], encode_frame(frame))


@pytest.mark.parametrize("seed", range(12))
def test_a_story(seed: int) -> None:
    story = Story(seed)
    for _ in range(STEPS):
        story.step()
    for observer in story.observers:
        if observer.number not in story.connections:
            story.come_back(observer)
    story.commit()
    assert not any(observer.waits for observer in story.observers)
    assert sum(observer.events for observer in story.observers) > 2
    assert replay(story.observers, ()) > STEPS // 8


def test_an_observer_sees_what_comes_too_early() -> None:
    serial = Serial(1)
    (observer,) = serial.observers
    serial.write(0, OpCode.CREATE2, CreateRequest("/a", b"", OPEN, 0))
    observer._data["/a"] = observer.zxid
    observer._event = lambda event: None  # type: ignore[method-assign]
    with pytest.raises(AssertionError, match="before its event"):
        serial.write(0, OpCode.SET_DATA, SetDataRequest("/a", b"", -1))


def test_a_write_that_nobody_acknowledged_is_missed() -> None:
    serial = Serial(2)
    for number in range(3):
        serial.write(number % 2, OpCode.CREATE2, CreateRequest(f"/{number}", b"", OPEN, 0))
    del serial.observers[1].writes[0]
    with pytest.raises(AssertionError, match="nobody knows"):
        replay(serial.observers, ())


def test_replies_that_no_order_gives_are_found() -> None:
    serial = Serial(1)
    serial.write(0, OpCode.CREATE2, CreateRequest("/a", b"", OPEN, 0))
    (observer,) = serial.observers
    observer.writes[0] = observer.writes[0]._replace(error=ErrorCode.NODEEXISTS)
    with pytest.raises(AssertionError, match="NODEEXISTS"):
        replay(serial.observers, ())
