"""What an author's `incoming.sort()` is on a GPU, for one thread: a look whether there is anything to do, and heapsort.

Plain Python, for `cuda.py` to compile; numba-cuda has no sort of its own. The rows of a program that sorts them have
been sorted by all threads before (`cuda_bitonic.py`), so the look is all that is left, unless the author changed them.
Heapsort (Williams, CACM 1964) needs neither recursion nor memory. NaNs come last, as NumPy has it.
"""

from __future__ import annotations


def sort_in_place(values):  # type: ignore[no-untyped-def]
    """Sort a one-dimensional array, ascending."""
    ordered = True
    for at in range(1, len(values)):
        one, other = values[at - 1], values[at]
        ordered &= not (other < one or (one != one and other == other))
    if ordered:
        return
    root, end = len(values) >> 1, len(values)
    while end > 1:
        if root > 0:  # first make a heap, from its last parent up
            root -= 1
            top = root
        else:  # then take the largest away, again and again
            end -= 1
            values[end], values[0] = values[0], values[end]
            top = 0
        child = 2 * top + 1
        while child < end:
            if child + 1 < end:
                one, other = values[child], values[child + 1]
                if one < other or (other != other and one == one):
                    child += 1
            one, other = values[top], values[child]
            if not (one < other or (other != other and one == one)):
                break
            values[top], values[child] = other, one
            top = child
            child = 2 * top + 1
