"""Rows that pushes of a search keep, where values of vertices come in pages (`execution/windows.py`).

Where a vertex that has a message accepts no other (`Program.visits_once`), pushes that follow a wide frontier need only
rows of vertices that were not visited, with their edges to such vertices: a tenth, and they are not read again
(`StateArrays.compacted`). And the edges that were accepted are all that a phase needs which finds who sent them
(`StateArrays.accepted`). The counterpart of `unmatched_rows.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.transfer.values.view import View


@dataclass
class CompactedRows:
    """The rows, as compacted views; nbytes: of their arrays."""

    views: list[View] = field(default_factory=list)
    nbytes: int = 0

    def keep(self, view: View, room: int) -> bool:
        """Keep a view, and return whether there were so many bytes of room for it."""
        arrays = view.neighbors, view.weights, view.rows, view.offsets
        size = sum(array.nbytes for array in arrays if array is not None)
        if view.e1 and size <= room:
            self.views.append(view)
            self.nbytes += size
        return size <= room
