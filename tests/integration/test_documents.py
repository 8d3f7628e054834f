"""The commands of README.md and docs/ do what the pages say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.tools.documents import COMMANDS, ROOT, World, blocks, first_missing, pages, steps

STARTS = re.compile(r"listeners=\S*:9092|--base-port 9092")
RUN = [page for page in pages() if steps(page)]
ALONE = [page for page in RUN if any(STARTS.search(text) for text, _ in steps(page))]
TOGETHER = [page for page in RUN if page not in ALONE]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """The broker at 127.0.0.1:9092 of the pages that start none."""
    with BrokerProcess(tmp_path_factory.mktemp("shared") / "logs") as broker:
        yield broker


@pytest.mark.parametrize("page", ALONE)
def test_a_page_that_starts_its_own_brokers(page: str, tmp_path: Path) -> None:
    World(tmp_path).run(page)


@pytest.mark.parametrize("page", TOGETHER)
def test_a_page_that_needs_a_broker(page: str, shared: BrokerProcess, tmp_path: Path) -> None:
    World(tmp_path, {9092: shared.port}).run(page)


@pytest.mark.parametrize("page", pages())
def test_every_command_is_run_or_says_why_not(page: str) -> None:
    for block in blocks(page):
        # A block without a language would be neither commands nor output.
        assert block.language, block.text
        mark = block.mark
        if block.language in COMMANDS and mark is not None and mark["by"]:
            test = ROOT / mark["by"]
            assert test.is_file(), f"{page}: {mark['by']} is not there"


@pytest.mark.parametrize("page", pages())
def test_no_loop_takes_a_failed_command_for_a_cluster_in_sync(page: str) -> None:
    """A command that fails prints nothing on stdout. The next broker was stopped then."""
    assert not re.search(r'-z "\$\(kafkapy ', (ROOT / page).read_text())


def test_the_readme_tells_how_to_run_a_broker() -> None:
    """The pages that must be run are among those that are."""
    tutorials = {page for page in pages() if page.startswith("docs/tutorials/")}
    assert {"README.md", *tutorials} <= set(ALONE)
    assert len(tutorials) >= 3


def test_output_is_compared_line_by_line() -> None:
    assert first_missing(["a", "b ... d"], ["a", "x", "b c d"]) is None
    assert first_missing(["b", "a"], ["a", "b"]) == "a"
    assert first_missing(["a\tb"], ["a  b"]) is None
    assert first_missing(["a"], ["ab"]) == "a"
