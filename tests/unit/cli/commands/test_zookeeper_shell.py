"""`kafkapy zookeeper-shell`: the words that need no ZooKeeper; the rest is tested live."""

import pytest

from tests.harness.scripted.cli import kafkapy


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
