"""`kafkapy completion install|uninstall|show`: TAB in bash, zsh and fish."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafkapy.cli.framework.command import Command
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.exit_status import ExitStatus, UsageError
from kafkapy.cli.framework.options import CommonOptions, flag, value, values
from kafkapy.cli.framework.output import Report, show
from kafkapy.tools.local.completion_files import SHELLS

if TYPE_CHECKING:
    from kafkapy.tools.local.completion_files import Change

VERBS: Final = ("install", "uninstall", "show")


@dataclass
class CompletionOptions(CommonOptions):
    """The flags of all verbs."""

    words: list[str] = values(
        "The action: write the shell's files, remove them, or print the script.",
        metavar="|".join(VERBS),
        choices=VERBS,
    )
    shell: str | None = value(
        "The shell. Default: that of $SHELL.", metavar="bash|zsh|fish", choices=SHELLS
    )
    dry_run: bool = flag("Print the changes without writing a file.")


def run(options: CompletionOptions, env: Environment) -> ExitStatus:
    """Run the verb. Files that are correct already are not written."""
    from kafkapy.cli.framework.completion_scripts import script
    from kafkapy.tools.local import completion_files as files

    verb, *rest = options.words or [""]
    if verb not in VERBS:
        raise UsageError("Name an action: kafkapy completion install|uninstall|show")
    if rest:
        raise UsageError(f"Found non argument parameters: {','.join(rest)}")
    shell = options.shell or files.shell_of(os.environ)
    if shell not in SHELLS:
        raise UsageError(
            f"--shell {options.shell} is none of {', '.join(SHELLS)}"
            if options.shell
            else "$SHELL is not a supported shell: name one with --shell bash|zsh|fish"
        )
    if verb == "show":
        env.write(script(shell))
        return ExitStatus.SUCCESS
    if verb == "install":
        bash_completion = files.has_bash_completion()
        where = files.places(shell, os.environ, bash_completion=bash_completion)
        changes = files.install(where, script(shell))
    else:
        # As without bash-completion, so that lines in a start-up file are removed too.
        changes = files.uninstall(files.places(shell, os.environ, bash_completion=False))
    if not options.dry_run:
        files.apply(changes)
    lines = [_line(change, dry=options.dry_run) for change in changes]
    if verb == "install" and not options.dry_run:
        lines += ["Open a new shell to use it.", f"To undo: {_undo(shell)}"]
    data = [_row(shell, change, options) for change in changes]
    show(env, Report("completion", data, lines), options.output)
    return ExitStatus.SUCCESS


def _undo(shell: str) -> str:
    return f"kafkapy completion uninstall --shell {shell}"


def _action(change: Change) -> str:
    if not change.is_needed:
        return "unchanged"
    if change.text is None:
        return "removed"
    return "changed" if change.old is not None else "written"


def _line(change: Change, *, dry: bool) -> str:
    action = _action(change)
    if action == "unchanged":
        return f"{change.path} is {'not there' if change.text is None else 'up to date'}"
    return f"{f'Would be {action}' if dry else action.capitalize()}: {change.path}"


def _row(shell: str, change: Change, options: CompletionOptions) -> dict[str, object]:
    return {
        "shell": shell,
        "path": str(change.path),
        "action": _action(change),
        "dry_run": options.dry_run,
    }


COMMAND: Final = Command(
    "completion",
    CompletionOptions,
    run,
    operands="words",
    groups={
        "Shell and dry run": "shell dry-run",
    },
    examples={
        "Install completion for the shell of $SHELL.": "install",
        "Show the files that install would write.": "install --dry-run",
        "Print the script for zsh.": "show --shell zsh",
    },
)
