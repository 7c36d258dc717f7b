"""The combiners, atomically (several threads write one target) and plainly (one thread does).

A program names its combiner; which of the two versions runs is the kernel's affair.
"""

from __future__ import annotations

from typing import Any

from penstock.engine.kernels.cached import inline
from penstock.engine.kernels.intrinsics import atomic_add, atomic_max, atomic_min, atomic_or


@inline
def combine_min(target, at, value):  # type: ignore[no-untyped-def]
    """Lower target[at] to value; whether it changed."""
    return value < target[at] and value < atomic_min(target, at, value)


@inline
def combine_max(target, at, value):  # type: ignore[no-untyped-def]
    """Raise target[at] to value; whether it changed."""
    return value > target[at] and value > atomic_max(target, at, value)


@inline
def combine_sum(target, at, value):  # type: ignore[no-untyped-def]
    """Add value to target[at]."""
    atomic_add(target, at, value)
    return True


@inline
def combine_or(target, at, value):  # type: ignore[no-untyped-def]
    """Set value's bits in target[at]; whether it changed."""
    return (value & ~target[at]) != 0 and (value & ~atomic_or(target, at, value)) != 0


COMBINE = {"min": combine_min, "max": combine_max, "sum": combine_sum, "or": combine_or}


@inline
def lower_min(target, at, value):  # type: ignore[no-untyped-def]
    """As `combine_min`, where nobody else writes."""
    news = value < target[at]
    if news:
        target[at] = value
    return news


@inline
def raise_max(target, at, value):  # type: ignore[no-untyped-def]
    """As `combine_max`."""
    news = value > target[at]
    if news:
        target[at] = value
    return news


@inline
def add_sum(target, at, value):  # type: ignore[no-untyped-def]
    """As `combine_sum`."""
    target[at] += value
    return True


@inline
def set_or(target, at, value):  # type: ignore[no-untyped-def]
    """As `combine_or`."""
    old = target[at]
    target[at] = old | value
    return (value & ~old) != 0


ALONE = {"min": lower_min, "max": raise_max, "sum": add_sum, "or": set_or}


@inline
def merge_min(a, b):  # type: ignore[no-untyped-def]
    """The smaller."""
    return b if b < a else a


@inline
def merge_max(a, b):  # type: ignore[no-untyped-def]
    """The larger."""
    return b if b > a else a


@inline
def merge_sum(a, b):  # type: ignore[no-untyped-def]
    """The sum."""
    return a + b


@inline
def merge_or(a, b):  # type: ignore[no-untyped-def]
    """The union of bits."""
    return a | b


MERGE = {"min": merge_min, "max": merge_max, "sum": merge_sum, "or": merge_or}


def make_absorb(combine: str) -> Any:
    """Inlined: combine into an entry that only this thread writes; whether that is news."""
    merge, always = MERGE[combine], combine == "sum"

    @inline
    def absorb(target, at, value):  # type: ignore[no-untyped-def]
        old = target[at]
        new = merge(old, value)
        target[at] = new
        return always or new != old

    return absorb
