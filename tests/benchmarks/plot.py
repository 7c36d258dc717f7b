"""Draws the history: for each figure of a machine one small picture, its medians and spreads over commits, by date."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.history import Record

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
