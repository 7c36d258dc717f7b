"""The picture of degrees: how many vertices have each degree, counted and in growing bins, and how many at least it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.tools.base.plots import COLOURS, OTHER, canvas, plain_axes

Counts = NDArray[np.int64]
BINS = 4
"""Bins between a degree and twice that degree."""
DIRECTION_COLOURS = {"out": COLOURS["filter"], "in": COLOURS["zero-copy"]}


def log_bins(counts: Counts) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean degree and vertices per degree of each bin that has any; vertices without edges are left out.

    counts: int64 (largest degree + 1,), how many vertices have each degree. Bins grow by the factor 2^(1/4), and hold
    whole degrees.
    """
    if len(counts) < 2:
        return np.empty(0), np.empty(0)
    steps = np.arange(1 + BINS * len(counts).bit_length())
    bounds = np.unique(np.ceil(2.0 ** (steps / BINS)).astype(np.int64))
    bounds = np.append(bounds[bounds < len(counts)], len(counts))
    vertices = np.add.reduceat(counts, bounds[:-1])
    ends = np.add.reduceat(counts * np.arange(len(counts)), bounds[:-1])
    some = vertices > 0
    return ends[some] / vertices[some], vertices[some] / np.diff(bounds)[some]


def at_least(counts: Counts) -> tuple[Counts, NDArray[np.float64]]:
    """Every degree above 0 that a vertex has, and the share of all vertices whose degree is that or larger."""
    degrees = np.flatnonzero(counts[1:]) + 1
    return degrees, np.cumsum(counts[::-1])[::-1][degrees] / max(1, int(counts.sum()))


def degree_figure(distributions: Mapping[str, Counts], title: str, *, directed: bool) -> Any:
    """Points and binned lines of each direction, and their complementary cumulative distributions; logarithmic axes."""
    figure = canvas(10.4, 4.4)
    panel, shares = figure.subplots(1, 2)
    for direction, counts in distributions.items():
        colour = DIRECTION_COLOURS.get(direction, OTHER)
        degrees = np.flatnonzero(counts[1:]) + 1
        panel.plot(degrees, counts[degrees], ".", color=colour, alpha=0.25, markersize=3, linewidth=0)
        zero = f", {int(counts[0]):,} without" if len(counts) and counts[0] else ""
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
