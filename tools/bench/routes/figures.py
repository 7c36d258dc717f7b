"""The picture of `penstock bench routes`: time, bytes over the link, and which route took the partitions by iteration.

As in HyTGraph's Table VI and Figure 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.tools.base.plots import (
    ALERT,
    AUTO,
    COLOURS,
    OTHER,
    PART,
    Floats,
    canvas,
    grouped,
    legend_line,
    legend_patch,
    plain_axes,
    save,
    stack,
    starts_of,
)
from penstock.tools.bench.routes.outcome import brought
from penstock.transfer.routes.registry import in_order

if TYPE_CHECKING:
    from penstock.tools.bench.routes.outcome import Outcome, Row

LONGEST = 3
"""Times the bar that three quarters do not exceed, beyond which a bar is cut."""
LONG = 80
"""Iterations beyond which bars would be hairlines: they are averaged in so many groups."""


def draw_routes(outcomes: Sequence[Outcome], title: str, path: Path, *, force: bool = False) -> None:
    """Draw one line of panels for each program: time, bytes over edge bytes, partitions by route and iteration.

    Raises InputError as `check` does, RunError when the disk is full.
    """
    heights = [0.9 + 0.28 * len(outcome.rows) for outcome in outcomes]
    height = 1.2 + sum(heights)
    figure = canvas(16, height)
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.12, rect=(0, 0.4 / height, 1, 1 - 0.8 / height))
    figure.text(0.008, 1 - 0.28 / height, title, fontsize=12, fontweight="bold")
    panels = figure.subplots(
        len(outcomes), 3, squeeze=False, gridspec_kw={"height_ratios": heights, "width_ratios": (1.15, 0.75, 1.3)}
    )
    for outcome, (left, middle, right) in zip(outcomes, panels, strict=True):
        _times(left, outcome)
        _bytes(middle, outcome)
        _iterations(right, outcome)
    _legend(figure, outcomes)
    save(figure, path, force=force)


def colour_of(row: Row) -> str:
    """A single route has its own colour, auto is dark, auto without one of its parts grey."""
    if row.configuration.single:
        return COLOURS.get(row.name, OTHER)
    return AUTO if row.name == "auto" else PART


def _times(panel: Any, outcome: Outcome) -> None:
    """Milliseconds as bars; the whiskers reach from the fastest to the slowest run."""
    rows = outcome.rows
    labels = []
    for row in rows:
        share = outcome.of_link(row)
        told = "" if share is None else f"  {share:.0%} of link"
        labels.append(_absent(row) if row.seconds is None else f"{_short(row.seconds * 1e3)} ms{told}")
    limit = _bars(panel, outcome, [None if row.seconds is None else row.seconds * 1e3 for row in rows], labels, 1.4)
    for place, row in enumerate(rows):
        if row.seconds is not None:
            spread = [trial.seconds * 1e3 for trial in row.trials]
            panel.plot([min(spread), min(max(spread), limit)], [place + 0.27] * 2, color=ALERT, linewidth=1.4)
    best, ratio = outcome.best_single, outcome.auto_over_best
    if best is not None and best.seconds:
        panel.axvline(best.seconds * 1e3, color=colour_of(best), linestyle="--", linewidth=1, zorder=0)
    panel.set_xlabel("milliseconds: median; thin red: fastest to slowest")
    panel.set_yticks(range(len(rows)), [row.name for row in rows], fontsize=8.5)
    for label, row in zip(panel.get_yticklabels(), rows, strict=True):
        label.set_fontweight("bold" if row.name == "auto" else "normal")
    told = "" if ratio is None or best is None else f": auto takes {ratio:.2f} x the best single route"
    panel.set_title(f"{outcome.case.name}{told}", loc="left", fontsize=10, fontweight="bold")


def _bytes(panel: Any, outcome: Outcome) -> None:
    """Bytes over the link, as multiples of the edges' bytes."""
    values = [outcome.moved(row) for row in outcome.rows]
    _bars(panel, outcome, values, ["" if value is None else _short(value) for value in values], 1.15)
    panel.set_yticks([])
    panel.set_xlabel("bytes over the link / bytes of all edges")
    panel.set_title("bytes moved", loc="left", fontsize=10)


