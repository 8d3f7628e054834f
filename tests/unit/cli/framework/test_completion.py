"""`kafkapy completion`: what it writes into a home, and how it says so."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kafkapy.cli.framework.completion_scripts import script
from kafkapy.tools.local import completion_files
from tests.harness.scripted.cli import kafkapy

LATER = ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "ZDOTDIR", "BASH_COMPLETION_USER_DIR")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user of bash without bash-completion, whose home has a blank in its name."""
    for name in LATER:
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "a home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("SHELL", "/bin/bash")
    monkeypatch.setattr(completion_files, "BASH_COMPLETION", ())
    return home


def test_install_says_where_it_wrote_and_how_to_undo_it(home: Path) -> None:
    file = home / ".local/share/bash-completion/completions/kafkapy"
    last = "Open a new shell to use it.\nTo undo: kafkapy completion uninstall --shell bash\n"
    first = kafkapy("completion", "install")
    assert first.stdout == f"Written: {file}\nWritten: {home}/.bashrc\n{last}"
    assert file.read_text() == script("bash")
    again = kafkapy("completion", "install")
    assert again.stdout == f"{file} is up to date\n{home}/.bashrc is up to date\n{last}"
    gone = kafkapy("completion", "uninstall")
    assert gone.stdout == f"Removed: {file}\nChanged: {home}/.bashrc\n"
    assert not file.exists()


def test_a_new_bash_completes(home: Path) -> None:
    kafkapy("completion", "install")
    asked = ["bash", "--rcfile", str(home / ".bashrc"), "-ic", "complete -p kafkapy"]
    done = subprocess.run(asked, capture_output=True, text=True, env={**os.environ})
    assert done.stdout == "complete -o default -F _kafkapy kafkapy\n"


def test_a_dry_run_writes_nothing(home: Path) -> None:
    shown = kafkapy("completion", "install", "--shell", "fish", "--dry-run")
    assert shown.stdout == f"Would be written: {home}/.config/fish/completions/kafkapy.fish\n"
    assert list(home.iterdir()) == []


def test_json_has_a_row_for_each_file(home: Path) -> None:
    done = kafkapy("completion", "install", "--shell", "zsh", "--output", "json")
    files = [home / ".zfunc" / "_kafkapy", home / ".zshrc"]
    assert done.data == [
        {"shell": "zsh", "path": str(path), "action": "written", "dry_run": False} for path in files
    ]


@pytest.mark.parametrize("shell", completion_files.SHELLS)
def test_show_prints_the_script(shell: str) -> None:
    assert kafkapy("completion", "show", "--shell", shell).stdout == script(shell)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Name an action: kafkapy completion install|uninstall|show"),
        (["begin"], "Name an action: kafkapy completion install|uninstall|show"),
        (["install", "bash"], "Found non argument parameters: bash"),
        (["install", "--shell", "csh"], "--shell csh is none of bash, zsh, fish"),
        (["install"], "$SHELL is not a supported shell: name one with --shell bash|zsh|fish"),
    ],
)
def test_wrong_words(words: list[str], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/dash")
    outcome = kafkapy("completion", *words, "--output", "text")
    assert outcome.stderr.startswith(said)
    assert (outcome.stdout, outcome.status) == ("", 1)
