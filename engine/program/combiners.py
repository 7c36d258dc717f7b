"""The combiners that merge messages, each in one row of a table: identity, NumPy's ufunc, scalar functions, atomic.

The scalar functions are plain Python. The reference runs them as they are; the compilers of the host and of a GPU each
compile them. `union` and `all` are no rows: messages of the one are links, and those of the other are not merged.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


def smaller(a, b):  # type: ignore[no-untyped-def]
    """Return the smaller of two, the first of equals."""
    return b if b < a else a


def larger(a, b):  # type: ignore[no-untyped-def]
    """Return the larger of two, the first of equals."""
    return b if b > a else a


def added(a, b):  # type: ignore[no-untyped-def]
    """Return the sum of two."""
    return a + b


def united(a, b):  # type: ignore[no-untyped-def]
    """Return the bits that are set in either of two."""
    return a | b


def is_smaller(old, value):  # type: ignore[no-untyped-def]
    """Return whether a minimum changes."""
    return value < old


def is_larger(old, value):  # type: ignore[no-untyped-def]
    """Return whether a maximum changes."""
    return value > old


def always(old, value):  # type: ignore[no-untyped-def]
    """Return True: every message counts in a sum."""
    return True


def has_new_bits(old, value):  # type: ignore[no-untyped-def]
    """Return whether a union of bits changes."""
    return (value & ~old) != 0


@dataclass(frozen=True)
class Combiner:
    """How messages to one vertex are merged.

    merge: of two values. changes: whether merging a value into an old one counts as a change. text: `merge` in the
    source of an adapter. atomic: the atomic read-modify-write, as `host/atomics.py` and numba.cuda name it. bound: the
    identity, an end of the dtype's range; None: 0.
    """

    ufunc: np.ufunc
    merge: Callable[[Any, Any], Any]
    changes: Callable[[Any, Any], Any]
    text: str
    atomic: str
    bound: str | None = None


COMBINERS = {
    "min": Combiner(np.minimum, smaller, is_smaller, "min({}, {})", "min", "max"),
    "max": Combiner(np.maximum, larger, is_larger, "max({}, {})", "max", "min"),
    "sum": Combiner(np.add, added, always, "{} + {}", "add"),
    "or": Combiner(np.bitwise_or, united, has_new_bits, "{} | {}", "or_"),
}


def identity_of(combine: str, dtype: np.dtype[Any]) -> Any:
    """Return the value that changes nothing under `combine`, as a scalar of `dtype`."""
    bound = COMBINERS[combine].bound if combine in COMBINERS else None
    if bound is None:
        return dtype.type(0)
    if dtype.kind == "f":
        return dtype.type(math.inf if bound == "max" else -math.inf)
    return dtype.type(getattr(np.iinfo(dtype), bound))
