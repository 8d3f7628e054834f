"""kafkapy's own ZooKeeper: it keeps the port's contract, does what Apache ZooKeeper does, and
brokers of both kinds run on it.

Without Apache Kafka's jars its brokers are not checked, and the end of the run says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from kafkapy.zk.zookeeper import ZooKeeperError
from tests.harness.cores.ensembles import RealEnsemble, run
from tests.harness.cores.zookeeper_contract import CASES, Ensemble
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.processes.own_zookeeper import OwnZooKeeper
from tests.harness.processes.waiting import wait_until
from tests.harness.processes.zookeeper_histories import run_history
from tests.harness.processes.zookeeper_server import ZooKeeperServer
from tests.harness.processes.zookeeper_twins import Twin, steps, twins

Case = Callable[[Ensemble], Awaitable[None]]
LIMIT_S = 60.0
STEPS = 180


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnZooKeeper]:
    with OwnZooKeeper(tmp_path_factory.mktemp("own") / "data") as process:
        yield process


@pytest.fixture(scope="module")
def apaches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    with ZooKeeperServer(tmp_path_factory.mktemp("apache") / "data") as process:
        yield process


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_it_keeps_the_contract(case: Case, own: OwnZooKeeper) -> None:
    async def test() -> None:
        async with RealEnsemble(own) as ensemble:
            await case(ensemble)

    run(test())


@pytest.mark.parametrize(("seed", "clients"), [(1, 3), (2, 3), (3, 8)])
def test_the_same_comes_of_the_same(
    seed: int, clients: int, own: OwnZooKeeper, apaches: ZooKeeperServer
) -> None:
    """Eight clients see both servers killed and back."""
    todo = steps(seed, STEPS, clients=clients, kills=clients == 8)
    theirs, ours = twins(apaches, own, seed, clients, todo)
    for number, (expected, found) in enumerate(zip(theirs.outcomes, ours.outcomes, strict=True)):
        assert found == expected, f"step {number} of seed {seed}"
    assert ours.events == theirs.events
    assert not ours.has_lost_sessions
    assert _is_worth_something(theirs)


def test_clients_at_once_see_one_order(own: OwnZooKeeper) -> None:
    """The server is killed once, and back."""

    def restart() -> None:
        own.kill()
        own.start()

    assert run_history(own.port, "/history", seed=1, rounds=30, restart=restart) > 8 * 30


def test_a_write_above_the_limit_of_zookeeper_fails_and_other_requests_are_answered(
    own: OwnZooKeeper,
) -> None:
    async def test() -> None:
        async with RealEnsemble(own) as ensemble, asyncio.timeout(LIMIT_S):
            zk = await ensemble.connect()
            await zk.create("/small", b"1")
            session_id = zk.session_id
            large = asyncio.ensure_future(zk.create("/large", b"x" * (1 << 20)))
            small = asyncio.ensure_future(zk.set("/small", b"2", 0))
            with pytest.raises(ZooKeeperError, match="does not take"):
                await large
            assert (await small).version == 1
            assert zk.session_id == session_id

    run(test())


def _is_worth_something(each: Twin) -> bool:
    """Whether much was done, much was refused, and something was heard."""
    refused = sum(isinstance(outcome[-1], str) for outcome in each.outcomes)
    heard = sum(map(len, each.events.values()))
    return STEPS // 5 < refused < STEPS * 4 // 5 and heard > 2


if apache_kafka.installed():

    def test_apaches_shell(own: OwnZooKeeper) -> None:
        """`ZooKeeperMain`, as Kafka's zookeeper-shell.sh runs it."""
        lines = ("create /shell one", "set /shell two", "get -s /shell", "getAcl /shell", "ls /")
        words = ("org.apache.zookeeper.ZooKeeperMain", "-server", own.bootstrap_servers)
        done = apache_kafka.run_tool(
            *words, stdin="\n".join([*lines, ""]).encode(), limit_s=LIMIT_S
        )
        said = done.stdout.decode() + done.stderr.decode()
        for part in ("Created /shell", "two\ncZxid = 0x", "dataVersion = 1", ": cdrwa"):
            assert part in said, said
        assert "zookeeper]" in said

    def test_brokers_of_both_kinds_share_it(tmp_path: Path, own: OwnZooKeeper) -> None:
        common = {
            "zookeeper.connect": own.connect("/both"),
            "zookeeper.session.timeout.ms": "3000",
            "offsets.topic.replication.factor": "2",
            "default.replication.factor": "2",
        }
        apache = apache_kafka.ApacheBroker(tmp_path / "apache", {**common, "broker.id": "1"}, own)
        ours = BrokerProcess(tmp_path / "ours", {**common, "broker.id": "2"})
        with ExitStack() as stack:
            stack.enter_context(apache)
            stack.enter_context(ours)
            zookeeper = KazooClient(own.connect("/both"))
            zookeeper.start(timeout=LIMIT_S)
            stack.callback(zookeeper.close)
            stack.callback(zookeeper.stop)

            def registered(*ids: str) -> None:
                def are() -> bool:
                    found: list[str] = zookeeper.retry(zookeeper.get_children, "/brokers/ids")
                    return sorted(found) == list(ids)

                wait_until(are, f"brokers {ids} are registered", LIMIT_S)

            registered("1", "2")
            servers = f"{apache.bootstrap_servers},{ours.bootstrap_servers}"
            admin = AdminClient({"bootstrap.servers": servers})
            # The controller may know only one of them yet.
            wait_until(lambda: len(admin.list_topics().brokers) == 2, "both are known", LIMIT_S)
            admin.create_topics([NewTopic("t", 4, 2)])["t"].result(LIMIT_S)
            _exchange(servers, "before")
            own.kill()
            own.start()
            _exchange(servers, "after")
            # The controller hears of it by a watch that its client has set again.
            admin.create_topics([NewTopic("u", 1, 2)])["u"].result(LIMIT_S)
            ours.kill()
            registered("1")
            _exchange(apache.bootstrap_servers, "alone")


def _exchange(servers: str, word: str) -> None:
    """Produce with acks=all to each partition, and consume it in a group."""
    producer = Producer({"bootstrap.servers": servers, "acks": "all"})
    for partition in range(4):
        producer.produce("t", word, partition=partition)
    assert producer.flush(LIMIT_S) == 0
    group = {"group.id": word, "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": servers, **group})
    consumer.subscribe(["t"])
    found: list[bytes] = []

    def complete() -> bool:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            found.append(message.value())
        return found.count(word.encode()) == 4

    wait_until(complete, f"four times {word}", LIMIT_S)
    consumer.commit(asynchronous=False)
    consumer.close()
