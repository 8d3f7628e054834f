"""Layout of a local cluster, saved and loaded again."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.common.java_properties import parse_properties
from kafkapy.tools.local import cluster_layout
from kafkapy.tools.local.cluster_layout import (
    FILE,
    GENERATED_KEYS,
    ClusterLayout,
    create,
    load,
    server_properties,
)


def test_ports_follow_the_base_port(tmp_path: Path) -> None:
    layout = create(tmp_path, 3, 9092, {})
    assert layout.zookeeper_port == 9091
    assert layout.broker_ports == {1: 9092, 2: 9093, 3: 9094}
    assert layout.address(3) == "127.0.0.1:9094"


def test_free_ports_are_all_different(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may name a port twice: nobody listens there yet."""
    found = iter([7, 7, 8, 8, 7, 9])
    monkeypatch.setattr(cluster_layout, "free_port", lambda host: next(found))
    layout = create(tmp_path, 2, 0, {})
    assert (layout.zookeeper_port, layout.broker_ports) == (7, {1: 8, 2: 9})


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    layout = create(tmp_path / "deep" / "down", 2, 0, {"num.partitions": "7"})
    assert load(layout.directory) is None
    layout.save()
    assert load(layout.directory) == layout
    assert sorted(path.name for path in layout.directory.iterdir()) == [FILE]


def test_a_cluster_grows_and_keeps_what_it_has(tmp_path: Path) -> None:
    layout = create(tmp_path, 1, 9092, {"a": "1", "b": "1"})
    grown = layout.with_changes(3, 9092, {"b": "2"})
    assert grown.broker_ports == {1: 9092, 2: 9093, 3: 9094}
    assert grown.overrides == {"a": "1", "b": "2"}
    assert layout.with_changes(None, None, {}) == layout


@pytest.mark.parametrize(
    ("brokers", "base_port", "overrides", "said"),
    [
        (1, None, {}, r"has 2 brokers: it can grow but not shrink to 1"),
        (60_000, None, {}, r"There are no 60000 ports from 9092"),
        (None, 9000, {}, r"keeps its ports, whose base port is 9092"),
        *((None, None, {key: "x"}, f"{key} is chosen for each broker") for key in GENERATED_KEYS),
    ],
)
def test_what_cannot_be_changed(
    tmp_path: Path,
    brokers: int | None,
    base_port: int | None,
    overrides: dict[str, str],
    said: str,
) -> None:
    with pytest.raises(ConfigError, match=said):
        create(tmp_path, 2, 9092, {}).with_changes(brokers, base_port, overrides)


@pytest.mark.parametrize(
    ("brokers", "base_port", "said"),
    [
        (0, 9092, "at least one broker, not 0"),
        (3, 65534, "There are no 3 ports from 65534, and one below it"),
        (1, 1, "There are no 1 ports from 1"),
        (1, -5, "There are no 1 ports from -5"),
    ],
)
def test_what_is_no_cluster(tmp_path: Path, brokers: int, base_port: int, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        create(tmp_path, brokers, base_port, {})


def test_no_cluster_is_made_in_a_directory_whose_brokers_could_not_be_stopped(
    tmp_path: Path,
) -> None:
    """Brokers took the path for two log directories, and `cluster stop` found no broker."""
    with pytest.raises(ConfigError, match=r"/a,b has a comma, which separates log directories"):
        create(tmp_path / "a,b", 1, 9092, {})


@pytest.mark.parametrize(
    ("brokers", "replication_factor", "min_isr"), [(1, "1", "1"), (2, "2", "1"), (5, "3", "2")]
)
def test_topics_are_as_safe_as_the_number_of_brokers_allows(
    tmp_path: Path, brokers: int, replication_factor: str, min_isr: str
) -> None:
    properties = create(tmp_path, brokers, 9092, {}).broker_properties(1)
    assert properties["default.replication.factor"] == replication_factor
    assert properties["offsets.topic.replication.factor"] == replication_factor
    assert properties["min.insync.replicas"] == min_isr


def test_overrides_win_over_the_settings_of_the_cluster_but_not_its_own(tmp_path: Path) -> None:
    layout = create(tmp_path, 3, 9092, {"min.insync.replicas": "3"})
    properties = layout.broker_properties(2)
    assert properties["min.insync.replicas"] == "3"
    assert properties["broker.id"] == "2"
    assert properties["listeners"] == "PLAINTEXT://127.0.0.1:9093"
    assert properties["zookeeper.connect"] == "127.0.0.1:9091"
    assert properties["log.dirs"] == str(tmp_path / "broker-2" / "data")


def test_a_property_file_says_what_it_was_given() -> None:
    given = {"a": "1", "path": r"C:\new", "empty": ""}
    assert parse_properties(server_properties(given)) == given


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"version": 2}', "null"],
)
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(ConfigError, match=rf"{FILE} is damaged \(.*\): repair or remove it"):
        load(tmp_path)


def test_a_file_of_a_later_version_is_not_guessed_at(tmp_path: Path) -> None:
    create(tmp_path, 1, 9092, {}).save()
    found = json.loads((tmp_path / FILE).read_text())
    (tmp_path / FILE).write_text(json.dumps({**found, "version": 2}))
    with pytest.raises(ConfigError, match="version 2 is not 1"):
        load(tmp_path)


def test_a_directory_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    with pytest.raises(ConfigError, match=r"Cannot read .*Is a directory"):
        load(tmp_path)


def test_a_directory_that_cannot_be_written_is_no_bug_of_kafkapy(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    layout = create(tmp_path / "file" / "cluster", 1, 0, {})
    with pytest.raises(ConfigError, match=rf"^Cannot write {layout.directory}/{FILE}: "):
        layout.save()


def test_brokers_in_order(tmp_path: Path) -> None:
    assert ClusterLayout(tmp_path, 0, 1, {10: 1, 2: 2}).broker_ids == [2, 10]


def test_a_cluster_keeps_the_zookeeper_that_has_its_data(tmp_path: Path) -> None:
    assert create(tmp_path, 1, 9092, {}).zookeeper == "kafkapy"
    layout = create(tmp_path, 1, 9092, {}, "apache")
    layout.save()
    assert load(tmp_path) == layout
    assert layout.with_changes(None, None, {}, "apache") == layout
    with pytest.raises(ConfigError, match=r"keeps its ZooKeeper, which is apache"):
        layout.with_changes(None, None, {}, "kafkapy")


def test_a_cluster_from_before_there_was_a_choice_has_apaches(tmp_path: Path) -> None:
    create(tmp_path, 1, 9092, {}).save()
    rows = json.loads((tmp_path / FILE).read_text())
    del rows["zookeeper"]
    (tmp_path / FILE).write_text(json.dumps(rows))
    found = load(tmp_path)
    assert found is not None
    assert found.zookeeper == "apache"
    rows["zookeeper"] = "another"
    (tmp_path / FILE).write_text(json.dumps(rows))
    with pytest.raises(ConfigError, match="is damaged"):
        load(tmp_path)


def test_a_cluster_that_another_user_has_put_into_tmp_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "kafkapy-cluster"
    create(directory, 1, 9092, {}).save()
    if os.geteuid() == 0:  # root may prepare directories for others
        os.chown(directory, 1, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: directory.stat().st_uid + 1)
    assert load(directory) is not None  # in a directory of one's own, such as a volume
    tmp_path.chmod(0o1777)
    with pytest.raises(ConfigError, match="kafkapy-cluster belongs to another user"):
        load(directory)
