"""Rows turned around: of every vertex x a list of the rows that have x as a neighbor, ascending.

The list of x is lists[starts[x] : starts[x + 1]], with starts int64 (vertices + 1,).
"""

from __future__ import annotations

from penstock.engine.kernels.host.jit import kernel, loop_kernel


@kernel("count_lists")
def count_lists(neighbors, starts):  # type: ignore[no-untyped-def]
    """starts[x + 1] += how often x is a neighbor."""
    for e in range(len(neighbors)):
        starts[neighbors[e] + 1] += 1


@kernel("fill_lists")
def fill_lists(first, offsets, neighbors, ends, lists):  # type: ignore[no-untyped-def]
    """Append each row, numbered from `first` on, to the lists of its neighbors; ends: of the lists so far."""
    for row in range(len(offsets) - 1):
        for e in range(offsets[row], offsets[row + 1]):
            x = neighbors[e]
            lists[ends[x]] = first + row
            ends[x] += 1


@kernel("shift_starts")
def shift_starts(starts):  # type: ignore[no-untyped-def]
    """Make the ends of lists, which follow each other, their starts."""
    for x in range(len(starts) - 1, 0, -1):
        starts[x] = starts[x - 1]
    starts[0] = 0


@loop_kernel("sum_lists", grain=1024)
def sum_lists(first_step, end_step, offsets, neighbors, starts, sums):  # type: ignore[no-untyped-def]
    """sums[row] = the lengths of its neighbors' lists together."""
    for row in range(first_step, end_step):
        total = 0
        for e in range(offsets[row], offsets[row + 1]):
            x = neighbors[e]
            total += starts[x + 1] - starts[x]
        sums[row] = total
