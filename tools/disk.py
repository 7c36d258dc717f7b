"""Owns how the disk's rate is measured: direct reads of a file just written, several in flight.

The page cache is bypassed (O_DIRECT), so that the figure is the disk's and not the memory's. Refuses
to guess: where the file system takes no direct reads, that is an error, not a number.
"""

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
from penstock.storage.atomic import flush
from penstock.storage.errors import InputError, RunError
from penstock.storage.slots import aligned_empty

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


def measure(path: Path, block_bytes: int, in_flight: int, most_bytes: int) -> DiskRate:
    """Read a file's blocks in a scattered order with ``in_flight`` threads, each block once.

    Raises:
        InputError: the file system takes no direct reads.
    """
    blocks = max(1, min(path.stat().st_size, most_bytes) // block_bytes)
    order = np.random.default_rng(block_bytes + in_flight).permutation(blocks)
    turn = count()

    def read(worker: int) -> int:
        done = 0
        buffer = aligned_empty(block_bytes, np.uint8)
        with open(path, "rb", buffering=0, opener=_open_direct) as file:
            while (mine := next(turn)) < blocks:
                file.seek(int(order[mine]) * block_bytes)
                done += file.readinto(buffer.data) or 0
        return done

    began = time.perf_counter()
    with ThreadPoolExecutor(in_flight) as pool:
        total = sum(pool.map(read, range(in_flight)))
    return DiskRate(block_bytes, in_flight, total, time.perf_counter() - began)


def _open_direct(path: str, flags: int) -> int:
    try:
        return os.open(path, flags | getattr(os, "O_DIRECT", 0))
    except OSError as error:
        raise InputError(
            f"{path}: no direct reads here ({error.strerror}); --folder names one on another disk"
        ) from error
