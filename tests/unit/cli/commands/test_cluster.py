"""`kafkapy cluster`: the words it takes and the forms it answers in, without any process."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)
from kafkapy.protocol.messages.unregister_broker import UnregisterBrokerResponse
from kafkapy.tools.local import cluster_layout
from kafkapy.tools.local.local_cluster import LocalCluster, Member
from tests.harness.scripted.cli import kafkapy
from tests.harness.scripted.scripted_broker import ScriptedCluster, metadata

USAGE = "Name an action: kafkapy cluster start|status|stop|kill ID|restart ID"


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replaces the operations of a cluster; returns the list of calls. Each call prints a line."""
    asked: list[str] = []

    def note(verb: str) -> None:
        def act(cluster: LocalCluster, *ids: int) -> None:
            asked.append(" ".join([verb, *map(str, ids)]))
            if verb == "start":
                cluster.layout.save()  # tests/unit/tools/local/test_local_cluster.py: when it does
            cluster._print_line(f"{verb} done")

        monkeypatch.setattr(LocalCluster, verb, act)

    for verb in ("start", "stop", "kill", "restart"):
        note(verb)
    members = [Member(1, "127.0.0.1:9092", 77, True, 4), Member(2, "127.0.0.1:9093", None)]
    monkeypatch.setattr(LocalCluster, "status", lambda _: members)
    monkeypatch.setattr(LocalCluster, "zookeeper_pid", lambda _: 66)
    return asked


@pytest.fixture
def directory(tmp_path: Path) -> str:
    cluster_layout.create(tmp_path, 2, 9092, {"a": "1"}).save()
    return str(tmp_path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--dir", "/nope"], USAGE),
        (["begin"], USAGE),
        (["kill"], USAGE),
        (["kill", "x"], "x is not the id of a broker"),
        (["kill", "1", "2"], "Found non argument parameters: 2"),
        (["stop", "1"], "Found non argument parameters: 1"),
        (["status", "--dir", "/nope"], "There is no cluster in /nope: kafkapy cluster start"),
    ],
)
def test_wrong_usage(done: list[str], words: list[str], said: str) -> None:
    outcome = kafkapy("cluster", *words)
    assert outcome.stderr.startswith(said)
    assert (outcome.status, done) == (1, [])


@pytest.mark.parametrize(
    ("words", "asked"),
    [(["stop"], "stop"), (["kill", "2"], "kill 2"), (["restart", "1"], "restart 1")],
)
def test_the_verbs(done: list[str], directory: str, words: list[str], asked: str) -> None:
    outcome = kafkapy("cluster", *words, "--dir", directory)
    assert (outcome.stdout, outcome.status) == (f"{words[0]} done\n", 0)
    assert done == [asked]


def test_start_makes_a_cluster(done: list[str], tmp_path: Path) -> None:
    where = tmp_path / "new"
    words = ("--brokers", "2", "--base-port", "7000", "--override", "b=2=3")
    assert kafkapy("cluster", "start", "--dir", str(where), *words).status == 0
    layout = cluster_layout.load(where)
    assert layout is not None
    assert (layout.broker_ports, layout.overrides) == ({1: 7000, 2: 7001}, {"b": "2=3"})
    assert done == ["start"]


def test_a_cluster_has_a_broker(done: list[str], tmp_path: Path) -> None:
    outcome = kafkapy("cluster", "start", "--dir", str(tmp_path / "new"), "--brokers", "0")
    assert "at least one broker, not 0" in outcome.stderr
    assert (outcome.status, done) == (1, [])


def test_start_goes_on_with_the_cluster_that_is_there(done: list[str], directory: str) -> None:
    words = ("--brokers", "3", "--override", "b=2")
    assert kafkapy("cluster", "start", "--dir", directory, *words).status == 0
    layout = cluster_layout.load(Path(directory))
    assert layout is not None
    assert (layout.broker_ids, layout.overrides) == ([1, 2, 3], {"a": "1", "b": "2"})


def test_a_start_that_is_refused_changes_nothing(done: list[str], directory: str) -> None:
    before = (Path(directory) / cluster_layout.FILE).read_text()
    outcome = kafkapy("cluster", "start", "--dir", directory, "--override", "broker.id=1")
    assert outcome.stderr == "broker.id is chosen for each broker: it cannot be overridden\n"
    assert (outcome.status, done) == (1, [])
    assert (Path(directory) / cluster_layout.FILE).read_text() == before


