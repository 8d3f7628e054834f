"""The scenarios of this folder, `FOLDER/*.txt`: each is a test, named by its file and its title."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness.scenarios import interpreter
from tests.harness.scenarios.consumer import ConsumerWorld
from tests.harness.scenarios.controller import ControllerWorld
from tests.harness.scenarios.followers import FollowersWorld
from tests.harness.scenarios.groups import GroupWorld
from tests.harness.scenarios.interpreter import World
from tests.harness.scenarios.replication import ReplicationWorld
from tests.harness.scenarios.share_partitions import SharePartitionWorld
from tests.harness.scenarios.transactions import TransactionWorld

HERE = Path(os.path.relpath(Path(__file__).parent))
WORLDS: dict[str, Callable[[Path], World]] = {
    "consumer": lambda directory: ConsumerWorld(),
    "controller": lambda directory: ControllerWorld(),
    "followers": FollowersWorld,
    "groups": lambda directory: GroupWorld(),
    "replication": ReplicationWorld,
    "share_partitions": lambda directory: SharePartitionWorld(),
    "transactions": lambda directory: TransactionWorld(),
}
SCENARIOS = {
    f"{path.relative_to(HERE)}: {scenario.title}": scenario
    for path in sorted(HERE.rglob("*.txt"))
    for scenario in interpreter.read(path)
}


@pytest.mark.parametrize("name", SCENARIOS, ids=list(SCENARIOS))
def test_scenario(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    scenario = SCENARIOS[name]
    failure = ""
    try:
        scenario.run(WORLDS[scenario.path.parent.name](tmp_path))
    except interpreter.ScenarioError as error:
        failure = str(error)
    if failure:
        pytest.fail(failure, pytrace=False)
    assert "illegal transition" not in caplog.text


def test_every_step_is_used(tmp_path: Path) -> None:
    used: dict[tuple[str, str], bool] = {}
    for folder, world in WORLDS.items():
        scenarios = [each for each in SCENARIOS.values() if each.path.parent.name == folder]
        heads = {step.text.split(", ")[0] for each in scenarios for step in each.steps}
        for pattern, method in world(tmp_path / folder).steps:
            key = (method.__qualname__, pattern.pattern)
            used[key] = used.get(key, False) or any(map(pattern.fullmatch, heads))
    assert [key for key, is_used in used.items() if not is_used] == []
