"""`kafkapy zookeeper-shell`: the words that need no ZooKeeper; the rest is tested live."""

import io
from typing import Any

import pytest
from kazoo.exceptions import SessionClosedRequireSaslError
from kazoo.protocol.states import WatchedEvent

from kafkapy.cli.framework.command_line import run
from kafkapy.cli.framework.environment import Environment
from kafkapy.tools.zookeeper import shell
from tests.harness.scripted.cli import kafkapy


class Closing:
    """The part of kazoo's client that the command itself uses."""

    def stop(self) -> None:
        """Nothing is connected."""

    def close(self) -> None:
        """Nothing is connected."""


def connect_to(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "connect", lambda hosts, properties, reconnects: client)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--output", "text"], "USAGE: kafkapy zookeeper-shell host:port[/chroot] [-zk-tls-confi"),
        (["h:1", "-zk-tls-config-file"], "-zk-tls-config-file needs a file"),
        (["h:1", "-zk-tls-config-file", "/nope/f", "ls", "/"], "Cannot read /nope/f"),
    ],
)
def test_wrong_words(words: list[str], said: str) -> None:
    done = kafkapy("zookeeper-shell", *words)
    assert said in done.stderr
    assert (done.stdout, done.status) == ("", 1)


@pytest.mark.parametrize(
    ("words", "stdin", "status"), [(["ls", "/"], b"", 1), ([], b"ls /\nquit\n", 0)]
)
def test_one_learns_that_zookeeper_requires_a_login_and_how_to_log_in(
    words: list[str], stdin: bytes, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing(Closing):
        def get_children(self, path: str, **options: Any) -> Any:
            raise SessionClosedRequireSaslError

    connect_to(Refusing(), monkeypatch)
    done = kafkapy("zookeeper-shell", "h:1", *words, stdin=stdin)
    error, hint = done.stderr.splitlines()
    assert error == "SessionClosedRequireSaslError: /"
    assert hint.startswith("Hint: ZooKeeper requires a login: a section Client in a JAAS file")
    assert done.status == status


def test_a_reader_of_a_pipe_gets_each_result_and_each_event_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Or a script that waits for an answer, or for a change of a node, waits for ever."""
    pipe = io.BytesIO()
    received: list[str] = []

    class Watched(Closing):
        def get(self, path: str, watch: Any) -> tuple[bytes, None]:
            watch(WatchedEvent("CHANGED", "CONNECTED", path))
            received.append(pipe.getvalue().decode())
            return b"one", None

        def exists(self, path: str, watch: Any) -> None:
            received.append(pipe.getvalue().decode())

    connect_to(Watched(), monkeypatch)
    lines = io.StringIO("get -w /a\nstat /a\n")
    env = Environment(lines, io.TextIOWrapper(pipe, "utf-8"), io.StringIO())
    assert run(["zookeeper-shell", "h:1"], env) == 0
    event, result = received
    assert event.endswith("type:NodeDataChanged path:/a\n")
    assert result.endswith("\none\n")
