"""Memory that was freed among blocks still in use goes back to the system."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from penstock.storage.base.budget import resident_bytes
from penstock.storage.footprint.freed_memory import give_back_freed_memory

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
