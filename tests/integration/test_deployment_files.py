"""The example files for containers say what kafkapy understands."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import yaml

from kafkapy.server.config.kafka_config import KafkaConfig

FILES = Path(__file__).parents[2] / "docs" / "how-to" / "containers"
OVERRIDE = "--override="


def overrides(words: list[str]) -> dict[str, str]:
    pairs = (word.removeprefix(OVERRIDE).partition("=") for word in words if OVERRIDE in word)
    return {key: value for key, _, value in pairs}


def documents() -> dict[tuple[str, str], Any]:
    found = yaml.safe_load_all((FILES / "kubernetes.yaml").read_text())
    return {(one["kind"], one["metadata"]["name"]): one for one in found}


def container(name: str) -> Any:
    [found] = documents()["StatefulSet", name]["spec"]["template"]["spec"]["containers"]
    return found


def test_the_image_starts_a_broker() -> None:
    text = (FILES / "Containerfile").read_text()
    instructions = dict(re.findall(r"^(ENTRYPOINT|CMD|USER) (.*)$", text, re.M))
    words = json.loads(instructions["ENTRYPOINT"]) + json.loads(instructions["CMD"])
    assert words[:3] == ["kafkapy", "server", "start"]
    config = KafkaConfig(overrides(words))
    assert config.get_str("log.dirs") == "/var/lib/kafka/data"
    assert instructions["USER"] == "kafka"


def test_what_the_image_copies_is_in_the_repository() -> None:
    text = (FILES / "Containerfile").read_text()
    copied = [word for line in re.findall(r"^COPY (.*) \S+$", text, re.M) for word in line.split()]
    assert [name for name in copied if not (FILES.parents[2] / name).exists()] == []


def test_each_broker_of_kubernetes_has_a_config_of_its_own() -> None:
    *_, script = container("kafka")["command"]
    for_pod = script.replace("${HOSTNAME##*-}", "2").replace("$HOSTNAME", "kafka-2")
    words = shlex.split(for_pod)
    assert words[:4] == ["exec", "kafkapy", "server", "start"]
    config = KafkaConfig(overrides(words))
    assert config.broker_id == 2
    assert config.get_str("zookeeper.connect") == "zookeeper:2181"
    assert ("Service", "zookeeper") in documents()
    assert "$" not in for_pod, "the shell would replace it"


def test_disks_are_where_the_brokers_and_zookeeper_write() -> None:
    for name in ("kafka", "zookeeper"):
        words = " ".join(container(name)["command"])
        [mount] = container(name)["volumeMounts"]
        assert f"{mount['mountPath']}/" in words
