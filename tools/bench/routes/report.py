"""What `penstock bench routes` prints and draws: a table for people, plain values for machines, a picture.

Columns follow HyTGraph's: bytes moved over the edges' bytes (its Table VI), partitions
by route (its Figure 7, which the picture shows by iteration; every iteration in the JSON, the whole run in the table).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.storage.base.budget import format_bytes
from penstock.tools.base.output import table
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
from penstock.tools.bench.routes.matrix import HYBRID
from penstock.tools.bench.routes.trials import Outcome, Row, Trial, brought
from penstock.transfer.routes import cel
from penstock.transfer.routes.registry import in_order

if TYPE_CHECKING:
    from penstock.tools.bench.routes.trials import Outcome, Row

ABSENT = "-"


def lines(outcome: Outcome) -> list[str]:
    """The table of one case, with a title, what could not run and why, and how auto and what was added compare."""
    ran = [row for row in outcome.rows if row.seconds is not None]
    if not ran:
        return [title(outcome), *_told(outcome)]
    columns = [*_columns(outcome, ran), ("partitions by route", _shares)]
    shown = table([head for head, _ in columns], [[cell(row) for _, cell in columns] for row in ran])
    width = shown[1].rindex(" ") + 1  # the last column reads better from the left
    head, rule, *body = [line[:width] + line[width:].lstrip() for line in shown]
    return [title(outcome), head, rule, *body, *_told(outcome)]


def title(outcome: Outcome) -> str:
    """Program, sources, size of the edges, and how much of them a device may hold."""
    case = outcome.case
    text = case.name
    if case.sources:
        text += f" from {', '.join(map(str, case.sources))} ({outcome.reached:.0%} of the vertices reached)"
    text += f", {format_bytes(outcome.edge_bytes)} of edges"
    if outcome.edge_memory is not None:
        share = f", {outcome.edge_memory / outcome.edge_bytes:.0%}" if outcome.edge_bytes else ""
        text += f", {format_bytes(outcome.edge_memory)}{share} on the device"
    return text


def _columns(outcome: Outcome, ran: list[Row]) -> list[tuple[str, Callable[[Row], str]]]:
    """Heads, and what each column says of a row that ran: the disk's and those of CEL only where there is any."""
    edges = max(1, outcome.edge_bytes)
    found: list[tuple[str, Callable[[Row], str]]] = [
        ("configuration", lambda row: row.name),
        ("ms", lambda row: f"{(row.seconds or 0.0) * 1e3:,.2f}"),
        ("moved/edges", lambda row: _times(outcome.moved(row))),
        ("of link", lambda row: ABSENT if (share := outcome.of_link(row)) is None else f"{share:.0%}"),
        ("iterations", lambda row: f"{_typical(row).iterations:,.0f}"),
    ]
    if any(row.name == cel.name for row in ran):
        found.append(("passes", lambda row: _times(outcome.brought_by(row, "filter"))))
        found.append(("followed", lambda row: _times(outcome.followed(row))))
    if any(trial.bytes_disk for row in ran for trial in row.trials):
        found.append(("read/edges", lambda row: _times(_typical(row).bytes_disk / edges)))
    return found


def _typical(row: Row) -> Trial:
    assert row.typical is not None
    return row.typical


def _times(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.3f}"


def _shares(row: Row) -> str:
    trial = _typical(row)
    parts = [f"{route} {share:.0%}" for route, share in sorted(trial.shares.items(), key=lambda item: -item[1])]
    return ", ".join(parts) or ABSENT


def _told(outcome: Outcome) -> list[str]:
    """What the table cannot hold: rows without figures, and auto against the best single route."""
    told = [
        f"{row.name.strip()}: {'FAILED: ' if row.failed else 'not run: '}{row.problem}"
        for row in outcome.rows
        if row.problem is not None
    ]
    ratio, best = outcome.auto_over_best, outcome.best_single
    if ratio is not None and best is not None:
        told.append(f"auto takes {ratio:.2f} x the best single route ({best.name})")
    told += [text for row in outcome.rows if row.name == cel.name and (text := _against_filter(outcome, row))]
    if outcome.steps:
        steps = ", ".join(f"{name} {times:.2f}" for name, times in outcome.steps.items())
        told.append(f"times as fast as {HYBRID}: {steps}")
    return told


def _against_filter(outcome: Outcome, row: Row) -> str | None:
    """What following saves of the route that its carriers go by, and what it costs."""
    other = next((one for one in outcome.rows if one.name == "filter"), None)
    if row.seconds is None or other is None or not other.seconds:
        return None
    here, there = _typical(row), _typical(other)
    return (
        f"{row.name} takes {here.iterations / max(1, there.iterations):.2f} x the iterations of filter, "
        f"{here.bytes_link / max(1, there.bytes_link):.2f} x its bytes, {row.seconds / other.seconds:.2f} x its time"
    )


def facts(outcome: Outcome) -> dict[str, Any]:
    """The same, and every iteration, as plain values; seconds, bytes, shares between 0 and 1."""
    best = outcome.best_single
    return {
        "program": outcome.case.name,
        "sources": outcome.case.sources,
        "reached": outcome.reached,
        "edge_bytes": outcome.edge_bytes,
        "device_edge_memory": outcome.edge_memory,
        "best_single": None if best is None else best.name,
        "auto_over_best_single": outcome.auto_over_best,
        "times_as_fast_as_hybrid": outcome.steps,
        "rows": [_row_facts(outcome, row) for row in outcome.rows],
    }


def _row_facts(outcome: Outcome, row: Row) -> dict[str, Any]:
    trial = row.typical
    told: dict[str, Any] = {
        "name": row.name.strip(),
        "options": dict(row.configuration.options),
        "state": "failed" if row.failed else "not run" if trial is None else "ran",
        "problem": row.problem,
    }
    if trial is not None:
        told |= {
            "median_seconds": row.seconds,
            "seconds": [one.seconds for one in row.trials],
            "bytes_link": trial.bytes_link,
            "bytes_disk": trial.bytes_disk,
            "moved_over_edges": outcome.moved(row),
            "share_of_link": outcome.of_link(row),
            "iterations": trial.iterations,
            "edges_walked": trial.edges,
            "passes": outcome.brought_by(row, "filter"),
            "followed_over_edges": outcome.followed(row),
            "bytes_link_by_route": trial.link_by_route,
            "routes": trial.shares,
            "prediction": {route: asdict(found) for route, found in trial.prediction.items()},
            "trace": trial.trace,
        }
    return told


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
        _draw_times(left, outcome)
        _bytes(middle, outcome)
        _iterations(right, outcome)
    _legend(figure, outcomes)
    save(figure, path, force=force)


def colour_of(row: Row) -> str:
    """A single route has its own colour, auto is dark, auto without one of its parts grey."""
    if row.configuration.single:
        return COLOURS.get(row.name, OTHER)
    return AUTO if row.name == "auto" else PART


def _draw_times(panel: Any, outcome: Outcome) -> None:
    """Milliseconds as bars; the whiskers reach from the fastest to the slowest run."""
    rows = outcome.rows
    labels = []
    for row in rows:
        share = outcome.of_link(row)
        told = "" if share is None else f"  {share:.0%} of link"
        absent = "failed" if row.failed else "not run"
        labels.append(absent if row.seconds is None else f"{_short(row.seconds * 1e3)} ms{told}")
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
