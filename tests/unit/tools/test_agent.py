"""agent: rounds, acknowledgements and the state, with a sink that a test decides over."""

from __future__ import annotations

import gzip
import json
import os
import resource
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from kafkapy.common.errors import ConfigError
from kafkapy.tools import file_tail
from kafkapy.tools.agent import ROTATE_WAIT_S, Agent, AgentError, State, Stop, TopicSink
from tests.unit.tools.test_compressed_files import FORMATS


class Sink:
    """Keeps what is safe. `refuse` makes it stop, unacknowledged, at the next round's end."""

    def __init__(self, stop: Stop) -> None:
        self.safe: list[tuple[str, str]] = []
        self.taken: list[tuple[str, str]] = []
        self.refuse = False
        self.failure = ""
        self._stop = stop

    def send(self, path: Path, value: bytes, offset: int) -> None:
        self.taken.append((path.name, value.decode()))

    def acknowledged(self) -> bool:
        if self.failure:
            raise AgentError(self.failure)
        if self.refuse:
            self._stop.set()
            return False
        self.safe += self.taken
        self.taken = []
        return True


class Machine:
    """A directory of logs, and agents that come and go."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.notes: list[str] = []
        self.sink = Sink(Stop())

    def run(self, *patterns: str, from_end: bool = False, refuse: bool = False) -> list[str]:
        """One life of an agent, until nothing is new; the lines that are safe after it."""
        stop = Stop()
        safe = self.sink.safe
        self.sink = Sink(stop)
        self.sink.safe, self.sink.refuse = safe, refuse
        names = [str(self.root / pattern) for pattern in patterns or ("*.log*",)]
        agent = Agent(
            names, State(self.root / "state"), self.sink, self.notes.append, from_end=from_end
        )
        agent.run(stop, once=True)
        agent.close()
        return self.lines()

    def lines(self) -> list[str]:
        return [value for _, value in self.sink.safe]

    def log(self, text: str, name: str = "app.log", mode: str = "a") -> None:
        with (self.root / name).open(mode) as file:
            file.write(text)

    def rename(self, old: str, new: str) -> None:
        (self.root / old).rename(self.root / new)


class Steps(Stop):
    """Stops an agent after some steps. Each is done when there are no new lines."""

    def __init__(self, *steps: Callable[[], None]) -> None:
        super().__init__()
        self._steps = iter(steps)

    def wait(self, limit_s: float) -> None:
        next(self._steps, self.set)()


class Watched:
    """An agent whose rounds and time pass one by one, as a test decides."""

    def __init__(self, machine: Machine, pattern: str, **settings: Any) -> None:
        self.now_s = 0.0
        self.sink = Sink(Stop())
        self.agent = Agent(
            [str(machine.root / pattern)],
            State(machine.root / "state"),
            self.sink,
            machine.notes.append,
            monotonic_s=lambda: self.now_s,
            **settings,
        )

    def lines(self, passed_s: float = 0) -> list[str]:
        """All lines that were sent, when some time has passed and there are no new ones."""
        self.now_s += passed_s
        for _ in range(12):
            self.agent.round()
        return [value for _, value in self.sink.taken]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_each_life_goes_on_where_the_last_was(machine: Machine) -> None:
    machine.log("a\nb\n")
    assert machine.run() == ["a", "b"]
    assert machine.run() == ["a", "b"]
    machine.log("c\nd")
    machine.log("x\n", "other.log")
    assert machine.run() == ["a", "b", "c", "x", "d"]  # taken as finished


def test_a_line_that_is_being_written_is_waited_for(machine: Machine) -> None:
    machine.log("a\nb")
    sink = Sink(Stop())
    state = State(machine.root / "state")
    agent = Agent([str(machine.root / "*.log")], state, sink, machine.notes.append)
    assert (agent.round(), agent.round()) == (1, 0)
    machine.log("c\n")
    assert agent.round() == 1
    agent.close()
    assert [value for _, value in sink.taken] == ["a", "bc"]


def test_what_was_not_acknowledged_is_sent_again(machine: Machine) -> None:
    machine.log("a\nb\n")
    assert machine.run(refuse=True) == []
    assert machine.run() == ["a", "b"]
    machine.log("c\n")
    assert machine.run(refuse=True) == ["a", "b"]
    assert machine.run() == ["a", "b", "c"]


def test_rotation_while_it_runs(machine: Machine) -> None:
    machine.log("a\n")
    watched = Watched(machine, "*.log*")
    assert watched.lines() == ["a"]
    machine.rename("app.log", "app.log.1")
    machine.log("b\nlast", "app.log.1")
    machine.log("c\n")
    assert watched.lines() == ["a", "b", "c"]
    assert watched.lines(ROTATE_WAIT_S) == ["a", "b", "c", "last"]
    machine.rename("app.log.1", "app.log.2")
    machine.rename("app.log", "app.log.1")
    machine.log("d\n")
    assert watched.lines()[4:] == ["d"]
    (machine.root / "app.log").unlink()
    assert watched.lines(ROTATE_WAIT_S)[5:] == []
    watched.agent.close()
    assert machine.notes == []


def log_and_rotated(machine: Machine) -> None:
    machine.log("1\n", "app.log.2")
    machine.log("2\n", "app.log.1")
    machine.log("3\n")


def rotate(machine: Machine) -> None:
    for number in (2, 1):
        machine.rename(f"app.log.{number}", f"app.log.{number + 1}")
    machine.rename("app.log", "app.log.1")
    machine.log("4\n")


def test_a_rotation_sends_no_whole_file_again(machine: Machine) -> None:
    """Each name had another file at once, and each of them was read from its beginning."""
    log_and_rotated(machine)
    sink = Sink(Stop())
    agent = Agent(
        [str(machine.root / "*.log*")], State(machine.root / "state"), sink, machine.notes.append
    )
    for _ in range(2):
        agent.round()
    machine.log("3a\n")
    machine.log("1a\n", "app.log.2")
    rotate(machine)
    for _ in range(6):
        agent.round()
    agent.close()
    assert [value for _, value in sink.taken] == ["3", "2", "1", "3a", "1a", "4"]
    assert machine.notes == []


def test_a_rotation_while_it_is_away_sends_no_whole_file_again(machine: Machine) -> None:
    log_and_rotated(machine)
    assert machine.run() == ["3", "2", "1"]
    rotate(machine)
    machine.log("1a\n", "app.log.3")
    assert machine.run() == ["3", "2", "1", "1a", "4"]
    assert machine.run() == ["3", "2", "1", "1a", "4"]
    machine.log("1b\n", "app.log.3")
    assert machine.run()[5:] == ["1b"]
    assert machine.notes == []


def test_a_file_whose_new_name_sorts_first_is_not_sent_again(machine: Machine) -> None:
    machine.log("a\n")
    machine.run()
    machine.log("b\n")
    machine.rename("app.log", "app-1.log")
    machine.log("c\n")
    assert machine.run() == ["a", "b", "c"]
    assert machine.run() == ["a", "b", "c"]
    assert machine.notes == []


def test_a_writer_that_learns_of_the_rotation_later(machine: Machine) -> None:
    """It has the renamed file open until it is told, as logrotate does behind the renaming."""
    machine.log("a\n")
    assert machine.run() == ["a"]
    machine.rename("app.log", "app.log.1")
    machine.log("b\n")
    assert machine.run() == ["a", "b"]
    machine.log("late\n", "app.log.1")
    assert machine.run() == ["a", "b", "late"]
    assert machine.sink.safe[-1] == ("app.log.1", "late")
    assert machine.run() == ["a", "b", "late"]
    machine.log("later\n", "app.log.1")
    assert machine.run() == ["a", "b", "late", "later"]
    assert machine.notes == []


@pytest.mark.parametrize("pattern", ["app.log", "app.log*"])
def test_lines_that_are_added_to_a_renamed_file_are_sent(machine: Machine, pattern: str) -> None:
    """The writer has it open until logrotate tells it; the new file exists already."""
    watched = Watched(machine, pattern)
    machine.log("a\n")
    assert watched.lines() == ["a"]
    machine.rename("app.log", "app.log.1")
    machine.log("b\n")
    assert watched.lines() == ["a", "b"]
    machine.log("late, la", "app.log.1")
    assert watched.lines(ROTATE_WAIT_S - 1) == ["a", "b"]
    machine.log("te\nlater\nla", "app.log.1")
    machine.log("c\n")
    assert watched.lines() == ["a", "b", "late, late", "later", "c"]
    assert watched.lines(ROTATE_WAIT_S - 1)[5:] == []
    assert watched.lines(1)[5:] == ["la"]  # the file has ended
    watched.agent.close()
    assert machine.notes == []


def test_a_renamed_file_is_closed_in_the_end(machine: Machine) -> None:
    watched = Watched(machine, "app.log")
    before = len(os.listdir("/proc/self/fd"))
    for number in range(3):
        machine.log(f"{number}\n")
        watched.lines()
        machine.rename("app.log", f"app.log.{number}")
    machine.log("a\n")
    assert len(watched.lines()) == 4
    assert len(os.listdir("/proc/self/fd")) == before + 4
    watched.lines(ROTATE_WAIT_S)
    assert len(os.listdir("/proc/self/fd")) == before + 1
    watched.agent.close()


def test_lines_of_a_file_that_was_deleted_are_sent(machine: Machine) -> None:
    watched = Watched(machine, "app.log")
    with (machine.root / "app.log").open("w", buffering=1) as writer:
        writer.write("a\n")
        assert watched.lines() == ["a"]
        (machine.root / "app.log").unlink()
        machine.log("b\n")
        assert watched.lines() == ["a", "b"]
        writer.write("late\n")
    assert watched.lines() == ["a", "b", "late"]
    watched.agent.close()


def test_the_positions_in_renamed_files_are_saved(machine: Machine) -> None:
    """The agent stops while it waits for late lines."""
    machine.log("a\n")
    assert machine.run() == ["a"]
    machine.log("b\n")
    sink = Sink(Stop())
    agent = Agent(
        [str(machine.root / "*.log*")], State(machine.root / "state"), sink, machine.notes.append
    )

    def rotate_once() -> None:
        machine.rename("app.log", "app.log.1")
        machine.log("c\n")

    agent.run(Steps(rotate_once, lambda: machine.log("late\n", "app.log.1")))
    agent.close()
    assert [value for _, value in sink.safe] == ["b", "c", "late"]
    assert machine.run() == ["a"]


def many(machine: Machine, text: str = "{}\n") -> list[str]:
    """Twenty files, of which the agents of these tests may have four open."""
    numbers = [f"{number:02}" for number in range(20)]
    for number in numbers:
        machine.log(text.format(number), f"{number}.log")
    return numbers


def open_logs(machine: Machine) -> int:
    links = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
    targets = [os.readlink(link) for link in links if os.path.islink(link)]
    return sum(target.startswith(str(machine.root)) for target in targets)


@contextmanager
def no_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_more_files_than_may_be_open(machine: Machine) -> None:
    numbers = many(machine)
    watched = Watched(machine, "*.log*", open_max=4)
    assert watched.lines() == numbers
    assert open_logs(machine) == 4
    for number in numbers:
        machine.log(f"{number}a\n", f"{number}.log")
        assert watched.lines()[-1] == f"{number}a"
    machine.log("b", "00.log")
    machine.rename("00.log", "00.log.1")
    machine.log("c\n", "00.log")
    machine.log("\n", "00.log.1")
    assert watched.lines()[40:] == ["b", "c"]
    assert open_logs(machine) <= 4
    machine.log("d\n", "01.log", "w")
    assert watched.lines()[42:] == ["d"]
    watched.agent.close()
    assert [note.partition("; ")[0].split("log ")[1] for note in machine.notes] == [
        "was truncated while the agent did not have it open"
    ]


@pytest.mark.parametrize("text", ["", "{}\n", "{}\nrest"])
def test_one_run_over_many_files(machine: Machine, text: str) -> None:
    expected = [line for number in many(machine, text) for line in text.format(number).split()]
    machine.log("last\n", "99.log")
    watched = Watched(machine, "*.log", open_max=4)
    watched.agent.run(Stop(), once=True)
    watched.agent.close()
    assert sorted(value for _, value in watched.sink.safe) == sorted([*expected, "last"])
    assert machine.run("*.log") == []


def test_the_end_of_many_files(machine: Machine) -> None:
    many(machine)
    watched = Watched(machine, "*.log", open_max=4, from_end=True)
    assert watched.lines() == []
    many(machine)
    assert len(watched.lines()) == 20
    watched.agent.close()


def test_a_file_that_cannot_be_opened_now_is_followed_later(machine: Machine) -> None:
    machine.log("a\n")
    watched = Watched(machine, "app.log")
    with no_descriptors():
        assert watched.lines() == []
    assert watched.lines() == ["a"]
    watched.agent.close()
    assert machine.notes == [
        f"{machine.root}/app.log cannot be read (Too many open files); the others are followed"
    ]


def test_rotation_while_it_is_away(machine: Machine) -> None:
    machine.log("a\n")
    machine.run("app.log")
    machine.log("b\n")
    machine.rename("app.log", "app.log.1")
    machine.log("c\n")
    assert machine.run("app.log") == ["a", "b", "c"]
    assert machine.run("*.log*") == ["a", "b", "c"]  # the renamed one is known
    assert machine.notes == []


def test_truncation_and_replacement_while_it_is_away_are_told(machine: Machine) -> None:
    machine.log("first\n")
    machine.run()
    machine.log("new\n", mode="w")
    assert machine.run() == ["first", "new"]
    machine.log("newer and longer\n", "next")  # beside the old one: with another inode
    (machine.root / "next").rename(machine.root / "app.log")
    assert machine.run() == ["first", "new", "newer and longer"]
    assert [note.partition(": ")[0].split("app.log ")[1] for note in machine.notes] == [
        "was truncated while the agent did not have it open; reading it from its beginning",
        "was replaced while the agent did not have it open; reading it from its beginning",
    ]


def test_a_named_file_with_brackets_is_followed(machine: Machine) -> None:
    """The shell has expanded the pattern; the agent followed app1.log instead, or no file."""
    machine.log("a\n", "app[1].log")
    machine.log("b\n", "app1.log")
    assert machine.run("app[1].log") == ["a"]
    assert machine.run("app[12].log") == ["a", "b"]


def test_from_the_end_is_for_what_is_there_at_the_first_start(machine: Machine) -> None:
    machine.log("old\n")
    assert machine.run(from_end=True) == []
    machine.log("new\n")
    machine.log("whole\n", "later.log")
    assert machine.run(from_end=True) == ["new", "whole"]


def test_lines_after_a_first_start_that_was_stopped_without_brokers_are_sent(
    machine: Machine,
) -> None:
    """They were skipped, because the first start saved its positions only with its first lines."""
    machine.log("old\n")
    assert machine.run(from_end=True, refuse=True) == []
    machine.log("new\n")
    assert machine.run(from_end=True) == ["new"]


def test_a_file_that_is_made_after_a_first_start_without_files_is_sent(machine: Machine) -> None:
    assert machine.run(from_end=True) == []
    machine.log("new\n")
    assert machine.run(from_end=True) == ["new"]
    (machine.root / "app.log").unlink()
    assert machine.run(from_end=True) == ["new"]
    machine.log("newer\n", "other.log")
    assert machine.run(from_end=True) == ["new", "newer"]


def test_a_line_that_cannot_be_delivered_ends_it_and_is_not_forgotten(machine: Machine) -> None:
    machine.log("a\n")
    sink = Sink(Stop())
    sink.failure = "Broker: Topic authorization failed"
    state = State(machine.root / "state")
    agent = Agent([str(machine.root / "*.log")], state, sink, machine.notes.append)
    with pytest.raises(AgentError, match="authorization"):
        agent.run(Stop(), once=True)
    agent.close()
    assert machine.run() == ["a"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"files": {"a": 1}, "done": []}'])
def test_a_state_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "state").write_text(text)
    with pytest.raises(ConfigError, match="is no state of an agent"):
        State(tmp_path / "state")


def test_a_state_that_cannot_be_read_or_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"^Cannot read {tmp_path}: Is a directory$"):
        State(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=rf"^Cannot read {tmp_path}/file/state: Not a directory$"):
        State(tmp_path / "file" / "state")
    (tmp_path / "state.part").mkdir()
    with pytest.raises(AgentError, match=rf"^Cannot write {tmp_path}/state: Is a directory$"):
        State(tmp_path / "state").save()


def test_the_state_is_whole_or_the_old_one(machine: Machine) -> None:
    machine.log("a\n")
    machine.run()
    data = json.loads((machine.root / "state").read_text())
    (cursor,) = data["files"].values()
    assert cursor["offset"] == 2
    assert not (machine.root / "state.part").exists()


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_that_logrotate_compressed_is_not_sent(machine: Machine, name: str) -> None:
    """Its bytes were sent as lines."""
    machine.log("a\n")
    packed = machine.root / "app.log.1.x"
    packed.write_bytes(FORMATS[name](b"\n".join(b"%d" % i for i in range(1000))))
    sink = Sink(Stop())
    agent = Agent(
        [str(machine.root / "*.log*")], State(machine.root / "state"), sink, machine.notes.append
    )
    agent.round()
    packed.rename(machine.root / "app.log.2.x")
    agent.round()
    agent.close()
    assert [value for _, value in sink.taken] == ["a"]
    assert machine.notes == [f"{packed} is compressed with {name}; it is not sent"]


def test_a_file_that_is_just_being_compressed_is_not_sent(machine: Machine) -> None:
    """It was empty when the agent opened it."""
    machine.log("", "app.log.1.gz")
    sink = Sink(Stop())
    agent = Agent(
        [str(machine.root / "*.log*")], State(machine.root / "state"), sink, machine.notes.append
    )
    agent.round()
    (machine.root / "app.log.1.gz").write_bytes(gzip.compress(b"a\n" * 9, compresslevel=0))
    for _ in range(2):
        agent.round()
    agent.close()
    assert sink.taken == []
    assert len(machine.notes) == 1


def test_links_out_of_the_patterns_are_not_followed(machine: Machine, tmp_path: Path) -> None:
    """The agent must not follow links: their creator may lack access to the target."""
    outside = tmp_path.parent / f"{tmp_path.name}-secrets"
    outside.mkdir()
    (outside / "key.log").write_text("secret\n")
    (tmp_path / "app.log").write_text("a\n")
    (tmp_path / "bad.log").symlink_to(outside / "key.log")
    (tmp_path / "dir").symlink_to(outside)
    (tmp_path / "own.log").symlink_to("app.log")
    assert machine.run("*.log", "*/*.log", "bad.log", "**/key.log") == ["a"]
    assert sorted(machine.notes) == [
        f"{tmp_path}/{name} is a symbolic link, or below one; it is not followed"
        for name in ("bad.log", "dir/key.log", "own.log")
    ]


def test_a_log_that_becomes_a_link_is_followed_no_more(machine: Machine, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret\n")
    machine.log("a\n")
    assert machine.run() == ["a"]
    machine.rename("app.log", "old")
    (tmp_path / "app.log").symlink_to(secret)
    assert machine.run() == ["a"]


def test_the_users_own_directories_may_be_links(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    machine.log("a\n", "real/app.log")
    assert machine.run("link/*.log") == ["a"]
    assert machine.run("link/app.log") == ["a"]
    assert machine.notes == []


def test_a_file_that_may_not_be_read_stops_no_other(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = file_tail._open

    def refuse(path: Path) -> int:
        if path.name == "app.log":
            raise PermissionError(13, "Permission denied")
        return opened(path)

    machine.log("a\n")
    machine.log("b\n", "other.log")
    with monkeypatch.context() as patched:
        patched.setattr(file_tail, "_open", refuse)
        assert machine.run() == ["b"]
    assert machine.notes == [
        f"{machine.root}/app.log cannot be read (Permission denied); the others are followed"
    ]
    assert machine.run() == ["b", "a"]


def test_a_renamed_file_that_may_not_be_read_stops_no_other(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = file_tail._open

    def refuse(path: Path) -> int:
        if path.name == "app.log.1":
            raise PermissionError(13, "Permission denied")
        return opened(path)

    machine.log("a\n")
    assert machine.run("*.log") == ["a"]
    machine.log("lost\n")
    machine.rename("app.log", "app.log.1")
    machine.log("b\n")
    machine.log("c\n", "other.log")
    monkeypatch.setattr(file_tail, "_open", refuse)
    assert machine.run("*.log") == ["a", "b", "c"]
    assert machine.notes == [
        f"{machine.root}/app.log was replaced while the agent did not have it open; reading it from"
        " its beginning"
    ]


class FullProducer:
    """librdkafka's producer while no broker answers: its queue has room for one line."""

    made: list[FullProducer] = []  # noqa: RUF012
    stop: Stop

    def __init__(self, config: dict[str, Any]) -> None:
        self.queued: list[tuple[Any, ...]] = []
        FullProducer.made.append(self)

    def produce(self, *record: Any, headers: Any, on_delivery: Any) -> None:
        if self.queued:
            raise BufferError
        self.queued.append((*record, headers))

    def poll(self, timeout: float) -> None:
        self.stop.set()

    def flush(self, timeout: float) -> int:
        return 0


