"""Owns Penstock as one of the systems compared: the same protocol as its peers.

Ready means that the graph file is written and opened; the edges are read into memory by the first
run of each program, which is not timed for anyone.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from penstock.engine.program.program import Program
from penstock.engine.programs import bfs, pagerank, sssp, wcc
from penstock.engine.session import Session
from penstock.engine.state.result import Result
from penstock.storage.convert.convert import convert
from penstock.storage.convert.sort.options import ConvertOptions
from penstock.storage.format.graph import Graph
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.open_source import open_source
from penstock.tools.peers import BFS, DAMPING, RANK, RANK_SWEEPS, SSSP, SWEEPS, TOLERANCE, WCC, Task, Values


class Penstock:
    """Penstock with a graph file in a folder, and enough memory to hold its edges."""

    name = "penstock"

    def __init__(self, folder: Path, host_memory: int) -> None:
        self._folder, self._host_memory = folder, host_memory
        self._sessions: list[Session] = []

    def load(self, text: Path, vertices: int) -> None:
        """Convert with both directions, and open."""
        self._vertices = vertices
        self._plain = self._session(text, "plain.h5", weighted=False)

    def load_weights(self, text: Path) -> None:
        """Convert the weighted list, too."""
        self._weighted = self._session(text, "weighted.h5", weighted=True)

    def _session(self, text: Path, name: str, *, weighted: bool) -> Session:
        options = ConvertOptions(
            direction="both",
            host_memory=self._host_memory,
            force=True,
        )
        reading = IngestOptions(host_memory=self._host_memory, weights=weighted)
        source = open_source([text], None, reading)
        source.known_vertices = self._vertices  # type: ignore[misc]  # a list of edges does not say
        convert(source, self._folder / name, options)
        session = Session(Graph.open(self._folder / name), host_memory=self._host_memory)
        self._sessions.append(session)
        return session

    def tasks(self, source: int) -> dict[str, Task]:
        """All of them."""

        def task(session: Session, make: Callable[[], Program], field: str) -> Task:
            return Task(lambda: session.run(make()), lambda result: _values(result, field))

        def ranks(tolerance: float, most: int) -> Task:
            return task(self._plain, lambda: pagerank.PageRank(DAMPING, tolerance, most), "rank")

        return {
            BFS: task(self._plain, lambda: bfs.BFS(source), "level"),
            SSSP: task(self._weighted, lambda: sssp.SSSP(source), "distance"),
            RANK_SWEEPS: ranks(0, SWEEPS),
            RANK: ranks(TOLERANCE, 1000),
            WCC: task(self._plain, wcc.WCC, "component"),
        }

    def close(self) -> None:
        """End the sessions."""
        for session in self._sessions:
            session.close()


def _values(result: Result, field: str) -> Values:
    values = result.fields[field]
    if field == "component":
        return values
    return np.where(result.reached(field), values.astype(np.float64), np.inf)
