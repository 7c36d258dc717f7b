"""How many vertices have no edge, counted while adjacencies are written: one bit a vertex."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.jit import jit

SHARE = 16
"""One part in so many of the budget may be taken for the bits."""


class IsolatedVertices:
    """A bit for every vertex, set where an edge begins or ends; none where ``memory_bytes`` does not allow them."""

    def __init__(self, vertices: int, memory_bytes: int) -> None:
        self._vertices = vertices
        fits = (vertices + 7) // 8 <= memory_bytes // SHARE
        self._bits = np.zeros((vertices + 7) // 8, np.uint8) if fits else None

    def rows(self, first: int, degrees: NDArray[Any]) -> None:
        """Note the rows from vertex ``first`` on that are not empty."""
        if self._bits is not None:
            set_rows(self._bits, first, degrees)

    def ends(self, neighbors: NDArray[Any]) -> None:
        """Note the vertices that edges end in."""
        if self._bits is not None:
            set_ends(self._bits, neighbors)

    @property
    def count(self) -> int | None:
        """Vertices without an edge; None where they were not counted."""
        return None if self._bits is None else self._vertices - int(np.bitwise_count(self._bits).sum(dtype=np.int64))


@jit
def set_rows(bits: NDArray[np.uint8], first: int, degrees: NDArray[Any]) -> None:
    """Set the bit of every row with a degree."""
    for i in range(len(degrees)):
        if degrees[i] != 0:
            v = first + i
            bits[v >> 3] |= np.uint8(1 << (v & 7))


@jit
def set_ends(bits: NDArray[np.uint8], neighbors: NDArray[Any]) -> None:
    """Set the bit of every neighbor."""
    for i in range(len(neighbors)):
        v = np.int64(neighbors[i])
        bit = np.uint8(1 << (v & 7))
        if bits[v >> 3] & bit == 0:
            bits[v >> 3] |= bit
