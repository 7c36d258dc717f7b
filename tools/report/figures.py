"""The pictures of `penstock report`: the stages of the job, where the time went, and the iterations on a common axis.

Thousands of iterations are averaged in groups; one iteration is as wide as the picture.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from textwrap import fill
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.budget import format_bytes
from penstock.tools.base.output import seconds
from penstock.tools.base.plots import AUTO, COLOURS, OTHER, PART, Floats, canvas, grouped, plain_axes, stack, starts_of
from penstock.tools.report.bottleneck import STAGES, per_second, percent
from penstock.tools.report.read_metrics import RunMetrics
from penstock.tools.run.account import STAGE_NAMES, Account

WIDTH = 11.0
STACKED = 160
"""Columns of stacked bars, at most."""
DRAWN = 600
"""Points of a curve, at most."""
MARKED = 40
"""Iterations up to which every one has a mark of its own."""
FEWEST = 4
"""Iterations for which there is always room, so that a single one is no wall."""
TALLEST = 5
"""Times the bar that nine tenths do not exceed, beyond which a bar is cut."""
DIRECTION = {"push": "#7A7A7A", "pull": "#B8B8B8"}
Panel = Callable[[Any, RunMetrics], None]


def pictures(run: RunMetrics, *, alone: bool) -> dict[str, Any]:
    """The figures of a run by name; alone: they say what they are of. Raises InputError without matplotlib."""
    account = run.account
    found = {} if account is None or not account.stages else {"stages": stage_bar(account, WIDTH)}
    found["time"] = _time(run)
    if run.iterations:
        found["iterations"] = _iterations(run)
    if alone:
        found["time"].suptitle(
            f"{run.title}\n{fill(run.verdict.sentence, 118)}", x=0.01, ha="left", fontsize=10, parse_math=False
        )
        for name in found.keys() - {"time"}:
            found[name].suptitle(run.title, x=0.01, ha="left", fontsize=10, parse_math=False)
    return found


def _time(run: RunMetrics) -> Any:
    """A bar for each stage: the share of the time in which it was at work, and what this machine's rates would take."""
    spent, verdict = run.spent, run.verdict
    stages = [stage for stage in STAGES if spent.busy.get(stage, 0.0) > 0]
    idle = _idle(run)
    figure = canvas(WIDTH, 2.0 + 0.42 * (len(stages) + 1))
    panel = figure.subplots()
    for place, stage in enumerate(stages):
        share = 100 * spent.share(stage)
        limits = stage == verdict.limit or (verdict.limit == "kernel" and stage == "vertices")
        panel.barh(place, 100, color="#F2F2F2", height=0.62, zorder=1)
        panel.barh(place, share, color=AUTO if limits else PART, height=0.62, zorder=2)
        ideal = spent.ideal.get(stage, 0.0)
        if ideal > 0 and spent.seconds > 0:
            at = min(100.0, 100 * ideal / spent.seconds)
            panel.plot([at, at], [place - 0.4, place + 0.4], color=COLOURS["zero-copy"], linewidth=2.4, zorder=3)
        panel.text(101, place, _told(run, stage), va="center", fontsize=9)
    panel.barh(len(stages), 100, color="#F2F2F2", height=0.62, zorder=1)
    panel.barh(len(stages), 100 * idle, color="#FFFFFF", edgecolor=PART, hatch="////", height=0.62, zorder=2)
    told = f"{percent(idle)}, {seconds(idle * spent.seconds)}" if idle > 0 else "never"
    panel.text(101, len(stages), told, va="center", fontsize=9)
    rest = "launches, vertices, waits" if run.on_gpu else "nothing at work (at least)"
    names = [*(STAGES[stage][0] for stage in stages), rest]
    panel.set_yticks(range(len(names)), names)
    panel.set_ylim(len(names) - 0.4, -0.6)
    panel.set_xlim(0, 100)
    panel.set_xlabel(f"% of the {seconds(spent.seconds)} that the iterations took; stages work at the same time")
    plain_axes(panel)
    panel.tick_params(axis="y", labelsize=9.5, length=0)
    title = "where the time went"
    if any(spent.ideal.get(stage, 0.0) > 0 for stage in stages):
        title += "  (orange: the same work at this machine's rates)"
    panel.set_title(title, loc="left", fontsize=11, fontweight="bold")
    return figure


def _idle(run: RunMetrics) -> float:
    """Share of the time in which certainly nothing was at work: what an iteration is longer than all stages' sum."""
    busy = sum((run.busy(stage) for stage in STAGES), np.zeros(len(run.iterations)))
    left = np.nansum(np.maximum(0.0, run.walked - busy))
    return float(left) / run.seconds if run.seconds > 0 else 0.0


