"""Where vertices' messages are, if those that are read most lie together; edges in memory then hold places for ids.

In a graph of skewed degrees few messages are read again and again, but scrambled ids spread them over all lines of
memory. So messages, and they alone, are put in the order of falling degree classes (powers of two); in a class they
keep the order of their ids, for neighboring ids often have neighbors in common (Faldu, Diamond and Grot, IISWC 2019).
Rows, the vertices' fields and the order of a row's edges stay, so that sums are the same to the bit.

`kernels/host/group_sources.py` writes places over the ids of the host's cache, and back. A session sees to it that a
run finds what it expects.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.transfer.values.view import View

LEAST_VERTICES = 1 << 21
"""Messages of fewer are in the last-level cache anyhow."""
LEAST_SWEEPS = 6
"""What grouping takes is about one sweep; a sweep after it takes two thirds of one before."""


@dataclass
class GroupedSources:
    """The places of the messages that are sent along an adjacency, and the edges in which they stand for ids.

    edges: of the adjacency. places: of the ids' dtype, shape (vertices,); None until they are known. neighbors: the
    cached edges that hold places, None where none do. span: the first and past the last of these edges. pays: False
    once it is known that grouping would not pay.
    mixed: some edges may hold places and others ids, because writing them was interrupted; nothing may read them.
    give_back: writes ids over the places that edges hold; of the kernels that wrote these. It takes these groups: if it
    kept them, a cache that was dropped would stay in memory with them until garbage is collected.
    """

    edges: int
    places: NDArray[Any] | None = None
    neighbors: NDArray[Any] | None = None
    span: tuple[int, int] = (0, 0)
    pays: bool = True
    mixed: bool = False
    give_back: Callable[[GroupedSources], None] = lambda _: None

    def serves(self, view: View) -> bool:
        """Whether the view holds every edge."""
        return self.pays and view.rows is None and view.e0 == 0 and view.e1 == self.edges


def place_bytes(vertices: int, id_bytes: int) -> int:
    """Bytes that places take: twice that while ids are written back, and what is taken while places are made."""
    return 2 * vertices * id_bytes + (8 << 20)
