"""`kafkapy zookeeper-shell`: the words that need no ZooKeeper; the rest is tested live."""

from typing import Any

import pytest
from kazoo.exceptions import SessionClosedRequireSaslError

from kafkapy.tools.zookeeper import shell
from tests.harness.scripted.cli import kafkapy


class Closing:
    """The part of kazoo's client that the command itself uses."""

    def stop(self) -> None:
        """Nothing is connected."""

    def close(self) -> None:
        """Nothing is connected."""


def connect_to(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "connect", lambda hosts, properties: client)


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
