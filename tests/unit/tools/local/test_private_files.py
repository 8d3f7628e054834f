"""Nobody but the owner reads what may hold a password, nor did for a moment."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from kafkapy.cli.commands import server
from kafkapy.cli.framework.environment import Environment
from kafkapy.common.errors import ConfigError
from kafkapy.tools.local.cluster_layout import create
from kafkapy.tools.local.private_files import check_owner, write_privately
from kafkapy.tools.supervisor.supervisor import Supervisor
from kafkapy.tools.zookeeper import process
from kafkapy.tools.zookeeper.implementations import Implementation


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_the_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    path.chmod(0o644)
    before = os.umask(0)
    try:
        write_privately(path, b"password")
    finally:
        os.umask(before)
    assert (path.read_bytes(), mode(path)) == (b"password", 0o600)
    assert os.listdir(tmp_path) == ["a"]


def test_a_cluster_keeps_its_overrides_to_itself(tmp_path: Path) -> None:
    create(tmp_path, 1, 0, {"sasl.jaas.config": 'x required password="secret";'}).save()
    [file] = tmp_path.iterdir()
    assert mode(file) == 0o600


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that another user has made in a directory like /tmp, with a link in it."""
    tmp_path.chmod(0o1777)
    directory = tmp_path / "kafka-logs"
    directory.mkdir()
    (directory / "kafkaServer.out").symlink_to(tmp_path / "profile")
    if os.geteuid() == 0:
        os.chown(directory, 1, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: directory.stat().st_uid + 1)
    return directory


def test_a_broker_does_not_write_through_the_links_of_another_user(prepared: Path) -> None:
    """/tmp/kafka-logs is the default. The output of a broker was appended to any file."""
    options = server.ServerOptions(
        words=["start"], daemon=True, override=[f"log.dirs={prepared}", "listeners=PLAINTEXT://:-1"]
    )
    with pytest.raises(ConfigError, match="kafka-logs belongs to another user"):
        server.run(options, Environment())
    assert not (prepared.parent / "profile").exists()


def test_further_brokers_do_not_write_through_the_links_of_another_user(prepared: Path) -> None:
    """With --processes, broker N has log.dirs with -N behind the names."""
    directory = prepared.rename(prepared.with_name("kafka-logs-1"))
    properties = {"log.dirs": str(prepared), "zookeeper.connect": "127.0.0.1:1"}
    supervisor = Supervisor(2, [], properties, lambda _: None)
    with pytest.raises(ConfigError, match="kafka-logs-1 belongs to another user"):
        supervisor._child(1, "machine", "127.0.0.1:1")
    assert not (directory.parent / "profile").exists()


def test_a_zookeeper_does_not_write_through_the_links_of_another_user(prepared: Path) -> None:
    config = process.effective_config({}, {"dataDir": str(prepared)})
    with pytest.raises(ConfigError, match="kafka-logs belongs to another user"):
        process.check(config, Implementation.KAFKAPY)


def test_directories_of_root_and_ones_own_are_used(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    (tmp_path / "own").mkdir()
    check_owner(tmp_path / "own", "log.dirs")
    check_owner(tmp_path / "missing", "log.dirs")
    check_owner(Path("/tmp"), "log.dirs")
