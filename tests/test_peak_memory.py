"""The budget is a ceiling: what a run takes at its peak, summary and output included, at the least budget it accepts.

Every program that comes with Penstock on a star, and some on many vertices without edges: there the arrays of a
program's own functions, of summaries and of tables would be large, and edges are few.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.peak_memory import ARGUMENTS, MIB, SMALL_CHANGE, graphs, peaks

VERTICES = 2_400_000
"""So many that an array of four bytes for each is more than `SMALL_CHANGE`."""
FEWER = 400_000
BY_GROUP = ("wcc", "scc", "cdlp", "louvain", "leiden", "coloring", "mis", "msf", "bridges", "coreness")
"""Programs whose own functions and tables grow with the groups that they find: without edges, as many as vertices.

All others touch no more of vertices without edges than of the star's, which has as many.
"""
WIDE = ("cf",)
"""Programs of so many bytes a vertex that fewer vertices will do."""
WASTEFUL = """
import numpy as np
from penstock.engine.programs.wcc import WCC


class Wasteful(WCC):
    '''WCC that sorts copies of its answer.'''

    def finish(self, graph, state):
        found = super().finish(graph, state)
        np.unique(np.repeat(found["component"], 4).astype(np.int64))
        return found
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("peaks")


@pytest.mark.parametrize("shape", ["isolated", "star"])
def test_every_program_stays_within_its_least_budget(shape: str, folder: Path) -> None:
    most = [name for name in ARGUMENTS if name not in WIDE and (shape == "star" or name in BY_GROUP)]
    found = peaks(*graphs(shape, VERTICES, folder), most, str(folder / "answer.parquet"))
    found += peaks(*graphs(shape, FEWER, folder), WIDE, str(folder / "answer.parquet"))
    assert [peak.program for peak in found] == [*most, *WIDE]
    beyond = {peak.program: (peak.budget // MIB, peak.growth / MIB) for peak in found if peak.beyond}
    assert not beyond, f"least budget and growth in MiB: {beyond}"


def test_a_program_that_takes_more_is_found(folder: Path) -> None:
    source = folder / "wasteful.py"
    source.write_text(WASTEFUL)
    (found,) = peaks(*graphs("isolated", VERTICES, folder), [f"{source}:Wasteful"], str(folder / "answer.npy"))
    assert found.beyond
    assert found.growth > found.budget + 8 * VERTICES > found.budget + SMALL_CHANGE
