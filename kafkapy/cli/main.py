"""The console script. Most of a start is imports, so they wait until `main` has made them cheap."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import TracebackType

# New objects between two looks for garbage. What a start makes is some tens of thousands of objects
# that stay: with Python's 700 it looks at them again and again.
GARBAGE_THRESHOLD: Final = 50_000


def surprise(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """The hook for what nobody expected: one line, unless --debug is there."""
    from kafkapy.cli.environment import Environment

    if "--debug" in sys.argv:
        sys.__excepthook__(kind, error, trace)
    else:
        env = Environment()
        env.warn(f"kafkapy: {kind.__name__}: {error}")
        env.warn("This is a fault of kafkapy; --debug shows where it comes from.")


def main() -> None:
    """Run the command line of this process, and end it."""
    gc.set_threshold(GARBAGE_THRESHOLD)
    sys.excepthook = surprise
    from kafkapy.cli.command_line import run
    from kafkapy.cli.environment import Environment

    try:
        sys.exit(run(sys.argv[1:], Environment()))
    finally:
        # The process ends: its memory is not worth the search for cycles that Python makes then.
        gc.freeze()


if __name__ == "__main__":
    main()
