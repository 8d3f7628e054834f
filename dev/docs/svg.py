"""A small SVG writer: boxes, arrows and text on a light background, with plain fonts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import hypot
from typing import NamedTuple
from xml.sax.saxutils import escape

WIDTH = 800.0
INK, GREY, GREEN, BLUE = "#24292f", "#d8dee4", "#cfe8d5", "#d3e4f5"
PAPER = "#ffffff"
STEPS = 1000
FONT = "Helvetica, Arial, 'DejaVu Sans', sans-serif"


class Box(NamedTuple):
    """A rectangle by its centre."""

    x: float
    y: float
    width: float
    height: float

    def holds(self, x: float, y: float) -> bool:
        return abs(x - self.x) < self.width / 2 and abs(y - self.y) < self.height / 2


class Drawing:
    """A picture of width `WIDTH`. Its height depends on its parts."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._parts: list[str] = []
        self._bottom = 0.0

    def rect(
        self, x: float, y: float, width: float, height: float, fill: str, stroke: str = INK
    ) -> None:
        self._reach(y + height)
        self._parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="3"'
            f' fill="{fill}" stroke="{stroke}"/>'
        )

    def text(self, x: float, y: float, text: str, anchor: str = "start", size: int = 13) -> None:
        self._reach(y + 4)
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">'
            f"{escape(text)}</text>"
        )

    def path(self, path: str, dashed: bool = False, arrow: bool = False) -> None:
        dashes = ' stroke-dasharray="5 4"' if dashed else ""
        head = ' marker-end="url(#head)"' if arrow else ""
        self._parts.append(f'<path d="{path}" fill="none" stroke="{INK}"{dashes}{head}/>')

    def box(self, box: Box, text: str, fill: str = BLUE) -> None:
        self.rect(box.x - box.width / 2, box.y - box.height / 2, box.width, box.height, fill)
        self.text(box.x, box.y + 4.5, text, "middle")

    def heading(self, text: str) -> float:
        """Add a heading below the other parts. Returns the y below it."""
        y = self._bottom + 30
        self._parts.append(
            f'<text x="20" y="{y:.1f}" font-size="16" font-weight="bold">{escape(text)}</text>'
        )
        self._reach(y + 8)
        return self._bottom

    def legend(self, entries: Sequence[tuple[str, str]]) -> None:
        y = self._bottom + 14
        for number, (fill, text) in enumerate(entries):
            self.rect(20 + 260 * number, y, 16, 12, fill)
            self.text(42 + 260 * number, y + 11, text)

    def caption(self, *lines: str) -> None:
        for line in lines:
            self.text(20, self._bottom + 18, line)

    def transition(self, start: Box, end: Box, both_ways: bool, boxes: Iterable[Box]) -> None:
        """An arrow from a box to another, or a loop. Raises ValueError if it hits a third box."""
        if start == end:
            x, y = start.x + start.width / 2 - 22, start.y + start.height / 2
            self.path(f"M{x:.1f} {y:.1f} c-3 22 21 22 17 3", arrow=True)
            self._reach(y + 18)
            return
        across, down = end.x - start.x, end.y - start.y
        length = hypot(across, down)
        # Two arrows between the same boxes lie beside each other.
        shift = 6 / length if both_ways else 0
        from_x, from_y = start.x - down * shift, start.y + across * shift
        points = [
            (from_x + across * step / STEPS, from_y + down * step / STEPS) for step in range(STEPS)
        ]
        if any(box.holds(*at) for box in boxes if box not in (start, end) for at in points):
            raise ValueError("an arrow hits a box: move the states")
        outside = [at for at in points if not start.holds(*at) and not end.holds(*at)]
        (x1, y1), (x2, y2) = outside[0], outside[-1]
        self.path(f"M{x1:.1f} {y1:.1f} L{x2:.1f} {y2:.1f}", arrow=True)

    def _reach(self, y: float) -> None:
        self._bottom = max(self._bottom, y)

    def __str__(self) -> str:
        height = self._bottom + 16
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {height:.0f}"'
                f' width="{WIDTH:.0f}" height="{height:.0f}" role="img" fill="{INK}"'
                f' font-family="{FONT}">',
                f"<title>{escape(self._title)}</title>",
                '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8"'
                f' markerHeight="8" orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="{INK}"/>'
                "</marker></defs>",
                f'<rect width="100%" height="100%" fill="{PAPER}"/>',
                *self._parts,
                "</svg>\n",
            ]
        )


class Bar(NamedTuple):
    """A row of a bar chart."""

    label: str
    value: float
    text: str


def bars(title: str, rows: Sequence[Bar], line: float | None = None, line_text: str = "") -> str:
    """Horizontal bars; `line` marks a value to compare with."""
    drawing = Drawing(title)
    top, left, room = drawing.heading(title) + 10, 290.0, WIDTH - 290.0 - 190.0
    scale = room / max(row.value for row in rows)
    for number, row in enumerate(rows):
        y = top + 26 * number
        ahead = line is None or row.value >= line
        drawing.rect(left, y, row.value * scale, 18, GREEN if ahead else GREY, stroke=INK)
        drawing.text(left - 8, y + 13, row.label, anchor="end")
        drawing.text(left + row.value * scale + 8, y + 13, row.text)
    if line is not None:
        x, bottom = left + line * scale, top + 26 * len(rows)
        drawing.path(f"M{x:.1f} {top - 8} V{bottom + 2}", dashed=True)
        drawing.text(x, bottom + 16, line_text, anchor="middle")
    return str(drawing)
