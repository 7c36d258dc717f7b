"""One device of a run: its state, its kernels, and the streams that bring it edges."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from penstock.engine.kernels.interface import KeepingKernels, Kernels, WholeRowKernels
    from penstock.engine.resources.direction import Direction
    from penstock.engine.resources.edge_stream import EdgeStream
    from penstock.engine.resources.ownership import Ownership
    from penstock.engine.state.device_state import VertexState


@dataclass
class Worker:
    """One device: its state, its kernels, and its edge streams for push and for pull.

    against: streams of a second walk in each iteration, for programs that send along the edges of a directed graph and
    against them (`along = "both"`). ownership: of a run of several ranks, which vertices are whose.
    """

    state: VertexState
    kernels: Kernels[Any]
    streams: dict[Direction, EdgeStream]
    against: dict[Direction, EdgeStream] = field(default_factory=dict)
    ownership: Ownership | None = None

    @property
    def row_kernels(self) -> WholeRowKernels[Any]:
        """The kernels, of a program on whole rows."""
        return cast("WholeRowKernels[Any]", self.kernels)

    @property
    def keeping_kernels(self) -> KeepingKernels[Any]:
        """The kernels, where the state has room for unmatched rows."""
        return cast("KeepingKernels[Any]", self.kernels)
