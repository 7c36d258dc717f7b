"""Measures the disk's rate: direct reads of files, scattered, several in flight.

The page cache is bypassed (O_DIRECT), so that the figure is the disk's and not the memory's; where the file system
takes no direct reads, that is an error and not a number.
"""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from io import FileIO
from itertools import count
from pathlib import Path

import numpy as np
from penstock.storage.base.atomic import flush
from penstock.storage.base.errors import InputError, RunError
from penstock.storage.base.slot_pool import aligned_empty
from penstock.storage.base.threads import ThreadPool

BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class DiskRate:
    """Bytes read directly in so many seconds, with so many reads of so many bytes in flight."""

    block_bytes: int
    in_flight: int
    bytes: int
    seconds: float

    @property
    def bytes_per_second(self) -> float:
        """The rate."""
        return self.bytes / self.seconds


def write_probe(path: Path, size_bytes: int, progress: Callable[[int], None]) -> float:
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


def measure(
    paths: Sequence[Path], block_bytes: int, in_flight: int, most_bytes: int, most_seconds: float = float("inf")
) -> DiskRate:
    """Read whole blocks of files in a scattered order with ``in_flight`` threads, each block once.

    No read begins after ``most_bytes`` of them or ``most_seconds``; several files (the shards of a striped
    graph) are read at the same time.

    Raises:
        InputError: the file system takes no direct reads.
    """
    blocks = [(path, number) for path in paths for number in range(path.stat().st_size // block_bytes)]
    rng = np.random.default_rng(block_bytes + in_flight)
    order = rng.permutation(len(blocks))[: max(1, most_bytes // block_bytes)]
    turn = count()
    began = time.perf_counter()

    def read(worker: int) -> int:
        done = 0
        buffer = aligned_empty(block_bytes, np.uint8)
        with ExitStack() as stack:
            files = {path: stack.enter_context(FileIO(path, "rb", opener=_open_direct)) for path in paths}
            while (mine := next(turn)) < len(order) and time.perf_counter() - began < most_seconds:
                path, number = blocks[int(order[mine])]
                files[path].seek(number * block_bytes)
                done += files[path].readinto(buffer.data) or 0
        return done

    with ThreadPool(in_flight, "read") as pool:
        total = sum(pool.map(read, range(in_flight)))
    return DiskRate(block_bytes, in_flight, total, time.perf_counter() - began)


def _open_direct(path: str, flags: int) -> int:
    try:
        return os.open(path, flags | getattr(os, "O_DIRECT", 0))
    except OSError as error:
        raise InputError(
            f"{path}: no direct reads here ({error.strerror}); name a place on another disk "
            "(bench disk --folder, calibrate --file)"
        ) from error
