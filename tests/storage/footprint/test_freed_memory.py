"""Memory that was freed among blocks still in use goes back to the system."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from penstock.storage.base.budget import resident_bytes
from penstock.storage.footprint.freed_memory import give_back_freed_memory
from support.faults import python

PIECE, PIECES = 64 << 10, 512


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="another C library than glibc")
def test_freed_memory_goes_back_while_its_neighbors_are_in_use() -> None:
    blocks = [np.ones(PIECE, np.uint8) for _ in range(PIECES)]
    kept = blocks[::8]
    before = resident_bytes()
    del blocks
    give_back_freed_memory()
    assert resident_bytes() < before - PIECE * PIECES // 2
    assert all(block.all() for block in kept)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="another C library than glibc")
def test_no_large_block_is_kept_where_that_is_chosen() -> None:
    """Blocks of 3 MiB among small ones, freed after one of 30 MiB."""
    code = """
import sys
import numpy as np
from penstock.storage.base.budget import resident_bytes
from penstock.storage.footprint.freed_memory import keep_no_large_blocks
if sys.argv[1] == "none":
    keep_no_large_blocks()
np.ones(30 << 20, np.uint8)
before = resident_bytes()
kept = []
for _ in range(8):
    blocks = [np.ones(3 << 20, np.uint8) for _ in range(4)]
    kept.append(np.ones(1 << 16, np.uint8))
    del blocks
print(resident_bytes() - before)
"""
    some, none = (int(python(code, choice).stdout) for choice in ("some", "none"))
    assert none < 4 << 20 < some
