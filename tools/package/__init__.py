"""Penstock: graph algorithms on graphs larger than GPU memory and larger than host memory, on one machine.

    import penstock
    penstock.run("pagerank", "web.h5").top(10)

Names are imported when they are first used: those of `penstock.engine`, whose page is engine/python.md. This folder is
the top package `penstock` (`pyproject.toml`, package-dir); its floors are packages of their own.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.engine import (
        LARGEST,
        VERTEX,
        Checkpoints,
        FeatureRows,
        Field,
        Global,
        Graph,
        NeighborSampler,
        Program,
        Result,
        Session,
        Start,
        append,
        compact,
        extract,
        from_edges,
        from_igraph,
        from_networkx,
        from_scipy,
        from_table,
        from_torch,
        remove,
        sample_neighbors,
        shortest_paths,
        similarity,
        walk,
    )
    from penstock.tools.python.typed_convert import convert
    from penstock.tools.python.typed_run import run

__version__ = "0.1.0"

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
    "__version__",
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
_SHOWING_PROGRESS = ("convert", "run")


def __dir__() -> list[str]:
    """Return the public names; modules inside are not listed."""
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "penstock.tools.python.calls" if name in _SHOWING_PROGRESS else "penstock.engine"
    return getattr(importlib.import_module(home), name)
