"""The programs that come with Penstock, by name."""

from __future__ import annotations

from penstock.engine.program import Program
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.sssp import SSSP
from penstock.engine.programs.wcc import WCC
from penstock.storage.errors import InputError

PROGRAMS: dict[str, type[Program]] = {"bfs": BFS, "sssp": SSSP, "pagerank": PageRank, "wcc": WCC}


def named(name: str) -> type[Program]:
    """The program of this name. Raises InputError with the names there are."""
    try:
        return PROGRAMS[name]
    except KeyError:
        raise InputError(
            f"there is no program {name!r}; choose one of {', '.join(sorted(PROGRAMS))}, or give your own as "
            "path/to/file.py:ClassName"
        ) from None
