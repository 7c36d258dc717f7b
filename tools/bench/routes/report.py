"""What `penstock bench routes` prints: a table of lines for people, plain values for machines.

Columns follow HyTGraph's: bytes moved over the edges' bytes (its Table VI), partitions
by route (its Figure 7; every iteration in the JSON, the whole run in the table).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from penstock.storage.base.budget import format_bytes
from penstock.tools.base.output import table
from penstock.tools.bench.routes.matrix import HYBRID
from penstock.tools.bench.routes.outcome import Outcome, Row, Trial
from penstock.transfer.routes import cel

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
        found.append(("passes", lambda row: _times(outcome.passes(row))))
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
            "passes": outcome.passes(row),
            "followed_over_edges": outcome.followed(row),
            "bytes_link_by_route": trial.link_by_route,
            "routes": trial.shares,
            "prediction": {route: asdict(found) for route, found in trial.prediction.items()},
            "trace": trial.trace,
        }
    return told