def _short(value: float) -> str:
    """Three digits, but never an exponent for what is large."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _absent(row: Row) -> str:
    return "failed" if row.failed else "not run"


def _bars(panel: Any, outcome: Outcome, values: Sequence[float | None], labels: list[str], room: float) -> float:
    """Bars with a label each, `room` times as wide as the longest; return the width.

    A few bars that dwarf the others are cut, and carry their label inside.
    """
    known = sorted(value for value in values if value)
    longest = min(known[-1], LONGEST * known[3 * len(known) // 4]) if known else 1.0
    limit = room * longest
    for place, (row, value, label) in enumerate(zip(outcome.rows, values, labels, strict=True)):
        size = value or 0.0
        panel.barh(place, min(size, limit), color=colour_of(row), height=0.74, zorder=2)
        if size > limit:
            panel.text(0.985 * limit, place, f"{label}  \u00bb", ha="right", va="center", fontsize=8, color="white")
        else:
            style: dict[str, Any] = {"bbox": {"facecolor": "white", "edgecolor": "none", "pad": 0.6}}
            if value is None:
                style |= {"style": "italic", "color": ALERT if row.failed else PART}
            panel.text(size + 0.012 * limit, place, label, va="center", fontsize=8, zorder=3, **style)
    panel.set_xlim(0, limit)
    panel.set_ylim(len(values) - 0.5, -0.5)
    panel.grid(axis="x", color="#DDDDDD", linewidth=0.6, zorder=0)
    plain_axes(panel)
    return limit


def _iterations(panel: Any, outcome: Outcome) -> None:
    """Share of the partitions that each route brought, iteration by iteration, when auto decided."""
    panel.set_title("auto: partitions by route", loc="left", fontsize=10)
    auto = outcome.auto
    trial = None if auto is None else auto.typical
    if trial is None or not trial.trace:
        panel.text(0.5, 0.5, "auto was not run", ha="center", transform=panel.transAxes, style="italic", color=PART)
        panel.set_axis_off()
        return
    names, shares = route_shares(trial.trace)
    active = np.array([iteration["frontier_edges"] for iteration in trial.trace], dtype=np.float64)
    curve = grouped(100 * active / max(1.0, float(active.max())), LONG)
    starts = starts_of(len(active), len(curve))
    line = 0.4 if len(curve) < LONG / 2 else 0.0
    stack(panel, names, grouped(shares, LONG), starts, colours=COLOURS, line=line)
    for colour, width in (("white", 3.2), ("black", 1.4)):
        panel.step(starts, np.append(curve, curve[-1]), where="post", color=colour, linewidth=width)
    panel.set_xlim(starts[0], starts[-1])
    panel.set_ylim(0, 100)
    panel.xaxis.get_major_locator().set_params(integer=True)
    panel.set_xlabel("iteration")
    panel.set_ylabel("% of the partitions brought")
    plain_axes(panel)


def route_shares(trace: Sequence[dict[str, Any]]) -> tuple[list[str], Floats]:
    """Routes, and float64 (routes, iterations): percent of an iteration's partitions that each brought.

    An iteration that brought nothing has zeros.
    """
    counted = [brought(iteration) for iteration in trace]
    seen = {route for iteration in counted for route in iteration}
    names = in_order(seen)
    counts = np.array([[iteration.get(name, 0) for iteration in counted] for name in names], dtype=np.float64)
    counts = counts.reshape(len(names), len(trace))
    return names, 100 * counts / np.maximum(1, counts.sum(axis=0))


def _legend(figure: Any, outcomes: Sequence[Outcome]) -> None:
    """Routes that occur anywhere, auto, and what the lines mean."""
    seen = {row.name for outcome in outcomes for row in outcome.rows if row.configuration.single}
    seen |= {
        route for outcome in outcomes for row in outcome.rows if row.typical is not None for route in row.typical.shares
    }
    marks: list[Any] = [legend_patch(COLOURS.get(name, OTHER), name) for name in in_order(seen)]
    marks += [legend_patch(AUTO, "auto"), legend_patch(PART, "auto, one part changed")]
    marks.append(legend_line("active edges, % of the largest iteration", color="black", linewidth=1.3))
    marks.append(legend_line("best single route", color="#666666", linestyle="--", linewidth=1))
    figure.legend(handles=marks, loc="lower left", ncols=len(marks), fontsize=9, frameon=False, bbox_to_anchor=(0, 0))
