"""The static completions: up to date, valid where a shell is there, and completing in bash."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dev.docs import completions
from kafkapy.cli.framework.command import commands
from kafkapy.cli.framework.command_table import COMMANDS
from tests.harness.plugins import unchecked

SYNTAX_CHECKS = {
    "kafkapy.bash": ["bash", "-n"],
    "_kafkapy": ["zsh", "-n"],
    "kafkapy.fish": ["fish", "--no-execute"],
}


@pytest.mark.parametrize("word", ["--help", "--chek"])
def test_no_file_is_written_for_a_word_that_asks_for_none(
    word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(completions, "DIRECTORY", tmp_path)
    monkeypatch.setattr(sys, "argv", ["scripts/completions", word])
    with pytest.raises(SystemExit):
        completions.main()
    assert list(tmp_path.iterdir()) == []


def test_they_are_up_to_date() -> None:
    stale = [
        name
        for name, text in completions.files().items()
        if (completions.DIRECTORY / name).read_text() != text
    ]
    assert stale == [], "run scripts/completions"


@pytest.mark.parametrize("name", SYNTAX_CHECKS)
def test_shells_accept_them(name: str) -> None:
    shell, *flags = SYNTAX_CHECKS[name]
    if shutil.which(shell) is None:
        assert shell != "bash", "bash is needed"
        unchecked.note(f"completions/{name}", f"{shell} is not installed")
        return
    command = [shell, *flags, str(completions.DIRECTORY / name)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def completed(*words: str) -> list[str]:
    """Completions that bash offers for the last word."""
    script = f"""
        source {shlex.quote(str(completions.DIRECTORY / "kafkapy.bash"))}
        COMP_WORDS=({" ".join(f"'{word}'" for word in words)})
        COMP_CWORD={len(words) - 1}
        _kafkapy
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completes_commands_options_and_values() -> None:
    assert completed("kafkapy", "") == [*COMMANDS, "--help", "--version"]
    assert completed("kafkapy", "con") == [name for name in COMMANDS if name.startswith("con")]
    assert completed("kafkapy", "topics", "--if") == ["--if-exists", "--if-not-exists"]
    assert completed("kafkapy", "topics", "--list", "--output", "") == ["text", "table", "json"]
    assert completed("kafkapy", "configs", "--entity-type", "b") == ["brokers", "broker-loggers"]
    assert completed("kafkapy", "server", "st") == ["start", "stop"]
    assert completed("kafkapy", "topics", "--topic", "") == []


def test_bash_completes_kafkas_own_names() -> None:
    assert completed("kafka-topics.sh", "--desc") == ["--describe"]
    assert completed("kafka-reassign-partitions.sh", "--gen") == ["--generate"]
    assert completed("kafka-server-stop.sh", "--sig") == ["--signal"]
    name = str(Path("/opt/bin/kafka-console-consumer.sh"))
    assert completed(name, "--isolation-level", "") == ["read_uncommitted", "read_committed"]


def test_every_option_of_every_command_is_in_every_file() -> None:
    texts = completions.files()
    for name, command in commands().items():
        for spec in command.specs():
            assert f"--{spec.names[0]}" in texts["kafkapy.bash"], (name, spec.names)
            assert f"--{spec.names[0]}[" in texts["_kafkapy"], (name, spec.names)
            assert f"from {name}' -l {spec.names[0]} " in texts["kafkapy.fish"], (name, spec.names)
