"""Copying the heads of rows out of a view on a GPU; see `engine/state/row_prefix_cache.py`. A thread takes a row."""

from __future__ import annotations

import numpy as np
from penstock.engine.kernels.cuda import kernel
from penstock.engine.kernels.cuda_parts import ONE, all_threads, global_thread, row_start


@kernel
def keep_heads(view, e1, rows, index, head_index, each, heads):  # type: ignore[no-untyped-def]
    """Kernel: heads = what [e0, e1) holds of the first `each` edges of rows [v0, v1)."""
    bases, offsets, shift = index
    head_bases, head_offsets, head_shift = head_index
    neighbors, _, e0 = view
    v = rows[0] + np.uint64(global_thread())
    while v < rows[1]:
        start = row_start(bases, offsets, shift, v)
        end = min(row_start(bases, offsets, shift, v + ONE), start + each)
        at = row_start(head_bases, head_offsets, head_shift, v)
        for e in range(max(start, e0), min(end, e1)):
            heads[at + e - start] = neighbors[e - e0]
        v += np.uint64(all_threads())
