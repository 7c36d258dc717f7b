"""Pictures: the only file that touches matplotlib, which is an optional extra.

A route has one colour everywhere, from Okabe and Ito's palette, which colour-blind people can tell apart. Figures are
drawn into files, on canvases of their own; no window opens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.atomic import check_target, whole_file
from penstock.storage.base.errors import KEPT, InputError, installing, printable

Floats = NDArray[np.float64]
SUFFIXES = (".png", ".svg", ".pdf")
COLOURS = {
    "resident": "#009E73",
    "filter": "#0072B2",
    "compaction": "#E69F00",
    "zero-copy": "#D55E00",
    "blocks": "#8C564B",
    "cel": "#CC79A7",
}
OTHER = "#999999"
AUTO = "#222222"
PART = "#8A8A8A"
"""Of auto with all its parts, and of auto without one of them."""
ALERT = "#B00020"


def check(path: Path, *, force: bool) -> None:
    """Refuse, before anything is measured, what could not be drawn.

    Raises:
        InputError: matplotlib is not installed, the name asks for another format, or the file exists without `force`.
    """
    present()
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"picture {path} has no known format; name it with one of {', '.join(SUFFIXES)}")
    check_target(path, force=force)


def present() -> Any:
    """Matplotlib's Figure. Raises InputError, with the way to get it, where it is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError(f"pictures need matplotlib: {installing('plot')}") from None
    return Figure


def canvas(width: float, height: float) -> Any:
    """An empty figure of so many inches, laid out by itself. Raises InputError without matplotlib."""
    return present()(figsize=(width, height), dpi=120, layout="constrained")


def as_svg(figure: Any) -> str:
    """A figure as an SVG element for a page; its text stays text."""
    from io import StringIO

    from matplotlib import rc_context

    _make_printable(figure)
    buffer = StringIO()
    with rc_context({"svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def save(figure: Any, path: Path, *, force: bool) -> None:
    """Write a figure in the format that the name asks for. Raises InputError as `check` does, RunError."""
    _make_printable(figure)
    with whole_file(path, force=force) as partial:
        figure.savefig(partial)


def _make_printable(figure: Any) -> None:
    """Escape what is unprintable in the texts of a figure, which may be names of an input."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_text(printable(text.get_text(), KEPT))


def plain_axes(panel: Any) -> None:
    """Axes without a frame, and small letters."""
    panel.spines[["top", "right"]].set_visible(False)
    panel.tick_params(labelsize=8)
    panel.xaxis.label.set_size(8.5)
    panel.yaxis.label.set_size(8.5)


def grouped(values: Floats, most: int) -> Floats:
    """Float64 (..., iterations) in at most `most` columns, neighbors averaged."""
    length = values.shape[-1]
    if length <= most:
        return values
    edges = np.linspace(0, length, most + 1).astype(np.intp)
    return np.asarray(np.add.reduceat(values, edges[:-1], axis=-1) / np.diff(edges))


def starts_of(iterations: int, columns: int) -> Floats:
    """Where each of the columns of `grouped` begins on the axis of iterations, and the last one ends."""
    if iterations <= columns:
        return np.arange(columns + 1, dtype=np.float64) - 0.5
    return np.linspace(0, iterations, columns + 1).astype(np.intp).astype(np.float64) - 0.5


def stack(
    panel: Any, names: Sequence[str], rows: Floats, starts: Floats, *, colours: Mapping[str, str], line: float
) -> None:
    """Bars on top of each other, from `starts` to the next of them; line: the width of what is between them."""
    below: Floats = np.zeros(rows.shape[1])
    for name, row in zip(names, rows, strict=True):
        style: dict[str, Any] = {"align": "edge", "color": colours.get(name, OTHER), "edgecolor": "white"}
        panel.bar(starts[:-1], row, np.diff(starts), below, label=name, zorder=2, linewidth=line, **style)
        below = below + row


def legend_patch(colour: str, label: str) -> Any:
    """An entry of a legend: a colour."""
    from matplotlib.patches import Patch

    return Patch(color=colour, label=label)


def legend_line(label: str, **style: Any) -> Any:
    """An entry of a legend: a line."""
    from matplotlib.lines import Line2D

    return Line2D([], [], label=label, **style)
