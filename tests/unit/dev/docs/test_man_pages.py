"""The manual pages: up to date, whole, and good roff; the wheel carries them."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib

import pytest

from dev.docs.man_pages import DIRECTORY, page, pages
from dev.report import ROOT
from kafkapy.cli.framework.command import commands
from kafkapy.cli.framework.command_table import COMMANDS
from tests.harness.plugins import unchecked

PAGES = pages()
REQUESTS = {"TH", "SH", "SS", "TP", "PP", "RS", "RE", "B", "BR", "so"}


def roff(text: str) -> str:
    """Text as roff reads it."""
    return text.replace("\\", "\\e").replace("-", "\\-")


def test_they_are_up_to_date() -> None:
    assert {path.name: path.read_text() for path in DIRECTORY.iterdir()} == PAGES, (
        "run scripts/docs"
    )


def test_there_is_one_for_each_command_and_the_first_names_all() -> None:
    assert set(PAGES) == {"kafkapy.1", *(f"kafkapy-{name}.1" for name in COMMANDS)}
    for name, about in COMMANDS.items():
        assert f".TP\n\\fB{roff(name)}\\fR\n{roff(about)}\n" in PAGES["kafkapy.1"]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_on_the_page_of_its_command(name: str) -> None:
    command = commands()[name]
    text = page(command)
    for spec in command.specs():
        assert f"\\fB{roff('--' + spec.names[0])}\\fR" in text
        assert roff(spec.help) in text
    for why in command.refused.values():
        assert roff(why) in text


def test_what_the_parser_knows_is_said() -> None:
    text = page(commands()["console-consumer"])
    assert roff("One of read_uncommitted, read_committed. Default: read_uncommitted.") in text
    assert "It may be repeated." in text
    assert "Alone it stands for gzip." in page(commands()["console-producer"])
    assert roff("kafka-server-start.sh, kafka-server-stop.sh.") in page(commands()["server"])


def test_failures_with_status_0_are_on_the_page_of_their_command() -> None:
    text = page(commands()["delete-records"])
    clause = "the records of a partition were not deleted. With --strict, the status is 1."
    assert roff(f"All was done, or {clause}") in text
    assert "\\fB0\\fR\nAll was done.\n" in page(commands()["acls"])


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_made_of_known_requests(name: str) -> None:
    """Running text that begins with a dot would be one, and vanish."""
    lines = PAGES[name].splitlines()
    if len(lines) == 1:
        assert (DIRECTORY.parent / lines[0].removeprefix(".so ")).is_file()
        return
    requests = [line[1:].split(" ")[0] for line in lines if line[0] in ".'" and line[1:3] != '\\"']
    assert set(requests) <= REQUESTS
    assert requests[:2] == ["TH", "SH"]
    # A tag has its text: what follows .TP is a name in bold or italic, then a line of its own.
    for index, line in enumerate(lines):
        if line == ".TP":
            assert re.match(r"\\f[BI]", lines[index + 1])
            assert not lines[index + 2].startswith(".")


def test_groff_has_nothing_to_say() -> None:
    if shutil.which("groff") is None:
        unchecked.note("man/", "groff is not installed")
        return
    command = ["groff", "-man", "-ww", "-z", "-K", "utf8"]
    command += [f"man1/{name}" for name in sorted(PAGES)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=DIRECTORY.parent)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_wheel_puts_files_where_they_are_looked_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    shared = project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    assert all((ROOT / source).exists() for source in shared)
    assert shared["man/man1"] == "share/man/man1"
    assert {path.name for path in (ROOT / "completions").iterdir()} == {
        source.partition("/")[2] for source in shared if source.startswith("completions/")
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_every_example_is_on_the_page_of_its_command(name: str) -> None:
    command = commands()[name]
    text = page(command)
    for about, line in command.example_lines():
        assert f"{roff(about)}\n.RS 4\n\\fB{roff(line)}\\fR\n" in text
