"""What `penstock bench routes` compares, and when two answers agree.

A configuration is a name and the options of a session. Each single route comes first, under the names that
`transfer/routes/registry.py` knows, then `auto` with each cost model and without one of its parts at a time; `ablation`
adds HyTGraph's own ladder (its Figure 8), and goes on with our steps until `auto` is reached. What cannot differ on a
device, or cannot run, is kept with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.program import LARGEST, VERTEX, Field, Program, Start
from penstock.engine.program.vertex_ids import internal_ids, vertex_column
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.reachability import Reachability
from penstock.engine.programs.sssp import SSSP
from penstock.engine.programs.wcc import WCC
from penstock.engine.programs.widest import WidestPath
from penstock.engine.resources.config import Tuning
from penstock.storage.base.errors import InputError
from penstock.storage.format.graph import Graph
from penstock.transfer.routes import cel
from penstock.transfer.routes.registry import ROUTES

if TYPE_CHECKING:
    from penstock.engine.state.result import Result

# As WolfGraph and HyTGraph, from which CEL comes, have BFS and components: by asynchronous pushes. Ours do less (`bfs`
# pulls and leaves early, `wcc` links trees) and so leave nothing for rows that follow a carrier.


class Levels(Program):
    """Edges from `source` (original id), by relaxing: shortest paths where every edge counts one."""

    level = Field(np.uint32, fill=LARGEST, unreached=LARGEST)
    combine = "min"
    self_combining = True

    def __init__(self, source: int) -> None:
        self.source = source

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """The source is at level 0."""
        first = internal_ids(graph, self.source)
        state["level"][first] = 0
        return Start(active=first)

    def edge(level):  # type: ignore[no-untyped-def]
        """Travels along an edge: one level more."""
        return level + 1  # type: ignore[operator]


class Labels(Program):
    """The smallest internal id that leads to a vertex, its own included: a component's, in an undirected graph."""

    label = Field(VERTEX)
    combine = "min"
    self_combining = True
    starts_anywhere = True

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Every vertex has its own label, and sends it."""
        label = state["label"]
        label[:] = np.arange(graph.vertices, dtype=label.dtype, like=label)
        return Start(everything=True)

    def edge(label):  # type: ignore[no-untyped-def]
        """Travels along an edge: the label."""
        return label


PROGRAMS = ("bfs", "sssp", "pagerank", "wcc")
RESIDUAL_TOLERANCE = 0.01
AUTO = "auto"
FROM_A_SOURCE: Mapping[str, Callable[[int], Program]] = {
    "bfs": BFS, "sssp": SSSP, "levels": Levels, "reachability": Reachability, "widest": WidestPath,
}  # fmt: skip
EVERYWHERE: Mapping[str, Callable[[], Program]] = {"wcc": WCC, "labels": Labels}
HYBRID = "HyTGraph hybrid"
BARE: Mapping[str, Any] = {
    "model": "published",
    "combine": 1,
    "priority": False,
    "residency": "none",
    "local_rounds": 0,
}
"""HyTGraph's hybrid alone: its model and routes, every partition by itself, nothing kept."""


@dataclass(frozen=True)
class Configuration:
    """One way to bring the edges: `options` of a session; `unable`: why it cannot run here, or would change nothing."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    unable: str | None = None

    @property
    def single(self) -> bool:
        """Whether it forces one route."""
        return "route" in self.options


@dataclass(frozen=True)
class Case:
    """A program to compare: one run for each maker.

    sources: original ids, empty where the program has none. options: of every session. apart: how far two answers may
    be apart in L1, None for the program's own tolerance.
    """

    name: str
    makers: Sequence[Callable[[], Program]]
    sources: tuple[int, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    apart: float | None = None

    @property
    def asynchronous(self) -> bool:
        """Whether updates may be seen at once, so that a loaded partition can be worked on again."""
        program = self.makers[0]()
        return bool(program.self_combining or self.options.get("mode") == "async") and program.combine != "union"

    def edge_bytes(self, graph: Graph) -> int:
        """Bytes of the graph's edges as this program reads them, each stored edge once."""
        weighted = self.makers[0]().needs_weights and graph.weight_dtype is not None
        weight = graph.weight_dtype.itemsize if weighted and graph.weight_dtype else 0
        return graph.edges * (graph.vertex_dtype.itemsize + weight)


def case_of(name: str, sources: Sequence[int], sweeps: int) -> Case:
    """The case of a program's name; what has a source runs once from each, PageRank runs exactly `sweeps` sweeps."""
    if name in FROM_A_SOURCE:
        made = FROM_A_SOURCE[name]
        return Case(name, [lambda s=s: made(s) for s in sources], tuple(sources))  # type: ignore[misc]
    if name in EVERYWHERE:
        return Case(name, [EVERYWHERE[name]])
    if name == "pagerank":
        return Case(name, [lambda: PageRank(tol=0, max_iter=sweeps, weight=False)])
    assert name == "residual", name
    # Each answer is within its tolerance of the limit, in L1: two are within twice that.
    makers = [lambda: PageRank(tol=RESIDUAL_TOLERANCE, max_iter=100_000, weight=False)]
    return Case(name, makers, options={"mode": "async"}, apart=2 * RESIDUAL_TOLERANCE)


