"""What is said of a run: lines for a terminal, facts for machines, and one HTML file that holds its pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from penstock.storage.base.budget import format_bytes
from penstock.storage.tables.html_table import html_text
from penstock.tools.base.json_record import to_json
from penstock.tools.base.output import counted, pairs, rank_table, seconds, table
from penstock.tools.report.bottleneck import STAGES, per_second, percent
from penstock.tools.report.read_metrics import RunMetrics
from penstock.tools.run.account import STAGE_NAMES, Account

Rows = list[list[str]]
ITERATIONS = "Stages of the iterations"
"""The title of the one table that a page has in any case."""
_STYLE = """
body{font:15px/1.45 system-ui,sans-serif;color:#222;max-width:1080px;margin:2em auto;padding:0 1em}
h1{font-size:1.35em;margin:0 0 .2em}
h2{font-size:1.05em;margin:1.6em 0 .4em}
.how{color:#666}
.verdict{font-size:1.15em;background:#f4f4f4;border-left:5px solid #222;padding:.7em 1em;margin:1em 0}
table{border-collapse:collapse;margin:.5em 0}
td,th{padding:.15em .9em .15em 0;text-align:right;font-variant-numeric:tabular-nums}
td:first-child,th:first-child{text-align:left}
th{border-bottom:1px solid #bbb;font-weight:600}
svg{width:100%;height:auto}
section+section{border-top:1px solid #ddd;margin-top:2.5em;padding-top:1.5em}
"""


def lines(run: RunMetrics) -> list[str]:
    """A run for people, at a terminal."""
    told = [run.title, f"  {run.verdict.sentence}", ""]
    told += [f"  {line}" for line in pairs(_facts(run))]
    for heads, rows in _tables(run).values():
        if rows:
            told += ["", *(f"  {line}" for line in table(heads, rows))]
    return told


def _tables(run: RunMetrics) -> dict[str, tuple[list[str], Rows]]:
    """Heads and rows of the tables of a run, by their titles."""
    return {
        "Stages of the job": stage_table(run.account),
        "Ranks": rank_table(_ranks(run)),
        ITERATIONS: _stages(run),
        "Routes": _routes(run),
    }


def shared_lines(account: Account) -> list[str]:
    """What the programs of a job share, at a terminal."""
    return [f"  {line}" for line in table(*stage_table(account))]


def facts(run: RunMetrics) -> dict[str, Any]:
    """A run for machines."""
    spent = run.spent
    return {
        "program": run.job.program,
        "parameters": run.job.parameters,
        "graph": run.job.graph,
        "ended": run.ended,
        "limit": run.verdict.limit,
        "share": run.verdict.share,
        "sentence": run.verdict.sentence,
        "spent": asdict(spent),
        **({} if run.account is None else to_json(run.account)),
        "memory": run.memory,
        "ranks": _ranks(run),
        "routes": {
            route: {name: int(run.by_route(name)[at].sum()) for name in ("partitions", "edges", "bytes_link")}
            for at, route in enumerate(run.routes)
        },
    }


def page(runs: Sequence[tuple[RunMetrics, Mapping[str, str]]]) -> str:
    """One HTML page; each run comes with its pictures as SVG elements, by name."""
    title = html_text("; ".join(run.title for run, _ in runs))
    body = "\n".join(_section(run, drawn) for run, drawn in runs)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _section(run: RunMetrics, drawn: Mapping[str, str]) -> str:
    tables = [
        [f"<h2>{title}</h2>", _html(*one)] for title, one in _tables(run).items() if one[1] or title == ITERATIONS
    ]
    parts = [
        f"<h1>{html_text(run.title)}</h1>",
        f'<div class="how">{html_text(_how(run))}</div>',
        f'<div class="verdict">{html_text(run.verdict.sentence)}</div>',
        *drawn.values(),
        *(part for one in tables for part in one),
        "<h2>The job</h2>",
        _html(["", ""], [[name, str(value)] for name, value in _facts(run) if value is not None]),
    ]
    return "<section>\n" + "\n".join(parts) + "\n</section>"


def _ranks(run: RunMetrics) -> list[dict[str, Any]]:
    """What each rank did in all."""
    return [to_json(replace(one, by_iteration=None)) for one in run.ranks]


def _html(heads: Sequence[str], rows: Rows) -> str:
    top = "".join(f"<th>{html_text(head)}</th>" for head in heads)
    body = "".join("<tr>" + "".join(f"<td>{html_text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{f'<tr>{top}</tr>' if any(heads) else ''}{body}</table>"


def _how(run: RunMetrics) -> str:
    return f"{counted(len(run.iterations), 'iteration')} in {seconds(run.seconds)}, {run.ended}"


def _facts(run: RunMetrics) -> list[tuple[str, object]]:
    """Names and values; None for what is not known."""
    job, memory = run.job, run.memory
    graph, device, budget = job.graph, job.device, job.budget
    size = "" if not graph.get("bytes") else f", {format_bytes(graph['bytes'])} on disk"
    options = ", ".join(_option(name, value) for name, value in job.options.items())
    total = None if run.result is None else run.result.total_seconds
    moved = format_bytes(run.spent.moved["values"])
    return [
        ("run", _how(run)),
        ("with loading", None if total is None else seconds(total)),
        ("whole job", _longest(run.account)),
        ("graph", f"{graph.get('vertices', 0):,} vertices, {graph.get('edges', 0):,} edges{size}"),
        ("device", f"{device['name']}, {job.threads} threads" if not run.linked else device["name"]),
        ("machine", job.machine.get("processor")),
        ("ranks", f"{len(run.ranks)}; stages, routes and memory are those of rank 0" if run.ranks else None),
        ("whole process", _held(memory.get("process"), None)),
        ("host budget", format_bytes(host) if (host := budget.get("host")) else None),
        ("device memory", _held(memory.get("device"), budget.get("device")) if run.linked else None),
        ("edges", _kept(run)),
        ("windows", f"{run.windows:,} of vertices; {moved} of their values read and written" if run.windows else None),
        ("checkpoints", _checkpoints(run)),
        ("options", options or None),
        ("started", job.started),
    ]


def _longest(account: Account | None) -> str | None:
    """`5.24 s, longest: iterations, 61 %`; None where stages are not known."""
    if account is None or account.longest_stage is None:
        return None
    name = STAGE_NAMES.get(account.longest_stage, account.longest_stage)
    return f"{seconds(account.wall_seconds)}, longest: {name}, {percent(account.share(account.longest_stage))}"


def _checkpoints(run: RunMetrics) -> str | None:
    """`3 in 75 ms, 1.2 MiB each`; None where there are none."""
    sizes = [size for iteration in run.iterations if (size := iteration.checkpoint_bytes)]
    if not sizes:
        return None
    took = sum(iteration.checkpoint_seconds or 0.0 for iteration in run.iterations)
    return f"{len(sizes):,} in {seconds(took)}, {format_bytes(max(sizes))} at most"


def _option(name: str, value: object) -> str:
    """`host_memory 80.0 MiB`: sizes are told as such."""
    if isinstance(value, int) and name.endswith(("_memory", "_bytes")):
        return f"{name} {format_bytes(value)}"
    return f"{name} {value}"


def _held(held: int | None, budget: int | None) -> str | None:
    """`258.7 MiB at most; budget 14.0 GiB`; an emulated device has no end."""
    if held is None:
        return None
    limit = "" if budget is None or budget >= 1 << 60 else f"; budget {format_bytes(budget)}"
    return f"{format_bytes(held)} at most{limit}"


def _kept(run: RunMetrics) -> str | None:
    """How many bytes of edges have room where."""
    memory = run.memory
    if "edges" not in memory:
        return None
    places = [("host memory", memory["edges_host"])]
    if run.linked:
        places.append(("device memory", memory["edges_device"]))
    told = ", ".join(f"{format_bytes(size)} stay in {where}" for where, size in places)
    return f"{format_bytes(memory['edges'])} read, of which {told}"


def _stages(run: RunMetrics) -> tuple[list[str], Rows]:
    spent = run.spent
    rows = []
    for stage, (name, _) in STAGES.items():
        busy = spent.busy.get(stage, 0.0)
        if busy <= 0:
            continue
        moved, share = spent.moved.get(stage, 0), spent.of_rate(stage)
        rate = per_second(moved / busy) if moved else ""
        if stage == "kernel" and spent.edges:
            rate = per_second(spent.edges / busy, "edges")
        told = [seconds(busy), percent(spent.share(stage)), format_bytes(moved) if moved else "", rate]
        rows.append([name, *told, "" if share is None else percent(share)])
    return ["in the iterations", "at work", "of the time", "moved", "rate", "of this machine's"], rows


def stage_table(account: Account | None) -> tuple[list[str], Rows]:
    """Heads and rows of the stages of a job that took any time; none where they are not known."""
    if account is None:
        return [], []
    rows = []
    for stage, took in account.stages.items():
        if took <= 0:
            continue
        moved, beside = account.stage_bytes.get(stage, 0), account.stages_beside.get(stage, 0.0)
        rows.append(
            [
                STAGE_NAMES.get(stage, stage),
                seconds(took),
                percent(account.share(stage)),
                format_bytes(moved) if moved else "",
                per_second(moved / took) if moved else "",
                seconds(beside) if beside > 0 else "",
            ]
        )
    rows.append(["wall time", seconds(account.wall_seconds), "", "", "", ""])
    return ["stage of the job", "took", "of the wall time", "moved", "rate", "other threads"], rows


def _routes(run: RunMetrics) -> tuple[list[str], Rows]:
    names = ("bytes_link", "bytes_unpacked", "bytes_disk")
    sums = {name: run.by_route(name).sum(axis=1) for name in ("partitions", "edges", *names)}
    rows = []
    for at, route in enumerate(run.routes):
        moved = [float(sums[name][at]) for name in names]
        counts = f"{sums['partitions'][at]:,.0f}", f"{sums['edges'][at]:,.0f}"
        rows.append([route, *counts, *(format_bytes(size) if size else "" for size in moved)])
    return ["route", "partitions", "active edges", "over the link", "unpacked to", "from disk"], rows
