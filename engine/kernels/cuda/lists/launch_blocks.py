"""The kernels of one program on a GPU over a list: those of `launch.py`, of which pushes and links walk blocks.

Nothing is fused, and nothing is sent once more from a view: both need rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from penstock.engine.kernels.cuda.driver import DeviceKernel, blocks_for, most_blocks
from penstock.engine.kernels.cuda.launch import CudaKernels, _vertices_of
from penstock.engine.kernels.cuda.lists import edge_blocks
from penstock.engine.kernels.edge_ways import WaysName
from penstock.engine.kernels.hot_vertices import has_sums_apart, sums_numbers
from penstock.storage.format.schema import LIST_BLOCK

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.state.device_state import DeviceState
    from penstock.engine.state.state import Frontier
    from penstock.storage.format.index import Index
    from penstock.transfer.values.view import View

PUSH, KEPT = "push_blocks ", "push_blocks_kept "


class CudaBlockKernels(CudaKernels):
    """Compiled kernels over blocks of edges."""

    ways: WaysName = "forward"
    keeps_sums = True
    """Whether blocks of threads keep sums, where many are added up."""
    _wanted: NDArray[np.bool_] | None = None

    def choose_blocks(self, wanted: NDArray[np.bool_] | None) -> None:
        """Walk only these blocks from now on; None: all."""
        self._wanted = wanted

    def can_fuse(self, frontier: Frontier) -> bool:
        """Never: an iteration walks blocks, whatever its frontier is."""
        return False

    def push(self, view: View, state: DeviceState, frontier: Frontier, index: Index, scalars: tuple[Any, ...]) -> None:
        """Send along the view's edges of which an active vertex is at the end that sends."""
        edges, whole = view.e1 - view.e0, frontier.everything
        name, blocks = PUSH, min(most_blocks(), edges // LIST_BLOCK + 2)
        if self.keeps_sums and sums_numbers(self.author) and has_sums_apart(state):
            together = edge_blocks.blocks_that_keep(self.author)
            sent = edges if whole else min(edges, frontier.edges)
            if sent >= edge_blocks.EDGES_EACH * edge_blocks.SLOTS * together:
                name, blocks = KEPT, min(together, blocks)
        self._call(
            name + self.ways, blocks, self._edges_of(view), self.placed(index).arrays, state.active.words,
            np.bool_(whole), self._marked(whole), state.arrays, scalars, _vertices_of(state),
        )  # fmt: skip

    def _marked(self, whole: bool) -> Any:
        """Which blocks are wanted, where kernels read it: the last walk's have ended when a frontier is known."""
        if whole:
            return self._buffer("all blocks", 1, np.uint8)
        assert self._wanted is not None, "blocks of a frontier have been chosen"
        chunks, here = self._shared_chunks(len(self._wanted))
        chunks[:] = self._wanted
        return here

    def link_rows(
        self, view: View, state: DeviceState, index: Index, done_each: int, skipped: Any, symmetric: bool
    ) -> None:
        """Link every edge of the view."""
        self._call(
            "link_blocks", blocks_for(view.e1 - view.e0), self._edges_of(view), state.arrays[0], np.uint64(state.first)
        )

    def _make(self, name: str) -> DeviceKernel:
        if name == "link_blocks":
            return edge_blocks.link_blocks
        for prefix, make in ((KEPT, edge_blocks.make_push_blocks_kept), (PUSH, edge_blocks.make_push_blocks)):
            if name.startswith(prefix):
                return make(self.author, self.weighted, cast("WaysName", name.removeprefix(prefix)))
        return super()._make(name)
