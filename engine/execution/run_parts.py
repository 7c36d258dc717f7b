"""What the steps of a run share: its program, graph, state, kernels and streams, and how far it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.program.program import Program
from penstock.engine.resources.direction import Direction, Situation
from penstock.engine.state.fused_iterations import RunRecords
from penstock.engine.state.records import PhaseRecord
from penstock.engine.state.state import Frontier

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.execution.priorities import Due
    from penstock.engine.kernels.interface import Kernels
    from penstock.engine.resources.edge_stream import EdgeStream
    from penstock.engine.state.device_state import VertexState
    from penstock.storage.format.graph import Graph
    from penstock.storage.format.index import Index


@dataclass
class RunParts:
    """One run of `program`.

    out: index of the adjacency along whose rows vertices send. due: which of them do. streams: of edges, for push and
    for pull. against: those of a second walk in each iteration, for programs that send along the edges of a directed
    graph and against them (`along = "both"`). asynchronous: updates are visible in the same iteration. forced: the only
    direction that the run may take, None where there are two. local_rounds: how often a push is repeated on a view.

    A checkpoint holds, besides the state: iteration; totals; unexplored and unvisited, the graph's edges and vertices
    less those of all frontiers so far; the limit of what is due; direction and before, direction and frontier of the
    iteration that ended last; everything, whether all vertices are active next; converged; finished, whether nothing is
    left to do; met: of triangle programs, vertices 0 to met - 1 are done.

    collected: where calls of fused iterations go, but for the last record of each, if nobody looks at each; else None.
    settled: whether the state is that after the iterations whose records were yielded. While the records of fused
    iterations are yielded one by one, the state, and all that a checkpoint holds, is that after the last of them.
    phase: of a program of phases, the one that is run, for the records. situation: what the direction of the present
    iteration was chosen by. relaxed: whether rows of unsettled vertices were walked in an earlier one.
    passed: edges of frontiers up to the first that rows follow by choice (`cel.py`), 0 if from disk, None before it.
    """

    program: Program
    graph: Graph
    out: Index
    state: VertexState
    kernels: Kernels[Any]
    due: Due
    streams: dict[Direction, EdgeStream]
    against: dict[Direction, EdgeStream] = field(default_factory=dict)
    asynchronous: bool = False
    forced: Direction | None = None
    local_rounds: int = 0
    converged: bool = False
    finished: bool = False
    everything: bool = False
    iteration: int = 0
    totals: dict[str, float] = field(default_factory=dict)
    met: int = 0
    collected: RunRecords | None = None
    settled: bool = True
    phase: PhaseRecord | None = None
    direction: Direction = "push"
    before: Frontier = field(default_factory=lambda: Frontier(0, 0))
    situation: Situation | None = None
    relaxed: bool = False
    passed: int | None = None

    place = 0, 1
    """The number of this rank, and how many there are."""

    def __post_init__(self) -> None:
        self.author = self.kernels.author
        self.unexplored, self.unvisited = self.graph.edges, self.graph.vertices

    @property
    def fuses(self) -> bool:
        """Whether several iterations may run in one launch."""
        return self.due.alone

    def gathered(self, *numbers: float) -> NDArray[np.float64]:
        """What these numbers are in each rank, shape (ranks, numbers)."""
        return np.array([numbers], dtype=np.float64)

    def values_at(self, name: str, places: NDArray[np.int64]) -> NDArray[Any]:
        """What a field has at some vertices, in host memory."""
        return self.state.values_at(name, places)
