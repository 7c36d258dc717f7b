"""The sizes of a packed sweep (`kernels/host/packed_sweep.py`), without a compiler: memory is planned by them."""

from penstock.storage.encoding.payload import BLOCK

STEP_BLOCKS = 256
"""Blocks of a step. Where the first of them begins is found by adding up the sizes of all before it in its chunk."""
TURN_BLOCKS = 16
"""Blocks that are decoded at once: with 2, 4 and 8 a sweep takes up to a tenth longer."""
STEP_EDGES = STEP_BLOCKS * BLOCK
RING = 2 * TURN_BLOCKS * BLOCK
"""Ids of a ring of two turns."""
SCRATCH = RING + BLOCK
"""Ids that a step has room for: a ring, and the residuals of a block."""
