"""The table of drop-in names says what the scripts in scripts/bin do."""

from __future__ import annotations

import re

import pytest

from dev.docs.tools_page import BIN
from kafkapy.cli.framework.command_table import COMMANDS
from kafkapy.cli.framework.drop_in_names import DROP_IN


@pytest.mark.parametrize(("name", "words"), DROP_IN.items())
def test_a_script_calls_the_command_of_the_table(name: str, words: tuple[str, ...]) -> None:
    called = re.search(r"exec \"\$kafkapy\"[\\\s]+(.*)", (BIN / name).read_text())
    assert called is not None
    assert called[1].split()[: len(words)] == list(words)
    assert words[0] in COMMANDS
