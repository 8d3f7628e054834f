"""`kafkapy console-share-consumer`: the forms of records. With brokers: test_share_groups."""

from __future__ import annotations

import json

import pytest

from kafkapy.tools.console import console_share_consumer
from tests.harness.scripted.cli import kafkapy
from tests.unit.tools.console.test_console_share_consumer import FakeShareConsumer

WORDS = ("console-share-consumer", "--bootstrap-server", "b:1", "--topic", "t")


@pytest.fixture(autouse=True)
def three_records(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeShareConsumer(range(3))
    monkeypatch.setattr(console_share_consumer, "make_share_consumer", lambda *_: fake)


def test_records_are_lines_of_json() -> None:
    """The command printed text, whatever --output said."""
    done = kafkapy(*WORDS, "--max-messages", "3", "--output", "json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["command"] for line in lines] == ["console-share-consumer"] * 3
    rows = [line["data"][0] for line in lines]
    assert [(row["offset"], row["delivery_count"]) for row in rows] == [(0, 1), (1, 1), (2, 1)]


def test_the_formatter_prints_text() -> None:
    show = ("--formatter-property", "print.delivery=true", "--formatter-property")
    done = kafkapy(*WORDS, "--max-messages", "1", *show, "print.value=false")
    assert done.stdout == "Delivery:1\n"
