"""Every program whose values of vertices come by windows answers what it does with all in memory, wherever it runs.

One product of programs, places, windows, directions, graphs and files. All values of the other programs are in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import cache

import pytest
from penstock.engine import Graph
from penstock.engine.planning.requirements import has_value_pages, wants_rows_in_order
from penstock.engine.programs.table import PROGRAMS
from penstock.storage.checkpoint.state_pages import Unit
from support.covering import covering
from support.paged_graphs import answer, assert_equal, forgotten, no_edges_kept
from support.paged_places import PLACES
from support.paged_programs import ALIKE, ALL
from support.program_cases import Fields

__all__ = ["forgotten"]
pytestmark = pytest.mark.usefixtures("unfused")

WHOLE = "articulation", "bridges", "cdlp", "lcc", "leiden", "louvain", "msf", "triangles"
"""Programs on whole rows, and those that join trees between sweeps."""
Graphs = Callable[[str, int, bool], Graph]
Answers = Callable[[str, str, bool], Fields]


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Graphs:
    """By place, windows in the file, and whether it is directed."""
    folder = tmp_path_factory.mktemp("windows")
    return cache(
        lambda place, count, directed: PLACES[place].graph(
            folder / f"{PLACES[place].page}-{count}-{directed}.h5", count, directed=directed
        )
    )


@pytest.fixture(scope="module")
def in_memory(graphs: Graphs) -> Answers:
    """What programs answer on the cores with all values in memory, by name, place and graph; each once."""
    return cache(lambda name, place, directed: answer(graphs(place, 1, directed), ALL[name](), threads=1))


@pytest.mark.filterwarnings("ignore:overflow encountered in scalar add")  # of the simulator, in 32 bits for 64
@covering(
    "name, place, count, way, directed, cut",
    sorted(ALL), PLACES, (1, 2, 5), ("auto", "push", "pull"), (True, False), (True, False), rare=ALIKE,
    where=lambda _, place, count, way, directed, cut: count > 1 if cut else place != "device" or count == 1,
)  # fmt: skip
def test_answers_are_those_of_all_values_in_memory(
    name: str, place: str, count: int, way: str, directed: bool, cut: bool, graphs: Graphs, in_memory: Answers,
    forgotten: list[Unit],
) -> None:  # fmt: skip
    """cut: whether the file has these windows, and no edges are kept; else some are, and windows are cut on the way."""
    there, size = PLACES[place], "device" if place == "device" else "cores"
    with there.pages():
        graph, wanted = graphs(size, count if cut else 1, directed), in_memory(name, size, directed)
        with no_edges_kept() if cut and place != "device" else nullcontext():
            for found in there.run(ALL[name], graph, count, kept=not cut, direction=way):
                assert_equal(found, wanted)
    assert forgotten or count < 5


def test_every_program_is_in_the_product_or_has_all_values_in_memory(graphs: Graphs) -> None:
    """The least budget that its refusal names is then that of all values: `resources/test_least_budget.py`."""
    assert sorted(PROGRAMS.keys() - {name.partition(" ")[0] for name in ALL}) == sorted(WHOLE)
    graph = graphs("cores", 1, False)
    for name in WHOLE:
        program = PROGRAMS[name]()
        assert not (has_value_pages(program) and wants_rows_in_order(graph, program, {"push": 0, "pull": 0}))
