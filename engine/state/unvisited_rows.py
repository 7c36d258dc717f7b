"""Rows of vertices that a search has not visited, with their edges to such vertices, kept by a push.

Where a vertex that has a message accepts no other (`Program.visits_once`), the pushes that follow need no other edges:
behind the widest frontiers these are a tenth, and they are not read again. The counterpart of `unmatched_rows.py`,
where values of vertices come in pages (`execution/windows.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.transfer.values.view import View


@dataclass
class UnvisitedRows:
    """The rows, as compacted views.

    left: bytes that may still be kept, below 0 where there was no room. complete: whether all are here.
    """

    left: int
    views: list[View] = field(default_factory=list)
    complete: bool = False

    def keep(self, view: View) -> None:
        """Keep a view of such rows, if there is room for it and was for all before."""
        arrays = view.neighbors, view.weights, view.rows, view.offsets
        self.left -= sum(array.nbytes for array in arrays if array is not None)
        if self.left < 0:
            self.views.clear()
        elif view.e1:
            self.views.append(view)
