"""The text of `--help`, drawn from the declarations."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.command_table import COMMANDS
from kafkapy.cli.framework.exit_status import ExitStatus
from kafkapy.cli.framework.help_page import folded, of_all, of_command
from kafkapy.cli.framework.options import CommonOptions, OutputFormat, flag, value, values


@dataclass
class Some(CommonOptions):
    words: list[str] = values("What to do.", metavar="go|stop [FILE]")
    loud: bool = flag("Be loud.")
    topic: str | None = value("The topic.", metavar="TOPIC", short="t")
    wait: int = value("How long.", metavar="MS", default=7)
    form: OutputFormat = value("The form.", metavar="FORM", default=OutputFormat.text)


BEGINNING = """\
Usage: kafkapy some [OPTIONS] [go|stop [FILE]]

  Do something.

Examples:
  Go.
    kafkapy some go

  Stop.
    kafkapy some stop

Words:
  go|stop [FILE]  What to do.

How to do it:
  --loud             Be loud.
  -t, --topic TOPIC  The topic.

Options:
  --wait MS    How long.  [default: 7]
  --form FORM  The form.  [default: text]

Output:
"""


def test_a_page_has_all_that_is_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    command = Command(
        "some",
        Some,
        lambda options, env: ExitStatus.SUCCESS,
        help="Do something.",
        operands="words",
        groups={"How to do it": "loud topic"},
        examples={"Go.": "go", "Stop.": "stop"},
    )
    page = of_command("some", command)
    assert page.startswith(BEGINNING)
    assert page.endswith("\n  -h, --help                Show the options.")
    assert max(map(len, page.splitlines())) < 80


def test_the_first_page_has_options_and_commands() -> None:
    assert "\n  --version   Print the version and exit.\n  -h, --help  Show this " in of_all()
    assert f"\nRun:\n  server     {COMMANDS['server']}\n" in of_all()


def test_a_long_line_is_folded_as_a_shell_takes_it() -> None:
    shown = "  kafkapy a \\\n      --b c \\\n      --d e\n"
    assert folded("kafkapy a --b c --d e", 16, 2) == shown