def _told(run: RunMetrics, stage: str) -> str:
    """Share, seconds, bytes and rate of a stage."""
    spent = run.spent
    told = f"{percent(spent.share(stage))}, {seconds(spent.busy[stage])}"
    if moved := spent.moved.get(stage, 0):
        told += f", {format_bytes(moved)} at {per_second(moved / spent.busy[stage])}"
    if stage == "kernel" and spent.edges:
        told += f", {per_second(spent.edges / spent.busy[stage], 'edges')}"
    return told


def _iterations(run: RunMetrics) -> Any:
    """Panels that share the axis of iterations: frontier, seconds, routes, bytes."""
    panels: list[tuple[float, Panel]] = [(1.25, _frontier), (0.9, _durations)]
    if run.routes:
        panels.append((1.0, _routes))
    if _carried(run)[1].size:
        panels.append((1.0, _bytes))
    heights = [height for height, _ in panels]
    figure = canvas(WIDTH, 0.5 + 2.2 * sum(heights))
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": heights})[:, 0]
    for axis, (_, draw) in zip(axes, panels, strict=True):
        draw(axis, run)
        plain_axes(axis)
        axis.grid(axis="y", color="#E4E4E4", linewidth=0.6, zorder=0)
        axis.set_axisbelow(True)
    count = len(run.iterations)
    axes[-1].set_xlim(-0.5, max(FEWEST, count) - 0.5)
    if count < FEWEST:
        axes[-1].set_xticks(range(count))
    else:
        axes[-1].xaxis.get_major_locator().set_params(integer=True)
    first = run.iterations[0].iteration
    if first:  # the run went on from a checkpoint
        axes[-1].xaxis.set_major_formatter(lambda place, _: f"{place + first:.0f}")
    axes[-1].set_xlabel("iteration")
    return figure


def _frontier(panel: Any, run: RunMetrics) -> None:
    """Active vertices and edges, on a logarithmic axis: they differ by powers of ten."""
    graph = run.job.graph
    panel.set_yscale("log")
    for name, colour, told in (
        ("frontier_edges", COLOURS["filter"], "active edges"),
        ("frontier_vertices", COLOURS["compaction"], "active vertices"),
    ):
        places, values = _curve(run.column(name))
        marker = "o" if len(run.iterations) <= MARKED else None
        seen = np.where(values > 0, values, np.nan)
        panel.plot(places, seen, color=colour, linewidth=1.6, marker=marker, markersize=4, label=told, zorder=3)
    both = np.array([run.column("frontier_edges"), run.column("frontier_vertices")])
    lowest, highest = np.min(both[both > 0], initial=np.inf), max(float(np.nanmax(both)), graph.get("edges") or 1)
    panel.set_ylim(0.5 * min(lowest, highest), 4 * highest)
    if graph.get("edges"):
        panel.axhline(graph["edges"], color=COLOURS["filter"], linestyle=":", linewidth=1, zorder=2)
        style = {"va": "bottom", "fontsize": 8, "color": COLOURS["filter"]}
        panel.text(0.005, graph["edges"], "edges of the graph", transform=panel.get_yaxis_transform(), **style)
    panel.minorticks_off()
    _title(panel, "frontier: active edges and vertices", "number")
    _legend(panel)


def _curve(values: Floats) -> tuple[Floats, Floats]:
    """Places and values of a curve of at most DRAWN points."""
    drawn = grouped(values, DRAWN)
    starts = starts_of(len(values), len(drawn))
    return (starts[:-1] + starts[1:]) / 2, drawn


def _durations(panel: Any, run: RunMetrics) -> None:
    """Seconds of every iteration; pulls are lighter than pushes."""
    whole = run.column("seconds")
    columns = grouped(whole, STACKED)
    largest = min(float(columns.max()), TALLEST * float(np.quantile(columns, 0.9))) or 1e-6
    scale, unit = next(((s, u) for s, u in ((1e6, "µs"), (1e3, "ms")) if largest * s < 1000), (1.0, "s"))
    pulls = [iteration.direction == "pull" for iteration in run.iterations]
    directions = np.where(pulls, "pull", "push")
    seen = [name for name in DIRECTION if (directions == name).any()]
    parts = np.array([np.where(directions == name, whole * scale, 0.0) for name in seen])
    _stack(panel, seen, parts, DIRECTION)
    panel.set_ylim(0, 1.12 * largest * scale)
    starts = starts_of(len(whole), len(columns))
    for number, at in enumerate(np.flatnonzero(columns > 1.12 * largest)[:3]):
        style = {"va": "top", "fontsize": 8, "color": "black", "bbox": {"facecolor": "white", "edgecolor": PART}}
        height = 1.06 - 0.17 * number  # one below the other: neighbors would hide each other
        panel.text(starts[at + 1], height * largest * scale, f"\u2191 {seconds(float(columns[at]))}", **style)
    mean = "" if len(whole) <= STACKED else f" (means of up to {-(-len(whole) // STACKED)})"
    _title(panel, f"time of each iteration{mean}", unit)
    _legend(panel)


