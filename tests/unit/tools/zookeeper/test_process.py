"""Finding Java, the jars and the processes; what is written for the server."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.tools.local.background import LaunchedServer
from kafkapy.tools.zookeeper import process as zookeeper_process
from kafkapy.tools.zookeeper.implementations import Implementation
from kafkapy.tools.zookeeper.process import (
    CONFIG_FILE,
    MAIN_CLASS,
    PID_FILE,
    address_of,
    addresses_of,
    check,
    class_path,
    effective_config,
    four_letter_word,
    is_zookeeper,
    java,
    prepare,
    running_servers,
    server_of,
    start_in_background,
)
from tests.harness.processes.broker_process import free_port
from tests.harness.processes.idle_servers import IdleServers


def test_overrides_win_over_the_file_and_the_file_over_kafkas_defaults() -> None:
    config = effective_config(
        {"dataDir": "/file", "tickTime": "500", "clientPort": "1"},
        {"clientPort": "2"},
        Implementation.APACHE,
    )
    assert config == {
        "dataDir": "/file",
        "clientPort": "2",
        "maxClientCnxns": "0",
        "admin.enableServer": "false",
        "clientPortAddress": "127.0.0.1",
        "tickTime": "500",
    }
    assert address_of(config) == ("127.0.0.1", 2)
    assert address_of(config | {"clientPortAddress": "10.0.0.1"}) == ("10.0.0.1", 2)
    assert address_of(config | {"clientPortAddress": "0.0.0.0"}) == ("127.0.0.1", 2)


def test_a_file_with_blanks_after_its_values_is_accepted_as_by_apaches_server() -> None:
    config = effective_config({"dataDir": "/file ", "clientPort": "1\t", "tickTime": "5 "}, {})
    assert (config["dataDir"], address_of(config)) == ("/file", ("127.0.0.1", 1))
    assert config["tickTime"] == "5"


def test_it_listens_on_loopback_unless_told_otherwise() -> None:
    """Whoever reaches a ZooKeeper may change the cluster: it asks nobody for a password."""
    address, secure = "clientPortAddress", "secureClientPortAddress"
    assert effective_config({}, {})[address] == "127.0.0.1"
    assert effective_config({"secureClientPort": "1"}, {})[secure] == "127.0.0.1"
    assert effective_config({address: "0.0.0.0"}, {})[address] == "0.0.0.0"
    member = {"server.1": "h1:2888:3888", "server.2": "h2:2888:3888"}
    assert address not in effective_config(member, {})


@pytest.mark.parametrize("blank", ["", " "])
def test_an_empty_address_is_loopback_as_in_java(blank: str) -> None:
    """To a socket an empty host is every interface."""
    given = {"clientPort": "1", "secureClientPort": "2"}
    given |= {"clientPortAddress": blank, "secureClientPortAddress": blank}
    config = effective_config(given, {})
    assert addresses_of(config) == {
        "clientPort": ("127.0.0.1", 1),
        "secureClientPort": ("127.0.0.1", 2),
    }


def test_no_plain_port_is_opened_beside_a_secure_one_unasked() -> None:
    config = effective_config({"secureClientPort": "2281"}, {})
    assert "clientPort" not in config
    assert address_of(config) == ("127.0.0.1", 2281)
    both = effective_config({"secureClientPort": "2281", "clientPort": "1"}, {})
    assert addresses_of(both) == {
        "clientPort": ("127.0.0.1", 1),
        "secureClientPort": ("127.0.0.1", 2281),
    }
    with pytest.raises(ConfigError, match="Invalid value x for configuration secureClientPort"):
        effective_config({"secureClientPort": "x"}, {})


@pytest.mark.parametrize("port", ["", "x", "0", "65536", "-1"])
def test_a_wrong_port_is_told(port: str) -> None:
    with pytest.raises(ConfigError, match=f"Invalid value {port} for configuration clientPort"):
        effective_config({}, {"clientPort": port})


def test_the_configuration_is_written_for_java(tmp_path: Path) -> None:
    directory = tmp_path / "d ü\\x"
    words = prepare(effective_config({}, {"dataDir": str(directory)}))
    file = directory / CONFIG_FILE
    assert words[-2:] == [MAIN_CLASS, str(file)]
    first = file.read_text("ascii").splitlines()[0]
    assert first == f"dataDir={tmp_path}/d \\u00fc\\\\x"


def test_a_data_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"Cannot write .*/file/data/.*: Not a directory"):
        prepare(effective_config({}, {"dataDir": str(tmp_path / "file" / "data")}))


@pytest.mark.parametrize("name", ["x" * 300, "x" * 300 + "/data"])
def test_a_data_directory_that_cannot_be_searched_is_named(tmp_path: Path, name: str) -> None:
    config = effective_config({}, {"dataDir": str(tmp_path / name), "clientPort": str(free_port())})
    with pytest.raises(ConfigError, match=r"^Cannot .*: File name too long$"):
        start_in_background(config, Implementation.KAFKAPY, 1.0)


def test_an_output_that_cannot_be_written_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It was reported as a bug of kafkapy."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LOG_DIR", str(tmp_path / "file"))
    config = effective_config(
        {}, {"dataDir": str(tmp_path / "data"), "clientPort": str(free_port())}
    )
    with pytest.raises(ConfigError, match=r"its output in .*/file/zookeeper.out: File exists"):
        start_in_background(config, Implementation.KAFKAPY, 1.0)


def test_no_java_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ConfigError, match=f"needs a Java runtime.*JAVA_HOME={tmp_path}"):
        java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"needs a Java runtime.*the PATH"):
        java()
    executable = tmp_path / "java"
    executable.write_text("")
    executable.chmod(0o755)
    assert java() == str(executable)


def test_no_pyspark_is_told_with_what_is_smaller_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zookeeper_process, "find_spec", lambda name: None)
    with pytest.raises(ConfigError) as told:
        class_path()
    offered = ("apt-get install zookeeper", "zookeeper.connect=", "pip install pyspark")
    places = [str(told.value).index(words) for words in offered]
    assert places == sorted(places)


def test_the_class_path_is_small_and_has_zookeeper() -> None:
    names = [Path(jar).name for jar in class_path().split(":")]
    assert len(names) < 20
    assert any(name.startswith("zookeeper-3") for name in names)


def test_a_zookeeper_is_found_by_the_file_that_it_holds(tmp_path: Path) -> None:
    with IdleServers() as servers:
        child = servers.start(tmp_path / PID_FILE)
        assert server_of(str(tmp_path)) == child.pid
        assert child.pid in running_servers()
        assert is_zookeeper(child.pid)
    assert server_of(str(tmp_path)) is None
    assert not is_zookeeper(os.getpid())


def test_the_limit_of_a_start_counts_looks_that_take_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[bool] = []

    def look(host: str, port: int) -> bool:
        looks.append(threading.Event().wait(0.06))
        return False

    monkeypatch.setattr(zookeeper_process, "serves", look)
    with IdleServers() as servers:
        launched = LaunchedServer(servers.start(), tmp_path / "out", 0)
        with pytest.raises(ConfigError, match="ZooKeeper is not ready after 0 s"):
            zookeeper_process.wait_until_serving(launched, effective_config({}, {}), 0.1)
    assert len(looks) <= 2


def test_a_taken_port_is_told_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        config = effective_config({}, {"dataDir": str(tmp_path / "d"), "clientPort": str(port)})
        with pytest.raises(
            ConfigError, match=f"cannot listen on 127.0.0.1:{port}: .* {os.getpid()}"
        ):
            start_in_background(config, Implementation.APACHE, 1.0)
    assert not (tmp_path / "d").exists()


def test_a_server_that_ends_is_told_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "bin" / "java"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho it is broken\nexit 3\n")
    fake.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.delenv("LOG_DIR", raising=False)
    settings = {"dataDir": str(tmp_path / "d"), "clientPort": str(free_port())}
    with pytest.raises(ConfigError, match=r"ended with status 3\.\n  it is broken"):
        start_in_background(effective_config({}, settings), Implementation.APACHE, 30.0)


def test_nobody_answers_nothing() -> None:
    assert four_letter_word("127.0.0.1", free_port(), "ruok") == ""


def test_extra_jvm_flags_are_passed_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JVMFLAGS", "-Xmx1g -Da=b")
    words = prepare(effective_config({}, {"dataDir": str(tmp_path)}))
    assert words.index("-Xmx128m") < words.index("-Xmx1g") < words.index("-Da=b")
    assert os.environ["JVMFLAGS"] == "-Xmx1g -Da=b"


def test_the_variables_of_kafkas_scripts_are_passed_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """They are for a JVM, and here is one. Two collectors would keep it from starting."""
    monkeypatch.setenv("KAFKA_HEAP_OPTS", "-Xmx512M -Xms512M")
    monkeypatch.setenv("KAFKA_JVM_PERFORMANCE_OPTS", "-XX:+UseG1GC")
    monkeypatch.setenv("KAFKA_OPTS", "-Djava.security.auth.login.config=/jaas.conf")
    words = prepare(effective_config({}, {"dataDir": str(tmp_path)}))
    assert words[1:4] == ["-Xmx512M", "-Xms512M", "-XX:+UseG1GC"]
    assert words[4] == "-Djava.security.auth.login.config=/jaas.conf"
    assert "-XX:+UseSerialGC" not in words


def test_the_defaults_of_kafkas_file_are_apaches_only() -> None:
    """Kafka's file lifts the limit of connections; our server has ZooKeeper's own unless told."""
    config = effective_config({}, {}, Implementation.KAFKAPY)
    assert config == {
        "dataDir": "/tmp/zookeeper",
        "clientPort": "2181",
        "clientPortAddress": "127.0.0.1",
    }


@pytest.mark.parametrize(
    ("chosen", "theirs", "other"),
    [
        (Implementation.KAFKAPY, "version-2", "apache"),
        (Implementation.APACHE, "kafkapy-znodes", "kafkapy"),
    ],
)
def test_the_data_of_the_other_zookeeper_is_not_passed_over(
    chosen: Implementation, theirs: str, other: str, tmp_path: Path
) -> None:
    """To begin anew beside it would look as if the cluster had lost everything."""
    (tmp_path / theirs).mkdir()
    settings = {"dataDir": str(tmp_path), "clientPort": str(free_port())}
    with pytest.raises(ConfigError, match=f"{theirs}.*--implementation {other}"):
        check(effective_config({}, settings), chosen)


def test_a_setting_that_is_wrong_is_told_before_anything_starts(tmp_path: Path) -> None:
    settings = {"dataDir": str(tmp_path), "clientPort": str(free_port()), "tickTime": "x"}
    with pytest.raises(ConfigError, match="Invalid value x for configuration tickTime"):
        check(effective_config({}, settings), Implementation.KAFKAPY)


@pytest.mark.parametrize("port", ["0", "65536", "x", "9" * 5000])
def test_a_client_port_that_is_none_is_refused(port: str) -> None:
    with pytest.raises(ConfigError, match="clientPort: it must be a port"):
        effective_config({"clientPort": port}, {})
