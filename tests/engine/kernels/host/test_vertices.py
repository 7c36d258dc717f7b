"""Arrays that an author's functions make are freed: most of the kernels' functions count no references."""

from __future__ import annotations

import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys
from penstock.engine import run
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.collaborative import CollaborativeFiltering
from support.graphs import in_memory, shape


def held() -> tuple[int, int]:
    """Blocks of memory, and arrays, that compiled code has made and not freed."""
    stats = rtsys.get_allocation_stats()
    return stats.alloc - stats.free, stats.mi_alloc - stats.mi_free


@pytest.mark.parametrize(("name", "direction"), [("bfs", "push"), ("bfs", "pull"), ("vectors", "pull")])
def test_nothing_is_held_after_a_run(name: str, direction: str) -> None:
    graph = in_memory(shape("skewed", weights="uint8"))
    _nrt_python.memsys_enable_stats()

    def once() -> tuple[int, int]:
        program = BFS(0) if name == "bfs" else CollaborativeFiltering(max_iter=3)
        result = run(program, graph, device="cpu", direction=direction, threads=1)
        assert all(np.isfinite(values).all() for values in result.fields.values())
        return held()

    first = once()
    assert once() == first