def pick_source(graph: Graph) -> int:
    """Original id of a vertex with out-edges, drawn with a fixed seed. Raises InputError where there is none."""
    found = np.flatnonzero(graph.out.index().degrees(0, graph.vertices))
    if not len(found):
        raise InputError("the graph has no edges: there is nothing to bring by any route")
    return int(vertex_column(graph)[np.random.default_rng(1).choice(found)])


def configurations(kind: str, case: Case, *, ablation: bool = False) -> list[Configuration]:
    """What to compare for a program on a kind of device, in the order of the table."""
    singles = [Configuration(name, {"route": name}, _unable(name, kind, case)) for name in ROUTES]
    behind = "nothing travels over a link on a CPU" if kind == "host" else None
    combine, rounds = Tuning.combine, Tuning.local_rounds
    autos = [
        Configuration("auto", _tuned(model="measured")),
        Configuration("auto, published model", _tuned(model="published"), behind),
        Configuration(
            "auto, no combination", _tuned(combine=1), behind or (None if combine > 1 else "1 is the default")
        ),
        Configuration("auto, no priority", _tuned(priority=False)),
        Configuration("auto, no residency", _tuned(residency="none"), behind),
        Configuration("auto, never packed", {"packed": "never"}, behind),
        Configuration(
            "auto, no local round" if rounds else "auto, 1 local round",
            _tuned(local_rounds=0 if rounds else 1),
            None if case.asynchronous else "synchronous: an edge is applied once an iteration",
        ),
    ]
    return [*singles, *autos, *(_ladder(case, behind) if ablation else ())]


def _tuned(**options: Any) -> dict[str, Any]:
    return {"tuning": options}


def chosen(rows: list[Configuration], only: Sequence[str]) -> list[Configuration]:
    """Rows with one of these texts in their name, or `=` and all of it; all where none is given.

    Raises InputError where there is no such row.
    """
    found = [row for row in rows if not only or any(_means(text, row.name) for text in only)]
    if not found:
        names = ", ".join(row.name.strip() for row in rows)
        raise InputError(f"no row has {' or '.join(map(repr, only))} in its name; the rows are {names}")
    return found


def _means(text: str, name: str) -> bool:
    return text[1:] == name.strip() if text.startswith("=") else text in name


def _unable(name: str, kind: str, case: Case) -> str | None:
    if kind == "host":
        return "a CPU reads edges where they are: no route is forced"
    if name == cel.name and not case.makers[0]().self_combining:
        return "synchronous: rows follow a walk only where updates may be seen at once"
    return None


def _ladder(case: Case, behind: str | None) -> list[Configuration]:
    """HyTGraph's Figure 8, each step with those before it; then residency and our model, which makes it `auto`.

    Its contribution-driven priority has two halves: what has most pending goes first, and, where updates may be seen at
    once, what was loaded is walked once more.
    """
    steps: list[tuple[str, dict[str, Any]]] = [
        (HYBRID, {}),
        ("  + combination", {"combine": max(2, Tuning.combine)}),
        ("  + priority", {"priority": True, "local_rounds": int(case.asynchronous)}),
        ("  + residency", {"residency": "value"}),
        ("  + measured model", {"model": "measured"}),
    ]
    rows, options = [], dict(BARE)
    for name, more in steps:
        options |= more
        rows.append(Configuration(name, _tuned(**options), behind))
    return rows


def difference(result: Result, expected: Mapping[str, NDArray[Any]], apart: float | None) -> str | None:
    """How an answer differs from the expected one, None where it does not.

    Integers must be identical, floats within the program's relative tolerance, or `apart` in L1 where given.
    """
    for name, values in result.fields.items():
        right = expected[name]
        if values.dtype.kind != "f" or right.dtype != values.dtype:
            wrong = int(np.count_nonzero(values != right)) if values.shape == right.shape else len(right)
            if wrong or values.dtype != right.dtype:
                return f"{wrong:,} of {len(right):,} values of {name} differ"
        elif apart is not None:
            gap = float(np.abs(values - right).sum())
            if not gap <= apart:
                return f"{name} is {gap:.2g} apart in L1; {apart:g} is allowed"
        else:
            far = ~np.isclose(values, right, rtol=result.program.tolerance, atol=0)
            if far.any():
                return f"{np.count_nonzero(far):,} of {len(right):,} values of {name} differ"
    return None
