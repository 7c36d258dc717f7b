"""Owns how `penstock bench routes` is told: a table of lines for people, plain values for machines.

Refuses to measure and to print. Columns follow HyTGraph's: bytes moved over the edges' bytes (its Table VI), partitions
by route (its Figure 7; every iteration in the JSON, the whole run in the table).
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from penstock.storage.budget import format_bytes
from penstock.tools.output import table
from penstock.tools.route_trials import Outcome, Row

ABSENT = "-"


def lines(outcome: Outcome) -> list[str]:
    """The table of one case, with a title, what could not run and why, and how auto compares."""
    disk = any(trial.bytes_disk for row in outcome.rows for trial in row.trials)
    heads = ["configuration", "ms", "moved/edges", "of link", "iterations", *(["read/edges"] if disk else [])]
    ran = [row for row in outcome.rows if row.seconds is not None]
    shown = table([*heads, "partitions by route"], [[*_cells(outcome, row, disk), _shares(row)] for row in ran])
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


def _cells(outcome: Outcome, row: Row, disk: bool) -> list[str]:
    trial = row.typical
    assert trial is not None
    assert row.seconds is not None
    moved, share = outcome.moved(row), outcome.of_link(row)
    cells = [
        row.name,
        f"{row.seconds * 1e3:,.2f}",
        ABSENT if moved is None else f"{moved:.3f}",
        ABSENT if share is None else f"{share:.0%}",
        f"{trial.iterations:,.0f}",
    ]
    return [*cells, f"{trial.bytes_disk / max(1, outcome.edge_bytes):.3f}"] if disk else cells


def _shares(row: Row) -> str:
    trial = row.typical
    assert trial is not None
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
    return told


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
            "routes": trial.shares,
            "prediction": {route: asdict(found) for route, found in trial.prediction.items()},
            "trace": trial.trace,
        }
    return told
