"""Alert rules and dashboard use names and labels that a running broker exports."""

from __future__ import annotations

import json
import re
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.harness.processes.broker_process import BrokerProcess, free_port
from tests.harness.processes.waiting import LIMIT_S, wait_until
from tests.harness.processes.zookeeper_server import ZooKeeperServer
from tests.harness.tools.documents import ROOT

OPERATIONS = ROOT / "docs" / "operations"
SELECTOR = re.compile(r"\b(kafka_\w+)(?:\{([^}]*)\})?")
EXPRESSION = re.compile(r"^ +expr: (.*)$", re.MULTILINE)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Labels by the name of each sample of a broker with a ZooKeeper; families without samples
    have no labels."""
    home, port = tmp_path_factory.mktemp("monitored"), free_port()
    settings = {"broker.id": "1", "kafkapy.metrics.port": str(port)}
    with ZooKeeperServer(home / "zookeeper") as zookeeper:
        settings["zookeeper.connect"] = zookeeper.connect()
        with BrokerProcess(home / "logs", settings) as broker:
            # A broker serves its metrics when it knows those of the cluster: after its clients.
            wait_until(lambda: "Metrics on port" in broker.output_text(), "metrics are served")
            url = f"http://127.0.0.1:{port}/metrics"
            with urllib.request.urlopen(url, timeout=LIMIT_S) as answer:
                text = answer.read().decode()
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        found[family.name + "_total" * (family.type == "counter")] = set()
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def expressions() -> dict[str, str]:
    """Every expression of the rules and the dashboard, by where it stands."""
    rules = EXPRESSION.findall((OPERATIONS / "kafkapy-rules.yml").read_text())
    dashboard = json.loads((OPERATIONS / "kafkapy-dashboard.json").read_text())
    found = {f"rule {number}": text for number, text in enumerate(rules)}
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            found[f"{panel['title']} {target['refId']}"] = target["expr"]
    return found


def test_every_name_is_exported(exported: dict[str, set[str]]) -> None:
    used = {name for text in expressions().values() for name, _ in SELECTOR.findall(text)}
    assert len(used) > 20
    assert not used - exported.keys()


def test_every_label_is_one_of_the_metric(exported: dict[str, set[str]]) -> None:
    for where, text in expressions().items():
        for name, selected in SELECTOR.findall(text):
            labels = set(re.findall(r"(\w+) *!?=~?", selected)) - {"job", "instance"}
            # A family that has no sample yet shows no labels.
            assert labels <= exported[name] or not exported[name], where


def test_every_rule_and_panel_is_whole() -> None:
    rules = (OPERATIONS / "kafkapy-rules.yml").read_text().split("- alert: ")[1:]
    assert len(rules) >= 10
    for rule in rules:
        assert {"expr:", "labels:", "summary:"} <= set(rule.split()), rule
    dashboard = json.loads((OPERATIONS / "kafkapy-dashboard.json").read_text())
    places = [tuple(panel["gridPos"].values()) for panel in dashboard["panels"]]
    assert len(set(places)) == len(places)
    assert all(x + width <= 24 for x, _, width, _ in places)


def test_the_pages_name_metrics_that_are_exported(exported: dict[str, set[str]]) -> None:
    text = (OPERATIONS / "monitoring.md").read_text()
    named = set(re.findall(r"`(kafka_\w+[a-z])`", text))
    assert len(named) > 8
    assert not named - exported.keys()
