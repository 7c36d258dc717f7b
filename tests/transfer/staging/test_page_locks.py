"""Locked runs: every chunk locked once, whole pages, and copies that stay within what was locked together."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from penstock.storage.format.packed_layout import PackedLayout
from penstock.storage.read.partition_cache import PartitionCache
from penstock.transfer.devices.device import Device
from penstock.transfer.staging.page_locks import PageLocks, consecutive

CHUNK = 4096
CHUNKS = 7


class Host(Device):
    """Remembers what was locked."""

    def __init__(self) -> None:
        super().__init__()
        self.locked: list[NDArray[Any]] = []

    def register(self, array: NDArray[Any]) -> None:
        self.locked.append(array)


def made(chunk: int = CHUNK, tail: int = 100) -> tuple[Host, PartitionCache, PageLocks]:
    sizes = {"edges": CHUNKS * chunk - tail, "chunk_edges": chunk}
    extents: Any = [SimpleNamespace(direction=direction, **sizes) for direction in ("out", "in")]
    host, cache = Host(), PartitionCache(extents, 2 * chunk, (np.uint32, np.uint8), apart=True)
    return host, cache, PageLocks(host, cache)


def pages_of(array: NDArray[Any]) -> set[int]:
    first = array.ctypes.data
    return set(range(first // 4096, -(-(first + array.nbytes) // 4096)))


def test_consecutive_numbers_are_runs() -> None:
    assert [run.tolist() for run in consecutive(np.array([0, 1, 3, 6, 7]))] == [[0, 1], [3], [6, 7]]
    assert [run.tolist() for run in consecutive(np.array([0, 1, 2]), np.array([False, True]))] == [[0, 1], [2]]
    assert consecutive(np.array([], dtype=np.int64)) == []


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.sampled_from(["out", "in"]), st.sets(st.integers(0, CHUNKS - 1)), st.booleans()), max_size=6)
)
def test_each_page_is_locked_once_and_each_copy_is_of_one_locked_run(
    wanted: list[tuple[str, set[int], bool]],
) -> None:
    host, cache, runs = made()
    for direction, chosen, weighted in wanted:
        chunks = np.array(sorted(chosen), dtype=np.int64)
        runs.lock(direction, chunks, weighted)
        copies = runs.copies(direction, chunks, weighted)
        assert np.concatenate([*copies, np.zeros(0, np.int64)]).tolist() == chunks.tolist()
        kinds = [array for array in cache.adjacency(direction)[: 1 + weighted] if array is not None]
        for run in copies:
            for array in kinds:
                part = array[int(run[0]) * CHUNK : (int(run[-1]) + 1) * CHUNK]
                held = [one for one in host.locked if one.ctypes.data <= part.ctypes.data]
                assert any(part.ctypes.data + part.nbytes <= one.ctypes.data + one.nbytes for one in held)
    pages = [page for array in host.locked for page in pages_of(array)]
    assert len(pages) == len(set(pages))


def test_chunks_that_share_pages_are_locked_with_their_whole_adjacency() -> None:
    host, cache, runs = made(chunk=64, tail=3)
    runs.lock("in", np.array([2]), True)
    runs.lock("in", np.array([0, 5]), True)
    runs.lock("out", np.array([1]), False)
    neighbors, weights = cache.adjacency("in")
    assert weights is not None
    assert [array.ctypes.data for array in host.locked[:2]] == [neighbors.ctypes.data, weights.ctypes.data]
    assert [array.nbytes for array in host.locked[:2]] == [neighbors.nbytes, weights.nbytes]
    assert len(host.locked) == 3
    assert [run.tolist() for run in runs.copies("in", np.arange(CHUNKS), True)] == [list(range(CHUNKS))]


def test_the_rest_of_an_adjacency_is_locked_at_once() -> None:
    host, cache, runs = made()
    runs.lock("out", np.array([3]), False)
    runs.lock_all("out", False)
    assert sum(array.nbytes for array in host.locked) == cache.adjacency("out")[0].nbytes
    runs.lock_all("out", False)
    assert len(host.locked) == 3


@given(st.lists(st.tuples(st.sampled_from(["out", "in"]), st.sets(st.integers(0, CHUNKS - 1))), max_size=6))
def test_pieces_are_locked_whole_and_once(wishes: list[tuple[str, set[int]]]) -> None:
    starts = np.arange(CHUNKS + 1, dtype=np.int64) * 700
    host = Host()
    cache = PartitionCache([PackedLayout(way, CHUNKS * CHUNK, CHUNK, starts) for way in ("out", "in")], 2 * CHUNK)
    locks, wanted = PageLocks(host, cache), set()
    for direction, chunks in wishes:
        locks.lock(direction, np.array(sorted(chunks), dtype=np.int64), False)
        wanted |= {(direction, chunk // 2) for chunk in chunks}
        assert len(host.locked) == len(wanted)
    for direction in ("out", "in"):
        locks.lock_all(direction, False)
    assert len(host.locked) == cache.count
    pages = [page for array in host.locked for page in pages_of(array)]
    assert len(pages) == len(set(pages))
