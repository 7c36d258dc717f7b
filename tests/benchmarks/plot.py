"""Draws the history: for each figure of a machine one small picture, its medians and spreads over commits, by date.

And forecasts: what was expected against what was taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.history import Record

Pairs = dict[str, list[tuple[float, float]]]
"""Seconds that were expected, and that were taken, by what they are of."""
COLUMNS = 4
INCHES = 3.6, 2.2
"""Of a figure's picture: width, height."""


def plot(records: Sequence[Record], path: Path) -> int:
    """Write a page, of the format that its ending names; return how many figures were measured at two commits or more.

    records: oldest first. A point is the median of one record, its bar the spread; the axis begins at 0. Raises
    ValueError where there is no such figure, or no such format.
    """
    from matplotlib.figure import Figure as Page

    groups: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        groups.setdefault(record.key, []).append(record)
    drawn = [group for group in groups.values() if len({record.commit for record in group}) > 1]
    if not drawn:
        raise ValueError("no figure of the history that was asked for was measured at two commits")
    rows = -(-len(drawn) // COLUMNS)
    page = Page(figsize=(COLUMNS * INCHES[0], rows * INCHES[1]), layout="constrained")
    for place, group in enumerate(drawn, 1):
        axes, first = page.add_subplot(rows, COLUMNS, place), group[0]
        places = range(len(group))
        axes.errorbar(
            places, [one.value for one in group], [one.spread / 2 for one in group], marker="o", markersize=3, capsize=2
        )
        axes.set_title(f"{first.machine}: {first.suite} {first.figure}", fontsize=7)
        axes.set_ylabel(first.unit, fontsize=7)
        axes.set_ylim(bottom=0)
        axes.set_xticks(places, [one.commit[:8] for one in group], rotation=90, fontsize=5)
        axes.tick_params(axis="y", labelsize=6)
    page.savefig(path)
    return len(drawn)


def draw_forecasts(pairs: Pairs, path: Path) -> None:
    """Write a page with a picture for each kind: a point is a case, between the lines it is off by less than 2."""
    from matplotlib.figure import Figure as Page

    page = Page(figsize=(4 * len(pairs), 4), layout="constrained")
    for place, (name, each) in enumerate(pairs.items(), 1):
        axes, (expected, taken) = page.add_subplot(1, len(pairs), place), zip(*each, strict=True)
        ends = min(expected + taken), max(expected + taken)
        axes.loglog(taken, expected, "o", markersize=3)
        for factor in (0.5, 1.0, 2.0):
            axes.plot(ends, [factor * end for end in ends], color="gray", linewidth=1.0 if factor == 1 else 0.5)
        axes.set(title=name, xlabel="seconds taken", ylabel="seconds expected")
    page.savefig(path)
