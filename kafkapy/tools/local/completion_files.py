"""Plans and writes the files of shell completion.

bash-completion and fish load a script with the command's name from a directory of the user, at the
first completion. zsh, and bash without bash-completion, do not: they need lines in their start-up
file. Two marks enclose these lines.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Final

from kafkapy.common.errors import KafkapyError
from kafkapy.storage.filesystem import TEMPORARY_SUFFIX, OsFileSystem, write_atomically

SHELLS: Final = ("bash", "zsh", "fish")
BASH_COMPLETION: Final = (
    "/usr/share/bash-completion/bash_completion",
    "/etc/bash_completion",
    "/usr/local/share/bash-completion/bash_completion",
    "/opt/homebrew/share/bash-completion/bash_completion",
)
BEGIN: Final = "# >>> kafkapy completion >>>"
END: Final = "# <<< kafkapy completion <<<"


class FilesError(KafkapyError):
    """A file of the user cannot be read or written; the message names it."""


@dataclass(frozen=True)
class Change:
    """The new content of one file; `text` None means that it is removed."""

    path: Path
    old: str | None
    text: str | None

    @property
    def is_needed(self) -> bool:
        return self.text != self.old


@dataclass(frozen=True)
class Places:
    """The files of one shell: the script, and the lines in its start-up file."""

    script: Path
    startup: Path | None = None
    lines: tuple[str, ...] = ()


def shell_of(environment: Mapping[str, str]) -> str | None:
    """The user's shell from $SHELL; None if it is not one of SHELLS."""
    name = Path(environment.get("SHELL", "")).name
    return name if name in SHELLS else None


def has_bash_completion() -> bool:
    """Whether bash-completion is installed in one of its usual places."""
    return any(Path(path).exists() for path in BASH_COMPLETION)


def places(shell: str, environment: Mapping[str, str], *, bash_completion: bool) -> Places:
    """The files of a shell, from $HOME, $XDG_*, $ZDOTDIR and $BASH_COMPLETION_USER_DIR.

    Raises:
        FilesError: $HOME is not set.
    """
    if not environment.get("HOME"):
        raise FilesError("HOME is not set: there is no place for the completion of a user")
    home = Path(environment["HOME"])
    data = Path(environment.get("XDG_DATA_HOME") or home / ".local" / "share")
    if shell == "fish":
        config = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
        return Places(config / "fish" / "completions" / "kafkapy.fish")
    if shell == "bash":
        own = Path(environment.get("BASH_COMPLETION_USER_DIR") or data / "bash-completion")
        script = own / "completions" / "kafkapy"
        if bash_completion:
            return Places(script)
        return Places(
            script, home / ".bashrc", (f"[ ! -f {quote(str(script))} ] || . {quote(str(script))}",)
        )
    folder = home / ".zfunc"
    lines = (
        f"fpath=({quote(str(folder))} $fpath)",
        "if (( $+functions[compdef] )); then autoload -Uz _kafkapy; compdef _kafkapy kafkapy",
        "else autoload -Uz compinit; compinit; fi",
    )
    return Places(folder / "_kafkapy", Path(environment.get("ZDOTDIR") or home) / ".zshrc", lines)


def install(where: Places, script: str) -> list[Change]:
    """Changes that install completion in a shell, including files that are correct already.

    Raises:
        FilesError: a file cannot be read.
    """
    changes = [Change(where.script, _read(where.script), script)]
    if where.startup is not None:
        old = _read(where.startup)
        changes.append(Change(where.startup, old, with_block(old or "", where.lines)))
    return changes


def uninstall(where: Places) -> list[Change]:
    """Changes that remove completion.

    Raises:
        FilesError: a file cannot be read.
    """
    changes = [Change(where.script, _read(where.script), None)]
    if where.startup is not None and (old := _read(where.startup)) is not None:
        changes.append(Change(where.startup, old, without_block(old)))
    return changes


def with_block(text: str, lines: Sequence[str]) -> str:
    """The text of a start-up file with our lines, at their former place or at the end."""
    block = "\n".join((BEGIN, *lines, END, ""))
    before, found, after = _around_block(text)
    if found:
        return before + block + after
    return text + ("\n" if text and not text.endswith("\n") else "") + block


def without_block(text: str) -> str:
    """The text of a start-up file without our lines."""
    before, _, after = _around_block(text)
    return before + after


def _around_block(text: str) -> tuple[str, bool, str]:
    """The text before our lines, whether our lines exist, and the text after them."""
    # The last mark: an earlier one without an end may be followed by the user's own lines.
    before, begin, rest = text.rpartition(BEGIN + "\n")
    _, end, after = rest.partition(END + "\n")
    return (before, True, after) if begin and end else (text, False, "")


def apply(changes: Sequence[Change]) -> None:
    """Apply the changes that are needed.

    Raises:
        FilesError: a file cannot be written.
    """
    for change in changes:
        if not change.is_needed:
            continue
        try:
            if change.text is None:
                os.unlink(change.path)
            else:
                _replace(change.path, change.text)
        except OSError as error:
            raise FilesError(f"Cannot write {change.path}: {error.strerror}") from error


def _replace(path: Path, text: str) -> None:
    """Replace a file atomically: a full disk must not empty a start-up file. Links and modes are
    kept.
    """
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    mode = target.stat().st_mode if target.exists() else 0o644
    try:
        write_atomically(OsFileSystem(), str(target), text.encode(), private=True)
    except OSError:
        Path(f"{target}{TEMPORARY_SUFFIX}").unlink(missing_ok=True)
        raise
    target.chmod(mode)


def _read(path: Path) -> str | None:
    """The text of a file; None if it does not exist."""
    try:
        return path.read_bytes().decode()  # keeps the line ends
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise FilesError(f"Cannot read {path}: {error}") from error