@pytest.fixture
def producers(monkeypatch: pytest.MonkeyPatch) -> list[FullProducer]:
    FullProducer.made = []
    FullProducer.stop = Stop()
    monkeypatch.setattr("kafkapy.tools.agent.ToolProducer", FullProducer)
    return FullProducer.made


def test_it_stops_while_the_queue_is_full(producers: Any, machine: Machine) -> None:
    machine.log("a\nb\n")
    stop, state = FullProducer.stop, State(machine.root / "state")
    sink = TopicSink("t", {}, machine.notes.append, stop.is_set)
    agent = Agent([str(machine.root / "*.log")], state, sink, machine.notes.append)
    running = threading.Thread(target=agent.run, args=(stop,), daemon=True)
    running.start()
    running.join(10)
    assert not running.is_alive()
    agent.close()
    assert machine.run() == ["a", "b"]  # none of them was taken for acknowledged


def test_a_topic_that_refuses_a_line_ends_the_agent_with_its_name(
    producers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))

    monkeypatch.setattr(FullProducer, "produce", refuse)
    with pytest.raises(AgentError, match="Topic t: Broker: Topic authorization failed"):
        TopicSink("t", {}, print).send(Path("/logs/a.log"), b"a", 0)


def test_a_file_whose_name_is_no_utf_8(producers: Any, machine: Machine) -> None:
    sink = TopicSink("t", {}, machine.notes.append)
    sink.send(Path("/logs/\udcff.log"), b"a", 0)
    ((topic, value, key, headers),) = producers[0].queued
    assert (topic, value, key) == ("t", b"a", b"/logs/\xff.log")
    assert headers == [("file", b"/logs/\xff.log"), ("offset", b"0")]


def test_a_signal_stops_it_wherever_it_waits() -> None:
    """A handler runs between any two lines, also while its own thread holds a lock."""

    def interrupted(at: int) -> bool:
        """Whether a wait that gets a signal at this line, or never, ends."""
        stop, lines = Stop(), 0

        def trace(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal lines
            if event == "line":
                lines += 1
                if lines == at:
                    sys.settrace(None)
                    stop.set()
            return trace

        def wait() -> None:
            sys.settrace(trace)
            try:
                stop.wait(0)
                stop.wait(0)
            finally:
                sys.settrace(None)

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        thread.join(10)
        return not thread.is_alive() and stop.is_set() is (lines >= at)

    assert next((at for at in range(1, 40) if not interrupted(at)), None) is None
