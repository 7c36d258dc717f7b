"""Given pairs of rows on a GPU: how many neighbors the two share.

A group of threads takes a pair, walks the shorter row and searches the longer one by halves, as for triangles. The
counts are whole numbers, so that they are those of `host/whole_rows/similarity.py`, whatever threads add them up.
"""

from __future__ import annotations

from penstock.engine.kernels.cuda.device_functions import all_threads, global_thread
from penstock.engine.kernels.cuda.driver import cuda, kernel
from penstock.engine.kernels.cuda.whole_rows.triangles import GROUP, GROUP_SHIFT, STEP, ZERO, seek


@kernel
def count_common(ones, others, pairs, common):  # type: ignore[no-untyped-def]
    """Kernel: common[pair] += neighbors that two rows share.

    ones, others: offsets int64, neighbors. pairs: the rows of `ones` and of `others`, int64, and how many pairs.
    """
    offsets, neighbors = ones
    other_offsets, other_neighbors = others
    one, other, count = pairs
    lane = global_thread() & (GROUP - STEP)
    pair = global_thread() >> GROUP_SHIFT
    while pair < count:
        low, high = offsets[one[pair]], offsets[one[pair] + STEP]
        begin, end = other_offsets[other[pair]], other_offsets[other[pair] + STEP]
        found = ZERO
        if high - low <= end - begin:
            walk = low + lane
            while walk < high:
                if seek(other_neighbors, begin, end, neighbors[walk]) >= ZERO:
                    found += STEP
                walk += GROUP
        else:
            walk = begin + lane
            while walk < end:
                if seek(neighbors, low, high, other_neighbors[walk]) >= ZERO:
                    found += STEP
                walk += GROUP
        if found > ZERO:
            cuda.atomic.add(common, pair, found)
        pair += all_threads() >> GROUP_SHIFT
