"""Plots as SVG files that stay the same when the figures do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.harness.processes.apache_kafka import cache_dir


@contextmanager
def saved(path: Path, size: tuple[float, float], rows: int = 1, columns: int = 1) -> Iterator[Any]:
    """The axes to draw on (an array of them if there are several); the figure is saved at the end.

    `size` is in inches.
    """
    # The import takes a second, which callers without plots do not need.
    os.environ.setdefault("MPLCONFIGDIR", str(cache_dir() / "matplotlib"))  # not in ~/.config
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    # Text stays text, and the same figures give the same file: no dates, no random ids.
    style = {"svg.hashsalt": "kafkapy", "svg.fonttype": "none", "font.size": 8}
    with pyplot.rc_context(style):
        figure, axes = pyplot.subplots(rows, columns, figsize=size, layout="constrained")
        yield axes
        figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
        pyplot.close(figure)
