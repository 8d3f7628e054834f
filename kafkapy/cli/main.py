"""The console script."""

from __future__ import annotations

import gc
import sys
from types import TracebackType

from kafkapy.cli.framework.command_line import run
from kafkapy.cli.framework.environment import Environment
from kafkapy.common.java_environment import have_kerberos_config


def surprise(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """The hook for what nobody expected: one line, unless --debug is there."""
    if "--debug" in sys.argv:
        sys.__excepthook__(kind, error, trace)
    else:
        env = Environment()
        env.warn(f"kafkapy: {kind.__name__}: {error}")
        env.warn("This is a fault of kafkapy; --debug shows where it comes from.")


def main() -> None:
    """Run the command line of this process, and end it."""
    sys.excepthook = surprise
    have_kerberos_config()
    try:
        sys.exit(run(sys.argv[1:], Environment()))
    finally:
        # All memory goes with the process; looking for cycles in it first is a tenth of a start.
        gc.freeze()


if __name__ == "__main__":
    main()
