"""The picture of degrees: how many vertices have each degree, counted and in growing bins, and how many at least it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.tools.base.plots import COLOURS, OTHER, canvas, plain_axes

Integers = NDArray[np.int64]
DegreeCounts = tuple[Integers, Integers]
"""Degrees that vertices have, ascending, and how many have each."""
BINS = 4
"""Bins between a degree and twice that degree."""
DIRECTION_COLOURS = {"out": COLOURS["filter"], "in": COLOURS["zero-copy"]}


def log_bins(found: DegreeCounts) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean degree and vertices per degree of each bin that has any; vertices without edges are left out.

    Bins grow by the factor 2^(1/4), and hold whole degrees.
    """
    degrees, counts = _with_edges(found)
    if not len(degrees):
        return np.empty(0), np.empty(0)
    end = int(degrees[-1]) + 1
    steps = np.arange(1 + BINS * end.bit_length())
    bounds = np.unique(np.ceil(2.0 ** (steps / BINS)).astype(np.int64))
    bounds = np.append(bounds[bounds < end], end)
    of_bin = np.searchsorted(bounds, degrees, side="right") - 1
    vertices, ends = (np.bincount(of_bin, part, len(bounds) - 1) for part in (counts, counts * degrees))
    some = vertices > 0
    return ends[some] / vertices[some], vertices[some] / np.diff(bounds)[some]


def at_least(found: DegreeCounts) -> tuple[Integers, NDArray[np.float64]]:
    """Every degree above 0 that a vertex has, and the share of all vertices whose degree is that or larger."""
    degrees, counts = _with_edges(found)
    return degrees, np.cumsum(counts[::-1])[::-1] / max(1, int(found[1].sum()))


def _with_edges(found: DegreeCounts) -> DegreeCounts:
    """The same without degree 0."""
    some = found[0] > 0
    return found[0][some], found[1][some]


def degree_figure(distributions: Mapping[str, DegreeCounts], title: str, *, directed: bool) -> Any:
    """Points and binned lines of each direction, and their complementary cumulative distributions; logarithmic axes."""
    figure = canvas(10.4, 4.4)
    panel, shares = figure.subplots(1, 2)
    for direction, counts in distributions.items():
        colour = DIRECTION_COLOURS.get(direction, OTHER)
        panel.plot(*_with_edges(counts), ".", color=colour, alpha=0.25, markersize=3, linewidth=0)
        without = int(counts[1].sum() - _with_edges(counts)[1].sum())
        zero = f", {without:,} without" if without else ""
        panel.plot(
            *log_bins(counts),
            "-",
            color=colour,
            linewidth=1.6,
            label=f"{direction}-degrees{zero}" if directed else f"degrees{zero}",
        )
        shares.plot(*at_least(counts), "-", color=colour, linewidth=1.6, drawstyle="steps-pre")
    for axes, what in (
        (panel, "vertices of that degree (line: mean of a bin)"),
        (shares, "share of vertices of at least that degree"),
    ):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("degree")
        axes.set_ylabel(what)
        plain_axes(axes)
    panel.set_title(title, loc="left", fontsize=10, fontweight="bold").set_parse_math(False)
    panel.legend(fontsize=8.5, frameon=False)
    return figure
