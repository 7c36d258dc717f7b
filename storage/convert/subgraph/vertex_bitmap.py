"""A set of vertices: a bit for each, and how many precede every 64 of them, in a quarter of a byte a vertex.

A member's new id is its rank, how many members are below it (Jacobson, "Space-efficient static trees and graphs", FOCS
1989: a table of counts and a population count).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.jit import jit_part

STEP = 1 << 18
"""Vertices looked at together; whole words."""
WORD = 64


class VertexBitmap:
    """Some of the vertices 0 to ``vertices - 1`` of a graph.

    words: uint64 (vertices / 64,), vertex v is bit v % 64 of word v / 64. before: int64, one more, members below each.
    """

    def __init__(self, vertices: int, words: NDArray[np.uint64]) -> None:
        self.vertices, self.words = vertices, words
        self.before = np.zeros(len(words) + 1, np.int64)
        np.cumsum(np.bitwise_count(words), out=self.before[1:])

    @classmethod
    def of(cls, vertices: int, holds: Callable[[int, int], NDArray[np.bool_]]) -> VertexBitmap:
        """The vertices of which ``holds(first, last)`` is true, asked range by range, in order."""
        words = np.zeros(-(-vertices // WORD), np.uint64)
        bits = words.view(np.uint8)
        for first in range(0, vertices, STEP):
            part = np.packbits(holds(first, min(first + STEP, vertices)), bitorder="little")
            bits[first // 8 : first // 8 + len(part)] = part
        return cls(vertices, words)

    @classmethod
    def whole(cls, vertices: int) -> VertexBitmap:
        """All vertices."""
        return cls.of(vertices, lambda first, last: np.ones(last - first, np.bool_))

    def __len__(self) -> int:
        return int(self.before[-1])

    def __and__(self, other: VertexBitmap) -> VertexBitmap:
        """The vertices that are in both."""
        return VertexBitmap(self.vertices, self.words & other.words)

    def mask(self, first: int, last: int) -> NDArray[np.bool_]:
        """Which of the vertices first..last-1 are members; ``first`` is a multiple of 8."""
        bits = self.words.view(np.uint8)[first // 8 : -(-last // 8)]
        return np.unpackbits(bits, count=last - first, bitorder="little").view(np.bool_)

    def below(self, vertex: int) -> int:
        """How many members are below a vertex; of a member that is its new id."""
        word, bit = divmod(vertex, WORD)
        rest = int(self.words[word]) & ((1 << bit) - 1) if bit else 0
        return int(self.before[word]) + rest.bit_count()

    def holds(self, vertices: NDArray[Any]) -> NDArray[np.bool_]:
        """Which of some vertices, integers (n,), are members."""
        bits = self.words[vertices >> 6] >> (vertices & 63).astype(np.uint64)
        return np.asarray(bits & np.uint64(1), np.bool_)

    def ranks(self, vertices: NDArray[Any]) -> NDArray[np.int64]:
        """The new ids of some members."""
        lower = (np.uint64(1) << (vertices & 63).astype(np.uint64)) - np.uint64(1)
        return np.asarray(self.before[vertices >> 6] + np.bitwise_count(self.words[vertices >> 6] & lower))


@jit_part
def is_member(words: NDArray[np.uint64], vertex: np.int64) -> bool:
    """Whether a vertex is in a set."""
    return bool((words[vertex >> 6] >> np.uint64(vertex & 63)) & np.uint64(1))


@jit_part
def rank_of(words: NDArray[np.uint64], before: NDArray[np.int64], vertex: np.int64) -> Any:
    """How many members are below a vertex (population count: Warren, Hacker's Delight, section 5-1)."""
    x = words[vertex >> 6] & ((np.uint64(1) << np.uint64(vertex & 63)) - np.uint64(1))
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return before[vertex >> 6] + np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))
