"""First values of arrays of the host, written by the threads of kernels.

What is written first is first given by the system, page by page, which takes longer than the writing and goes on in as
many threads as ask. The threads of kernels are there already: a pool of others, started for each array, takes longer
than the pages where cores are many, and its stacks wait for the same lock as they do.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray
from penstock.engine.kernels.host.jit import inline, loop_kernel, use_workers
from penstock.engine.state.state import fill_ranges

PAGE = 1 << 21
"""Bytes of a piece: the huge pages that NumPy asks for where an array is large; no two threads wait for one of them."""
LARGE_BYTES = 1 << 25
"""An array of fewer bytes is filled sooner than the kernel is loaded."""


@inline
def piece_of(number, lead, size, count):  # type: ignore[no-untyped-def]
    """Where a piece begins and ends: the first is what stands in front of the first whole page."""
    end = min(np.uint64(count), np.uint64(lead) + np.uint64(number) * np.uint64(size))
    first = np.uint64(0) if number == 0 else np.uint64(lead) + np.uint64(number - 1) * np.uint64(size)
    return first, end


@loop_kernel("fill", grain=1)
def fill_pieces(first_step, end_step, items, value, lead, size):  # type: ignore[no-untyped-def]
    """Write one value; lead: items in front of the first whole page; size: items of a page."""
    for piece in range(first_step, end_step):
        first, last = piece_of(piece, lead, size, len(items))
        for at in range(first, last):
            items[at] = value


@loop_kernel("number", grain=1)
def number_pieces(first_step, end_step, items, lead, size):  # type: ignore[no-untyped-def]
    """Write each item's place; lead and size as in `fill_pieces`."""
    for piece in range(first_step, end_step):
        first, last = piece_of(piece, lead, size, len(items))
        for at in range(first, last):
            items[at] = at


def fill(array: NDArray[Any], value: Any, *, threads: int) -> None:
    """Write one value to every item of a contiguous array, as NumPy converts it. Raises as `use_workers`."""
    if array.nbytes < LARGE_BYTES:
        fill_ranges(array, value, threads=threads)
        return
    kind = f"u{array.dtype.itemsize}"  # kernels are compiled for widths, not for types
    first = np.empty(1, array.dtype)
    np.copyto(first, value, casting="unsafe")
    items = array.reshape(-1).view(kind)
    fill_pieces(*_shared(items, threads), items, first.view(kind)[0], *_pages(items))


def number(array: NDArray[Any], *, threads: int) -> None:
    """Write 0, 1, 2, … to an array of integers, (items,). Raises as `use_workers`."""
    number_pieces(*_shared(array, threads), array, *_pages(array))


def _shared(items: NDArray[Any], threads: int) -> tuple[int, int]:
    """How many threads share how many pieces."""
    lead, size = _pages(items)
    threads = min(threads, int(numba.config.NUMBA_NUM_THREADS))
    use_workers(threads)
    return threads, 1 + -(-(len(items) - lead) // size)


def _pages(items: NDArray[Any]) -> tuple[int, int]:
    """How many items stand in front of the first whole page, and how many in a page."""
    return -items.ctypes.data % PAGE // items.itemsize, PAGE // items.itemsize
