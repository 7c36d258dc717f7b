"""Calls whose types .ci/types checks: what mypy must take, and what it must refuse (an ignore too many is an error)."""

from __future__ import annotations

from pathlib import Path

import penstock
from penstock.engine.programs.bfs import BFS


def taken(graph: penstock.Graph) -> penstock.Result:
    """Options of runs and of programs; an instance, a class."""
    penstock.run("bfs", "web.h5", source="ann", cutoff=3, host_memory="1GiB", progress=True)
    penstock.run("pagerank", graph, personalization={7: 1.0}, alpha=0.9, mode="sync", progress=lambda now: None)
    penstock.run(BFS, graph, source=[1, 2])
    return penstock.run(BFS(source=3), graph, threads=2)


def converted() -> penstock.Graph:
    """Options of conversions."""
    penstock.convert(["a.csv", Path("b.csv")], "g.h5", columns=(0, "to"), format="csv", dedupe="sum", stripe="/ssd")
    return penstock.convert("a.csv", "g.h5", vertices=Path("v.csv"), host_memory="1GiB", progress=lambda now: None)


def refused(graph: penstock.Graph) -> None:
    """What would be an InputError."""
    penstock.run("bfs", graph, sorce=3)  # type: ignore[call-overload]
    penstock.run("bfs", graph)  # type: ignore[call-overload]
    penstock.run("wcc", graph, source=3)  # type: ignore[call-overload]
    penstock.run("pagerank", graph, alpha="half")  # type: ignore[call-overload]
    penstock.run("pagerank", graph, mode="quick")  # type: ignore[call-overload]
    penstock.run("page_rank", graph)  # type: ignore[call-overload]
    penstock.run(BFS(source=3), graph, source=4)  # type: ignore[call-overload]
    penstock.convert("a.csv", "g.h5", layot="list")  # type: ignore[call-arg]
    penstock.convert("a.csv", "g.h5", direction="in")  # type: ignore[arg-type]
    penstock.convert("a.csv", "g.h5", json=True)  # type: ignore[call-arg]
    penstock.run("wcc", graph).write("a.csv", csv_saf=True)  # type: ignore[call-arg]
    penstock.run("bfs", graph, source=3, combine=1)  # type: ignore[call-overload]
    penstock.run("bfs", graph, source=3, tuning={"combine": "four"})  # type: ignore[call-overload]
