"""A forked broker is what the console script would be, to those who start, watch and end it."""

from __future__ import annotations

import signal
import subprocess
from multiprocessing import connection
from pathlib import Path

import pytest

from tests.harness.processes import forked_brokers
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.processes.forked_brokers import ForkedBroker, can_fork


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment that is inherited, whatever tests before have left in it."""
    monkeypatch.setattr(forked_brokers, "_inherited", forked_brokers._environment())


def test_its_life_and_its_statuses(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path / "logs")
    with broker:
        assert isinstance(broker._process, ForkedBroker)
        with pytest.raises(subprocess.TimeoutExpired):
            broker.wait(0.01)
        assert broker.stop() == 0
    assert "[KafkaServer id=0] started" in broker.output_text()
    broker.start()
    broker.kill()
    assert broker.wait() == -signal.SIGKILL
    assert broker.output_text().count("[KafkaServer id=0] started") == 2


def test_a_start_that_fails_says_why(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path / "logs", {"num.partitions": "many"})
    with pytest.raises(RuntimeError, match=r"ended with status 1 while starting[^!]*many"):
        broker.start()


def test_other_commands_and_environments_are_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = BrokerProcess(tmp_path / "logs").command
    assert can_fork(command)
    assert not can_fork(["sh", "-c", "exec", *command])
    monkeypatch.setenv("KAFKA_OPTS", "-Djava.security.auth.login.config=/jaas.conf")
    assert not can_fork(command)


def test_its_end_is_seen_though_another_thread_closes_what_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of its sentinel may then be that of another file, which says nothing."""
    broker = BrokerProcess(tmp_path / "logs")
    broker.start()
    process, wait = broker._process, connection.wait
    assert isinstance(process, ForkedBroker)

    def closed_meanwhile(sentinels: list[int], timeout: float | None) -> list[int]:
        assert timeout is not None, "nobody would wake it"
        monkeypatch.setattr(connection, "wait", wait)
        process.kill()
        assert process.wait() == -signal.SIGKILL
        return []

    monkeypatch.setattr(connection, "wait", closed_meanwhile)
    assert process.wait() == -signal.SIGKILL
