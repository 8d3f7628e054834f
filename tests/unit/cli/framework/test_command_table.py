"""The table of commands."""

from __future__ import annotations

import pytest

from kafkapy.cli.framework.command import commands, load
from kafkapy.cli.framework.command_table import COMMANDS, GROUPS


def test_the_help_has_each_command_in_one_group() -> None:
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_name_leads_to_its_command(name: str) -> None:
    # `dump-log` is the other name of a command.
    assert load(name).name.startswith(name)
    assert commands()[name] is load(name)
