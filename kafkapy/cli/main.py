"""The console script."""

from __future__ import annotations

import codecs
import gc
import io
import os
import sys
from types import TracebackType
from typing import Final, NoReturn

from kafkapy.cli.framework.command_line import run
from kafkapy.cli.framework.environment import Environment
from kafkapy.cli.framework.output_file import wrap_output_file
from kafkapy.common.java_environment import apply_kerberos_config

_JAVA_ESCAPES: Final = "kafkapy.escaped"


def java_escaped(error: UnicodeError) -> tuple[str, int]:
    """Escape characters that an encoding lacks as Java and JSON do: in UTF-16, such as \\u65e5."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2)), error.end


def escape_stdout() -> None:
    """Make stdout escape characters that the locale lacks: names of groups may contain them."""
    codecs.register_error(_JAVA_ESCAPES, java_escaped)
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors=_JAVA_ESCAPES)


def tolerate_stdin_bytes() -> None:
    """Read bytes of stdin that are not UTF-8 as surrogates (PEP 383). A command that reads lines
    refuses a line with surrogates, and continues with the next line.
    """
    if isinstance(sys.stdin, io.TextIOWrapper) and sys.stdin.errors == "strict":
        sys.stdin.reconfigure(errors="surrogateescape")


def exception_hook(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """The hook for unexpected exceptions: prints one line, or the traceback with --debug."""
    if "--debug" in sys.argv:
        sys.__excepthook__(kind, error, trace)
    else:
        env = Environment()
        env.warn(f"kafkapy: {kind.__name__}: {error}")
        env.warn("This is a bug in kafkapy; --debug shows the traceback.")


def main() -> None:
    """Run the command line of this process, and end the process."""
    sys.excepthook = exception_hook
    escape_stdout()
    sys.stdout = wrap_output_file(sys.stdout)
    tolerate_stdin_bytes()
    apply_kerberos_config()
    try:
        exit_process(run(sys.argv[1:], Environment()))
    finally:
        # Skips the search for cycles at exit: it would take a tenth of the time of a start.
        gc.freeze()


def exit_process(status: int) -> NoReturn:
    """End the process. With librdkafka loaded, skip the exit handlers: its threads may still run,
    for example after a refused login, and crash (SIGSEGV) when the handlers unload libraries.
    """
    if "confluent_kafka" in sys.modules:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(status)
    sys.exit(status)


if __name__ == "__main__":
    main()
