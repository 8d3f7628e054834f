"""Where shells look for completions, and what is left of it afterwards: nothing."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafkapy.tools.local.completion_files import (
    BEGIN,
    Change,
    FilesError,
    apply,
    install,
    places,
    shell_of,
    uninstall,
    with_block,
    without_block,
)

HOME = {"HOME": "/h"}


@pytest.mark.parametrize(
    ("shell", "environment", "script"),
    [
        ("bash", {}, "/h/.local/share/bash-completion/completions/kafkapy"),
        ("bash", {"XDG_DATA_HOME": "/d"}, "/d/bash-completion/completions/kafkapy"),
        ("bash", {"BASH_COMPLETION_USER_DIR": "/b"}, "/b/completions/kafkapy"),
        ("zsh", {}, "/h/.zfunc/_kafkapy"),
        ("fish", {}, "/h/.config/fish/completions/kafkapy.fish"),
        ("fish", {"XDG_CONFIG_HOME": "/c"}, "/c/fish/completions/kafkapy.fish"),
    ],
)
def test_where_a_shell_looks(shell: str, environment: dict[str, str], script: str) -> None:
    found = places(shell, {**HOME, **environment}, bash_completion=True)
    assert str(found.script) == script


def test_who_needs_lines_in_a_start_up_file() -> None:
    assert places("fish", HOME, bash_completion=False).startup is None
    assert places("bash", HOME, bash_completion=True).startup is None
    assert places("bash", HOME, bash_completion=False).startup == Path("/h/.bashrc")
    zsh = {**HOME, "ZDOTDIR": "/z"}
    assert places("zsh", zsh, bash_completion=True).startup == Path("/z/.zshrc")


def test_without_a_home_there_is_no_place() -> None:
    with pytest.raises(FilesError, match="HOME is not set"):
        places("bash", {}, bash_completion=True)


def test_the_shell_of_a_user() -> None:
    assert shell_of({"SHELL": "/usr/bin/fish"}) == "fish"
    assert shell_of({"SHELL": "/bin/dash"}) is None
    assert shell_of({}) is None


@pytest.mark.parametrize("text", ["", "alias a=b\n", "alias a=b\nalias c=d\n"])
def test_lines_come_and_go_and_leave_the_rest(text: str) -> None:
    once = with_block(text, ["one", "two"])
    assert once == text + f"{BEGIN}\none\ntwo\n# <<< kafkapy completion <<<\n"
    assert with_block(once, ["one", "two"]) == once
    assert with_block(once + "more\n", ["three"]).endswith(
        "three\n# <<< kafkapy completion <<<\nmore\n"
    )
    assert without_block(once) == text
    assert without_block(text) == text


def test_a_last_line_without_an_end_gets_one() -> None:
    assert with_block("alias a=b", ["one"]).startswith(f"alias a=b\n{BEGIN}\n")


def test_marks_without_an_end_are_not_ours_to_cut() -> None:
    broken = f"{BEGIN}\nalias a=b\n"
    assert without_block(broken) == broken


def test_after_a_removed_end_mark_no_line_of_the_user_is_cut() -> None:
    broken = f"{BEGIN}\nalias a=b\n"
    assert without_block(with_block(broken, ["one"])) == broken


@contextmanager
def full_disk() -> Iterator[None]:
    """No file can be written."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_full_disk_does_not_empty_the_start_up_file(tmp_path: Path) -> None:
    startup = tmp_path / ".bashrc"
    startup.write_text("alias a=b\n")
    change = Change(startup, "alias a=b\n", "alias a=b\nmore\n")
    with full_disk(), pytest.raises(FilesError, match=r"Cannot write .*/\.bashrc"):
        apply([change])
    assert startup.read_text() == "alias a=b\n"
    assert list(tmp_path.iterdir()) == [startup]


def test_a_start_up_file_stays_a_link_with_its_mode_and_line_ends(tmp_path: Path) -> None:
    kept, startup = tmp_path / "dotfiles", tmp_path / ".bashrc"
    kept.write_bytes(b"alias a=b\r\n")
    kept.chmod(0o600)
    startup.symlink_to(kept)
    where = places("bash", {"HOME": str(tmp_path)}, bash_completion=False)
    apply(install(where, "script\n"))
    assert startup.is_symlink()
    assert kept.read_bytes().startswith(b"alias a=b\r\n" + BEGIN.encode())
    assert kept.stat().st_mode & 0o777 == 0o600


def test_installed_twice_and_taken_away(tmp_path: Path) -> None:
    where = places("bash", {"HOME": str(tmp_path)}, bash_completion=False)
    startup = tmp_path / ".bashrc"
    startup.write_text("alias a=b\n")
    apply(install(where, "script\n"))
    assert where.script.read_text() == "script\n"
    assert str(where.script) in startup.read_text()
    assert not any(change.is_needed for change in install(where, "script\n"))
    apply(uninstall(where))
    assert not where.script.exists()
    assert startup.read_text() == "alias a=b\n"
    assert not any(change.is_needed for change in uninstall(where))


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    below = tmp_path / "file" / "kafkapy"
    with pytest.raises(FilesError, match=f"Cannot write {below}: "):
        apply([Change(below, None, "x")])
    (tmp_path / ".bashrc").write_bytes(b"\xff\xfe")
    where = places("bash", {"HOME": str(tmp_path)}, bash_completion=False)
    with pytest.raises(FilesError, match=r"Cannot read .*/\.bashrc: "):
        install(where, "x")