def _routes(panel: Any, run: RunMetrics) -> None:
    """Share of the partitions that each route brought."""
    counts = run.by_route("partitions")
    counts = np.where(counts.sum(axis=0) > 0, counts, run.by_route("tasks"))
    shares = 100 * counts / np.maximum(1.0, counts.sum(axis=0))
    _stack(panel, run.routes, shares, COLOURS)
    panel.set_ylim(0, 100)
    _title(panel, "partitions by route", "% of those wanted")
    _legend(panel)


def _carried(run: RunMetrics) -> tuple[list[str], Floats]:
    """Rows of bytes by what carried them: the link by route, and the disk; rows without a byte are left out."""
    names = list(run.routes)
    rows = [*run.by_route("bytes_link")] if run.linked else [*run.by_route("bytes_disk")]
    if run.windows:
        names, rows = [*names, "values"], [*rows, np.nan_to_num(run.column("value_bytes"))]
    kept = [(name, row) for name, row in zip(names, rows, strict=True) if row.sum()]
    values = np.array([row for _, row in kept], dtype=np.float64).reshape(len(kept), len(run.iterations))
    return [name for name, _ in kept], values


def _bytes(panel: Any, run: RunMetrics) -> None:
    """Bytes of every iteration: over the link by route, with the disk's as a line; without a link, the disk's."""
    names, values = _carried(run)
    disk = run.column("bytes_disk")
    largest = max(float(grouped(values, STACKED).sum(axis=0).max()), float(np.nanmax(disk)) if run.linked else 0.0)
    scale, unit = next((2.0**shift, u) for shift, u in _UNITS if largest >= 2.0**shift or shift == 0)
    _stack(panel, names, values / scale, COLOURS)
    if run.linked and np.nansum(disk):
        places, drawn = _curve(disk / scale)
        panel.plot(places, drawn, color="black", linewidth=1.6, label="from disk", zorder=4)
    total = format_bytes(values.sum())
    where = "over the link" if run.linked else "from disk" if not run.windows else "from disk, of values also to it,"
    each = "" if values.shape[1] <= STACKED else " an iteration"
    _title(panel, f"bytes {where} by route: {total} in all", f"{unit}{each}")
    _legend(panel)


_UNITS = ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB"), (0, "bytes"))


def _stack(panel: Any, names: list[str], rows: Floats, colours: dict[str, str]) -> None:
    """Bars on top of each other, as wide as the iterations that they stand for."""
    columns = grouped(rows, STACKED)
    starts = starts_of(rows.shape[1], columns.shape[1])
    stack(panel, names, columns, starts, colours=colours, line=0.4 if columns.shape[1] <= MARKED else 0.0)


def _title(panel: Any, title: str, unit: str) -> None:
    panel.set_title(title, loc="left", fontsize=11, fontweight="bold")
    panel.set_ylabel(unit)


def _legend(panel: Any) -> None:
    """Names to the right of the title."""
    style = {"ncols": 8, "fontsize": 8.5, "frameon": False, "borderaxespad": 0.1}
    for text in panel.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), **style).get_texts():
        text.set_parse_math(False)  # names of routes are the file's


STAGE_COLOURS = {
    "imports": "#C8C8C8", "opening": "#A8A8A8", "calibrating": "#8A8A8A", "compiling": "#D55E00", "kernels": "#E69F00",
    "index": "#F0E442", "page_locking": "#CC79A7", "loading": "#0072B2", "state": "#56B4E9", "iterations": "#009E73",
    "summary": "#8F6BB3", "writing": "#5B3A8C", "closing": "#6E5A4A", "other": "#E4E4E4",
}  # fmt: skip
NAMED = 0.06
"""Share of the bar from which a stage has room for its share."""


def stage_bar(account: Account, width: float) -> Any:
    """One bar as long as the wall time; its parts are the stages, at least one, in their usual order."""
    figure = canvas(width, 2.3)
    panel = figure.subplots()
    left = 0.0
    for stage, took in account.stages.items():
        label = f"{STAGE_NAMES.get(stage, stage).lstrip('_')} {seconds(took)}"  # matplotlib hides those with _ in front
        style: dict[str, Any] = {"height": 0.7, "edgecolor": "white", "linewidth": 0.6}
        panel.barh(0, took, left=left, color=STAGE_COLOURS.get(stage, OTHER), label=label, **style)
        if account.share(stage) >= NAMED:
            style = {"ha": "center", "va": "center", "fontsize": 8.5, "color": AUTO}
            panel.text(left + took / 2, 0, percent(account.share(stage)), **style)
        left += took
    panel.set_xlim(0, max(left, 1e-9))
    panel.set_yticks([])
    panel.set_xlabel("seconds; stages in the order in which a job comes to them first")
    plain_axes(panel)
    panel.set_title(f"the whole job: {seconds(account.wall_seconds)}", loc="left", fontsize=11, fontweight="bold")
    for text in figure.legend(loc="outside lower left", ncols=5, fontsize=8.5, frameon=False).get_texts():
        text.set_parse_math(False)  # names of stages are the file's
    return figure


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
