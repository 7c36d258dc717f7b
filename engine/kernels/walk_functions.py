"""The random numbers of walks, as plain Python functions that the compilers of the host and of a GPU both compile.

A number is a function of the seed, the walk, the step and the draw within it, and of nothing else, so that walks do not
depend on the order in which they are advanced. It is SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) at a place of its
sequence that is computed: every walk has a sequence of its own, whose start is the hash of its number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
SECOND_FACTOR = np.uint64(0x94D049BB133111EB)
UNIT = 2.0**-53
_1, _11, _27, _30, _31, _32 = (np.uint64(bits) for bits in (1, 11, 27, 30, 31, 32))


def mix64(word):  # type: ignore[no-untyped-def]
    """Return a hash of a uint64: the output function of SplitMix64."""
    word = (word ^ (word >> _30)) * FIRST_FACTOR
    word = (word ^ (word >> _27)) * SECOND_FACTOR
    return word ^ (word >> _31)


def make_draw(mix64: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for the random number in [0, 1) of a draw; all arguments are uint64."""

    def draw(seed, walk, step, number):  # type: ignore[no-untyped-def]
        start = mix64(seed + GOLDEN * (walk + _1))
        word = mix64(start + GOLDEN * (((step << _32) | number) + _1))
        return np.float64(word >> _11) * UNIT

    return draw
