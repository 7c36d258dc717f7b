"""The engine decides and computes; `run(program, graph, **options)` is its entry point.

Names are imported when first used, so that opening a graph does not load a compiler.

Run a program: `run`, `Session` (several programs on one graph), `Result`, `Checkpoints`.
Random walks: `walk` (corpora for DeepWalk and node2vec), `sample_neighbors`, `NeighborSampler` (batches for GNNs).
Train: `FeatureRows` (features on disk), `pyg_stores` (stores of PyTorch Geometric, which `import *` does not need).
Compare vertices by their neighbors: `similarity`. All shortest paths, or the k shortest: `shortest_paths`.
Write a program: `Program`, `Field`, `Global`, `Start`, `VERTEX`, `LARGEST` (engine/writing_programs.md).
Take a part of a graph: `extract`.
Make a graph: `Graph.open`, `convert` (files), `from_edges`, `from_table`, `from_scipy`, `from_networkx`, `from_igraph`,
`from_torch`.
Change a graph file: `append`, `remove`, `compact`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.engine.api import run
    from penstock.engine.checkpoint.checkpoint import Checkpoints
    from penstock.engine.paths_between import shortest_paths
    from penstock.engine.program.program import LARGEST, VERTEX, Field, Global, Program, Start
    from penstock.engine.queries.neighbors import NeighborSampler, sample_neighbors
    from penstock.engine.queries.pyg import pyg_stores as pyg_stores
    from penstock.engine.queries.similarity import similarity
    from penstock.engine.queries.walks import walk
    from penstock.engine.session import Session
    from penstock.engine.state.result import Result
    from penstock.engine.subgraph import extract
    from penstock.storage.convert.convert_files import append, compact, convert, remove
    from penstock.storage.convert.from_arrays import from_edges, from_scipy, from_table
    from penstock.storage.convert.from_libraries import from_igraph, from_networkx, from_torch
    from penstock.storage.format.graph import Graph
    from penstock.storage.read.feature_rows import FeatureRows

_HOMES = {
    "Checkpoints": "penstock.engine.checkpoint.checkpoint",
    "FeatureRows": "penstock.storage.read.feature_rows",
    "Field": "penstock.engine.program.program",
    "Global": "penstock.engine.program.program",
    "Graph": "penstock.storage.format.graph",
    "LARGEST": "penstock.engine.program.program",
    "NeighborSampler": "penstock.engine.queries.neighbors",
    "Program": "penstock.engine.program.program",
    "Result": "penstock.engine.state.result",
    "Session": "penstock.engine.session",
    "Start": "penstock.engine.program.program",
    "VERTEX": "penstock.engine.program.program",
    "append": "penstock.storage.convert.convert_files",
    "compact": "penstock.storage.convert.convert_files",
    "convert": "penstock.storage.convert.convert_files",
    "extract": "penstock.engine.subgraph",
    "from_edges": "penstock.storage.convert.from_arrays",
    "from_igraph": "penstock.storage.convert.from_libraries",
    "from_networkx": "penstock.storage.convert.from_libraries",
    "from_scipy": "penstock.storage.convert.from_arrays",
    "from_table": "penstock.storage.convert.from_arrays",
    "from_torch": "penstock.storage.convert.from_libraries",
    "pyg_stores": "penstock.engine.queries.pyg",
    "remove": "penstock.storage.convert.convert_files",
    "run": "penstock.engine.api",
    "sample_neighbors": "penstock.engine.queries.neighbors",
    "shortest_paths": "penstock.engine.paths_between",
    "similarity": "penstock.engine.queries.similarity",
    "walk": "penstock.engine.queries.walks",
}

__all__ = [
    "LARGEST",
    "VERTEX",
    "Checkpoints",
    "FeatureRows",
    "Field",
    "Global",
    "Graph",
    "NeighborSampler",
    "Program",
    "Result",
    "Session",
    "Start",
    "append",
    "compact",
    "convert",
    "extract",
    "from_edges",
    "from_igraph",
    "from_networkx",
    "from_scipy",
    "from_table",
    "from_torch",
    "remove",
    "run",
    "sample_neighbors",
    "shortest_paths",
    "similarity",
    "walk",
]


def __dir__() -> list[str]:
    """Return the public names; modules inside are not listed."""
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)
