"""Static completions for bash, zsh and fish, generated from the definitions of the commands.

Typer's own completion starts Python at each TAB; these files do not need Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from kafkapy.cli.framework.command import Command, commands
from kafkapy.cli.framework.command_table import COMMANDS
from kafkapy.cli.framework.drop_in_names import DROP_IN
from kafkapy.cli.framework.jopt import OptionSpec

NOTE: Final = "Written from the definitions of kafkapy's commands: do not edit."
FILE_METAVARS: Final = ("FILE", "DIR")
Commands = Mapping[str, Command[Any]]


def script(shell: str) -> str:
    """The completion script for bash, zsh or fish."""
    return _SCRIPTS[shell](commands())


def takes_file(spec: OptionSpec) -> bool:
    """Whether the option's value is a path."""
    return spec.metavar in FILE_METAVARS


def long_name(spec: OptionSpec) -> str:
    return f"--{spec.names[0]}"


def bash(table: Commands) -> str:
    """The script for bash. It also completes the names of Kafka's scripts, which are the same
    commands.
    """
    lines = [
        f"# {NOTE}",
        "_kafkapy() {",
        "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}",
        "    local command=${COMP_WORDS[1]} words=",
        "    case ${COMP_WORDS[0]##*/} in",
        *(f"        {name}) command={words[0]} ;;" for name, words in DROP_IN.items()),
        f'        *) if [ "$COMP_CWORD" -eq 1 ]; then words="{" ".join(table)} --help --version"',
        '            COMPREPLY=($(compgen -W "$words" -- "$current")); return; fi ;;',
        "    esac",
        "    COMPREPLY=()",
        "    case $command in",
    ]
    for name, command in table.items():
        lines += [f"        {name})", *bash_options(command), "            ;;"]
    lines += [
        "    esac",
        '    COMPREPLY=($(compgen -W "$words" -- "$current"))',
        "}",
        "complete -o default -F _kafkapy kafkapy",
    ]
    lines += [f"complete -o default -F _kafkapy {name}" for name in DROP_IN]
    return "\n".join(lines) + "\n"


def bash_options(command: Command[Any]) -> Iterator[str]:
    """Completions of an option's value, then the options themselves."""
    yield "            case $previous in"
    value_options = []
    for spec in command.specs():
        if spec.choices:
            yield f'                {long_name(spec)}) words="{" ".join(spec.choices)}" ;;'
        elif spec.takes_value:
            value_options.append(long_name(spec))
    if value_options:
        # An empty answer with `-o default` falls back to file names.
        yield f"                {'|'.join(value_options)}) return ;;"
    names = " ".join((*command.operand_choices(), *map(long_name, command.specs())))
    yield f'                *) words="{names}" ;;'
    yield "            esac"


def zsh(table: Commands) -> str:
    lines = [
        "#compdef kafkapy",
        f"# {NOTE}",
        "_kafkapy() {",
        "    local -a commands",
        "    commands=(",
        *(f"        {zsh_quoted(f'{name}:{COMMANDS[name]}')}" for name in table),
        "    )",
        "    if (( CURRENT == 2 )); then",
        "        _describe command commands",
        "        return",
        "    fi",
        "    case $words[2] in",
    ]
    for name, command in table.items():
        lines += [f"        {name})", "            shift words; (( CURRENT-- ))"]
        lines += ["            _arguments \\"]
        arguments = [zsh_argument(spec) for spec in command.specs()]
        if command.operand_choices():
            arguments.append(f"':word:({' '.join(command.operand_choices())})'")
        lines += [f"                {each} \\" for each in arguments]
        lines += ["                '*:file:_files'", "            ;;"]
    lines += ["    esac", "}", '_kafkapy "$@"']
    return "\n".join(lines) + "\n"


def zsh_argument(spec: OptionSpec) -> str:
    """One specification of `_arguments`."""
    about = spec.help.replace("[", "(").replace("]", ")").replace(":", ";")
    text = f"{'*' if spec.repeatable else ''}{long_name(spec)}[{about}]"
    if spec.takes_value:
        action = f"({' '.join(spec.choices)})" if spec.choices else ""
        action = "_files" if takes_file(spec) else action
        text += f":{spec.names[0]}:{action}"
    return zsh_quoted(text)


def zsh_quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def fish(table: Commands) -> str:
    lines = [f"# {NOTE}", "complete -c kafkapy -f"]
    for name in table:
        about = fish_quoted(COMMANDS[name])
        lines.append(f"complete -c kafkapy -n __fish_use_subcommand -a {name} -d {about}")
    for name, command in table.items():
        condition = f"'__fish_seen_subcommand_from {name}'"
        if command.operand_choices():
            words = fish_quoted(" ".join(command.operand_choices()))
            lines.append(f"complete -c kafkapy -n {condition} -a {words}")
        for spec in command.specs():
            value = " -r -F" if takes_file(spec) else " -x" if spec.takes_value else ""
            if spec.choices:
                value += f" -a {fish_quoted(' '.join(spec.choices))}"
            about = fish_quoted(spec.help)
            lines.append(f"complete -c kafkapy -n {condition} -l {spec.names[0]}{value} -d {about}")
    return "\n".join(lines) + "\n"


def fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_SCRIPTS: Final[Mapping[str, Callable[[Commands], str]]] = {"bash": bash, "zsh": zsh, "fish": fish}
