"""Measures how fast a disk gives the bytes of files: direct reads of many sizes, several in flight, in order or not.

The page cache is bypassed (O_DIRECT), so that the figure is the disk's and not the memory's; where the file system
takes no direct reads, that is an error and not a number. A new, small file may be faster than a large old one (what was
just written may still be in the memory of a drive or of a virtual machine's host), so the files of a graph are read
themselves, spread over their whole length.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.atomic import flush
from penstock.storage.base.errors import InputError, RunError
from penstock.storage.base.measurement import RateSample
from penstock.storage.base.slot_pool import HUGE_PAGE, aligned_empty
from penstock.storage.base.threads import ThreadPool
from penstock.storage.format.direct_io import DirectFile, OpenFile, open_direct_file
from penstock.storage.format.graph import Graph
from penstock.storage.format.read_plan import PAGE, ReadRange

BLOCK_BYTES = 1 << 20
"""Of what is written at once."""
RUN_BYTES = 64 << 20
"""What is read in order before the next place."""
Files = Mapping[int, DirectFile]


class DiskBlocks(Sequence[ReadRange]):
    """Reads of ``block_bytes`` each (the last of a stretch may be shorter) that cover stretches of files.

    Every file has its turn: block k of each comes before block k + 1 of any.
    """

    def __init__(self, stretches: Sequence[ReadRange], block_bytes: int) -> None:
        starts = [np.arange(s.start, s.start + s.needed, block_bytes, dtype=np.int64) for s in stretches]
        counts = [len(found) for found in starts]
        file = np.repeat(np.array([s.shard for s in stretches], np.int64), counts)
        end = np.repeat(np.array([s.start + s.needed for s in stretches], np.int64), counts)
        start = np.concatenate([np.zeros(0, np.int64), *starts])
        by_file = np.argsort(file, kind="stable")
        _, firsts, lengths = np.unique(file[by_file], return_index=True, return_counts=True)
        turn = np.empty(len(file), np.int64)
        turn[by_file] = np.arange(len(file)) - np.repeat(firsts, lengths)
        order = np.argsort(turn, kind="stable")
        self._file, self._start = file[order], start[order]
        self._needed = np.minimum(end[order] - self._start, block_bytes)

    def __len__(self) -> int:
        return len(self._start)

    def __getitem__(self, item: int) -> ReadRange:  # type: ignore[override]  # no slices: a block at a time is asked for
        start, needed = int(self._start[item]), int(self._needed[item])
        return ReadRange(int(self._file[item]), start, -(-needed // PAGE) * PAGE, needed, ())

    @property
    def nbytes(self) -> int:
        """Bytes of all blocks."""
        return int(self._needed.sum())


def edge_stretches(graph: Graph) -> list[ReadRange]:
    """Return where the edges of a graph on disk are, all arrays of both adjacencies, in the order of the files."""
    arrays = [a for adjacency in graph.adjacencies for a in (adjacency.neighbors, adjacency.weights) if a is not None]
    parts = [[getattr(frames, name) for frames in arrays] for name in ("shard", "offsets", "lengths")]
    shard, offsets, lengths = (np.concatenate([np.zeros(0, np.int64), *part]) for part in parts)
    order = np.lexsort((offsets, shard))
    shard, start, end = shard[order], offsets[order] // PAGE * PAGE, offsets[order] + lengths[order]
    apart = (shard[1:] != shard[:-1]) | (start[1:] - end[:-1] >= PAGE)
    firsts = np.flatnonzero(np.concatenate([np.ones(min(1, len(order)), np.bool_), apart]))
    lasts = np.append(firsts, len(order))[1:] - 1
    pages = -(-(end[lasts] - start[firsts]) // PAGE) * PAGE
    columns = (shard[firsts], start[firsts], pages, end[lasts] - start[firsts])
    found = np.stack(columns, axis=1).tolist()
    return [ReadRange(file, first, length, needed, ()) for file, first, length, needed in found]


def whole_file(number: int, size_bytes: int) -> ReadRange:
    """Return a stretch that is a whole file."""
    return ReadRange(number, 0, -(-size_bytes // PAGE) * PAGE, size_bytes, ())


@contextmanager
def direct_files(files: Sequence[OpenFile]) -> Iterator[dict[int, DirectFile]]:
    """Open files for direct reads, by their number.

    Raises:
        InputError: the file system takes no direct reads.
    """
    with ExitStack() as stack:
        opened: dict[int, DirectFile] = {}
        for number, file in enumerate(files):
            opened[number] = stack.enter_context(open_direct_file(file, direct=True))
        _check_direct(opened)
        yield opened


def _check_direct(files: Files) -> None:
    for file in files.values():
        if not file.direct:
            raise InputError(
                f"{file.path}: no direct reads here; name a place on another disk (bench disk --folder, "
                "calibrate --file)"
            )


class DiskProbe:
    """Reads ranges of open files with several threads; the buffers are allocated, and touched, once.

    buffer_bytes: of all reads in flight together, of which each has its equal part.
    """

    def __init__(self, files: Files, buffer_bytes: int) -> None:
        self._files = files
        self._room: NDArray[np.uint8] = aligned_empty(buffer_bytes, np.uint8, HUGE_PAGE)
        self._room[::PAGE] = 0

    def rate(self, ranges: Sequence[ReadRange], order: NDArray[np.int64], in_flight: int, seconds: float) -> RateSample:
        """Read the ranges with these numbers, ``in_flight`` at once; no read begins after ``seconds``.

        Raises RunError where a read fails, InputError where it had to go through the page cache.
        """
        turn, share = count(), len(self._room) // in_flight // PAGE * PAGE
        began = time.perf_counter()

        def read(worker: int) -> int:
            done, buffer = 0, memoryview(self._room.data)[worker * share : (worker + 1) * share]
            while time.perf_counter() - began < seconds and (mine := next(turn)) < len(order):
                wanted = ranges[int(order[mine])]
                self._files[wanted.shard].read(wanted, buffer)
                done += wanted.needed
            return done

        with ThreadPool(in_flight, "read") as pool:
            total = sum(pool.map(read, range(in_flight)))
        took = time.perf_counter() - began
        _check_direct(self._files)
        return RateSample(in_flight, total, took)


def spread(count: int, run: int, seed: int) -> NDArray[np.int64]:
    """Return the numbers 0 to count - 1 in runs of ``run`` that follow one another, the runs in a random order."""
    firsts = np.random.default_rng(seed).permutation(-(-count // run)) * run
    order = (firsts[:, None] + np.arange(run)).reshape(-1)
    return order[order < count]


def write_probe_file(path: Path, size_bytes: int, progress: Callable[[int], None]) -> float:
    """Fill a new file with bytes that no disk can compress; return the seconds until durable.

    Raises:
        RunError: the disk is full or failed.
    """
    block = np.random.default_rng(1).integers(0, 256, BLOCK_BYTES, np.uint8)
    began = time.perf_counter()
    try:
        with path.open("wb", buffering=0) as file:
            for done in range(0, size_bytes, BLOCK_BYTES):
                block[:8] = np.frombuffer(done.to_bytes(8, "little"), np.uint8)
                file.write(block.data)
                progress(done + BLOCK_BYTES)
        flush(path)
    except OSError as error:
        raise RunError(f"{path}: {error.strerror}; --size asks for less") from error
    return time.perf_counter() - began
