"""The garbage collector of a process that holds much for long: no pause that grows with it.

CPython's full collections look at every container there is, 130 ms of them with 10,000 partitions,
in which nobody is served; and the answers that tell of all partitions bring one on after another.
"""

from __future__ import annotations

import gc


def freeze_survivors() -> None:
    """From now on full collections leave out what an earlier one has seen to be in use.

    Reference counts free it as ever. Only a cycle that becomes garbage after that stays: what
    lives long here (partitions, logs, connections, groups) is taken apart when it ends.
    """
    gc.callbacks.append(_freeze)


def _freeze(phase: str, info: dict[str, int]) -> None:
    if phase == "stop" and info["generation"] == 2:
        gc.freeze()