def test_status_as_text(done: list[str], directory: str) -> None:
    assert kafkapy("cluster", "status", "--dir", directory).stdout == (
        "Server: ZooKeeper\tAddress: 127.0.0.1:9091\tState: running\tPid: 66\n"
        "Server: Broker 1\tAddress: 127.0.0.1:9092\tState: running\tPid: 77\tController: yes"
        "\tLeaders: 4\n"
        "Server: Broker 2\tAddress: 127.0.0.1:9093\tState: offline\n"
    )


def test_status_as_a_table(done: list[str], directory: str) -> None:
    shown = kafkapy("cluster", "status", "--dir", directory, "--output", "table").stdout
    assert [line.split() for line in shown.splitlines() if "Broker" in line] == [
        ["Broker", "1", "127.0.0.1:9092", "running", "77", "yes", "4"],
        ["Broker", "2", "127.0.0.1:9093", "offline"],
    ]


@pytest.mark.parametrize("words", [["status"], ["kill", "2"], ["start"]])
def test_json_is_the_state_in_the_end(done: list[str], directory: str, words: list[str]) -> None:
    [found] = kafkapy("cluster", *words, "--dir", directory, "--output", "json").data
    assert found["bootstrap_servers"] == "127.0.0.1:9092,127.0.0.1:9093"
    assert found["zookeeper"] == {"address": "127.0.0.1:9091", "pid": 66}
    assert found["brokers"][0] == {
        "broker_id": 1,
        "address": "127.0.0.1:9092",
        "pid": 77,
        "is_controller": True,
        "leaders": 4,
        "alive": True,
    }
    assert found["brokers"][1]["alive"] is False


def registrations() -> ScriptedCluster:
    key = ApiKey.UNREGISTER_BROKER
    brokers = metadata(brokers={1: 9001})
    return ScriptedCluster({ApiKey.METADATA: brokers, key: UnregisterBrokerResponse()})


def test_a_broker_is_forgotten() -> None:
    outcome = kafkapy("cluster", "unregister", "-b", "b:1", "-i", "7", cluster=registrations())
    assert (outcome.stdout, outcome.status) == ("Broker 7 is no longer registered.\n", 0)


@pytest.mark.parametrize(("words", "status"), [([], 0), (["--strict"], 1)])
def test_a_cluster_that_cannot_forget_says_so(words: list[str], status: int) -> None:
    cluster = registrations()
    del cluster.versions[ApiKey.UNREGISTER_BROKER]
    asked = ("cluster", "unregister", "--bootstrap-server", "b:1", "--id", "7", *words)
    outcome = kafkapy(*asked, cluster=cluster)
    said = "The target cluster does not support the broker unregistration API.\n"
    assert (outcome.stdout, outcome.status) == (said, status)
    found = kafkapy(*asked, "--output", "json", cluster=cluster)
    assert found.data == [{"broker": 7, "unregistered": False}]


def test_a_broker_without_a_rack_is_shown_as_by_kafkas_tool() -> None:
    words = ("cluster", "list-endpoints", "--bootstrap-server", "b:1")
    outcome = kafkapy(*words, cluster=registrations())
    _, line = outcome.stdout.splitlines()
    assert line.split() == ["1", "b", "9001", "null", "broker"]


def test_brokers_that_are_down_are_listed_with_their_state() -> None:
    brokers = [
        DescribeClusterBroker(broker_id=1, host="b", port=9001),
        DescribeClusterBroker(broker_id=2, host="broker-2", port=9002, rack="r", is_fenced=True),
    ]
    answer = DescribeClusterResponse(brokers=brokers)
    cluster = ScriptedCluster({ApiKey.METADATA: metadata(), ApiKey.DESCRIBE_CLUSTER: answer})
    words = ("cluster", "list-endpoints", "--bootstrap-server", "b:1", "--include-fenced-brokers")
    assert kafkapy(*words, cluster=cluster).stdout == (
        "ID         HOST     PORT       RACK STATE      ENDPOINT_TYPE\n"
        "1          b        9001       null unfenced   broker\n"
        "2          broker-2 9002       r    fenced     broker\n"
    )
    assert kafkapy(*words, "--output", "json", cluster=cluster).data[1]["state"] == "fenced"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["unregister", "-b", "b:1"], 'Missing required argument "[id]"'),
        (["unregister", "-b", "b:1", "-i", "2147483648"], "Cannot parse argument '2147483648' of"),
        (["cluster-id", "-C", "c:1"], "-C is not served: kafkapy sends no requests to KRaft"),
        (["cluster-id", "--bootstrap-controller=c:1"], "--bootstrap-controller is not served: "),
    ],
)
def test_what_a_cluster_is_not_asked(words: list[str], said: str) -> None:
    outcome = kafkapy("cluster", *words)
    assert outcome.stderr.startswith(said)
    assert (outcome.stdout, outcome.status) == ("", 1)
