"""The pictures of docs/: fresh, readable by any viewer, and true to their data."""

from __future__ import annotations

import json
import re
import subprocess
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dev.bench import kafka_table
from dev.docs import layered_graph, pictures, recording
from dev.docs.svg import Bar, Box, Drawing, bars
from kafkapy.controller.partition_states import VALID_PREVIOUS_STATES

BENCHMARK = pictures.ROOT / "docs" / "evidence" / "kafkapy-and-apache-kafka.svg"
PICTURES = sorted(pictures.DIRECTORY.glob("*.svg"))
SVG = "{http://www.w3.org/2000/svg}"


def words(picture: str) -> list[str]:
    return [text.text or "" for text in ElementTree.fromstring(picture).iter(SVG + "text")]


def test_no_picture_is_out_of_date() -> None:
    assert [path.name for path in pictures.stale()] == []


@pytest.mark.parametrize("path", [*PICTURES, BENCHMARK], ids=lambda path: path.name)
def test_a_picture_is_800_wide_and_needs_nothing_from_elsewhere(path: Path) -> None:
    text = path.read_text()
    root = ElementTree.fromstring(text)
    assert root.get("width") == "800"
    assert not re.findall(r"<script|@import|@font-face|url\((?!#)|href", text)
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


def test_every_room_and_package_is_in_its_picture() -> None:
    layers = pictures.layers
    assert set(layers.ROOMS) <= set(words(pictures.server_subpackages()))
    assert set(layers.MAY_IMPORT) - {""} <= set(words(pictures.packages()))


def test_every_transition_of_a_partition_is_an_arrow() -> None:
    machine = pictures.partitions()
    picture = pictures.state_machines("a title", [machine])
    arrows = picture.count("marker-end")
    assert arrows == sum(len(befores) for befores in VALID_PREVIOUS_STATES.values())
    assert words(picture)[1:] == [state.value for state in VALID_PREVIOUS_STATES]


def test_an_arrow_through_a_third_state_is_refused() -> None:
    boxes = [Box(x, 0, 90, 30) for x in (0, 200, 400)]
    with pytest.raises(ValueError, match="move the states"):
        Drawing("a title").transition(boxes[0], boxes[2], False, boxes)


def test_floors_and_reduced_edges() -> None:
    edges = {"cli": {"tools", "common"}, "tools": {"common"}, "common": set(), "spark": {"common"}}
    assert layered_graph.floors(edges) == {"cli": 0, "tools": 1, "spark": 1, "common": 2}
    assert layered_graph.reduced(edges) == {
        "cli": ["tools"],
        "tools": ["common"],
        "common": [],
        "spark": ["common"],
    }


def test_nodes_of_a_floor_do_not_overlap() -> None:
    names = [f"a-package-{number}" for number in range(4)]
    edges: dict[str, set[str]] = {"top": set(names), **{name: set() for name in names}}
    picture = str(layered_graph.draw(edges, "a title", dict.fromkeys(edges, "#fff")))
    found = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"', picture)
    row = sorted((float(x), float(width)) for x, y, width in found if y != found[0][1])
    assert all(x + width < after for (x, width), (after, _) in pairwise(row))


def test_bars_are_as_long_as_their_values() -> None:
    picture = bars("a title", [Bar("half", 1.0, "1"), Bar("whole", 2.0, "2")])
    half, whole = re.findall(r'<rect x="290.0" y="[\d.]+" width="([\d.]+)"', picture)
    assert float(whole) == pytest.approx(2 * float(half), abs=0.1)
    assert words(picture) == ["a title", "half", "1", "whole", "2"]


def test_the_chart_of_the_benchmark_has_at_most_twelve_bars() -> None:
    assert len(kafka_table.PLOTTED) == len(set(kafka_table.PLOTTED)) <= 12
    chart = kafka_table.chart({"produce, 100 B": ("23.2", "20.6", 1.13)}, "3.9.1")
    assert "1.13 (23.2 / 20.6 MB/s)" in words(chart)


def test_a_recording_is_drawn_on_the_grid_of_its_terminal(tmp_path: Path) -> None:
    cast = tmp_path / "a.cast"
    events = [
        [0.5, "o", "\x1b[1;32m$\x1b[0m kafkapy <a> & b\r\n"],
        [1.0, "o", "\x1b[?25lone  two"],
        [2.5, "o", "\r\n\r\nlast\r\n"],
    ]
    lines = [{"version": 2, "width": 96, "height": 24}, *events]
    cast.write_text("\n".join(json.dumps(line) for line in lines) + "\n")
    picture = recording.rendered(cast)
    texts = list(ElementTree.fromstring(picture).iter(SVG + "text"))
    assert [text.text for text in texts] == ["$", "kafkapy <a> & b", "one", "two", "last"]
    assert texts[0].get("font-weight") == "bold"
    assert float(texts[3].get("x", "")) == pytest.approx(16 + 5 * recording.CELL, abs=0.1)
    assert re.findall(r"animation-delay: ([\d.]+)s", picture) == ["0.5", "2.5", "2.5"]


def test_a_command_is_recorded_on_a_terminal(tmp_path: Path) -> None:
    shown = "".join(
        output for _, output in recording.run_on_terminal("test -t 1 && tput cols", str(tmp_path))
    )
    assert shown == f"{recording.COLUMNS}\r\n"


def test_a_failing_command_ends_the_recording(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        list(recording.run_on_terminal("exit 3", str(tmp_path)))


def test_the_levels_of_sparks_table(tmp_path: Path) -> None:
    table = tmp_path / "table.txt"
    table.write_text("+---+\n|level|lines|\n+---+\n|INFO |1330 |\n|WARN |264  |\n+---+\n")
    assert recording.log_levels(table) == [("INFO", 1330), ("WARN", 264)]
