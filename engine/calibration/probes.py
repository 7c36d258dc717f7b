"""How each probe of a device is timed: the arena, the best of several runs, and one table for each rate.

Owns the time of kernels (`kernels/probes/` owns their work): seconds are the device's own, from events around a
launch, but for the launch itself, which is the host's time to give many. Refuses to decide which probes run.

Packed edges to decode are made without packing anything, which would take the packer's compiler: a made payload has
random lanes of WIDTH bits and a few random exceptions in every block, about as a skewed graph's has; any bits are ids.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.kernels.probes.host_probes import ROW_EDGES, RUNS, HostProbes, Probes
from penstock.storage.base.budget import cores
from penstock.storage.base.measurement import LEAST_SECONDS, RateSample, TimeBudget, doublings
from penstock.storage.encoding.payload import BLOCK, HEADER_WORDS, LANES
from penstock.storage.format.index import from_degrees
from penstock.transfer.calibration.calibration import Samples
from penstock.transfer.devices.device import Device, Unpacker, UnpackRequest
from penstock.transfer.staging.gather import ActiveRows, GatherSource, compacted_layout, count_rows, gather_rows
from penstock.transfer.staging.gather_buffers import MOST_THREADS, GatherBuffers
from penstock.transfer.values.task import partitions

PART_ROWS = 1 << 16
"""Rows of a partition of the gathering probe: 4 MiB of neighbors."""

SKEW = 6.64
"""Exponent by which half of all ids are in the first hundredth, as on R-MAT graphs (decisions/sweeps.md)."""
REPEATS = 7
ROUNDS = 4
"""Of a sweep, which takes milliseconds."""
BATCH = 32
"""Launches that are timed together."""


def arena_of(device: Device, size: int, vertices: int) -> NDArray[np.uint32]:
    """Return `size` bytes of random ids below `vertices` (a power of two), in memory the device copies from fast."""
    arena = device.host_array(size // 4, np.uint32)
    arena.view(np.uint64)[:] = np.random.default_rng(1).integers(0, 1 << 64, size // 8, np.uint64)
    arena &= np.uint32(vertices - 1)
    return arena


def best_seconds(device: Device, work: Callable[[], Any], seconds: float, clock: TimeBudget, threads: int = 0) -> float:
    """Run once untimed (kernels are compiled, pages touched), then up to REPEATS times within `seconds`; the best.

    threads: of the host's that work: what each was on a core counts, not what it waited for one.
    """
    work()
    device.finish()
    best, repeats, until = inf, 0, clock.until(seconds)
    while repeats < REPEATS and (not repeats or clock.now() + best < until):
        began, busy = device.event(None), time.process_time()
        work()
        ended, busy = device.event(None), time.process_time() - busy
        device.wait(ended)
        best = min(best, device.seconds(began, ended), busy / threads if threads else inf)
        repeats += 1
    return max(LEAST_SECONDS, best)


def lines(device: Device, probes: Probes, words: Any, seconds: float, clock: TimeBudget) -> Samples:
    """Lines per second read in place at ascending addresses, by the bytes of a run; `words`: uint32, mapped."""
    samples: list[RateSample] = []
    for runs in RUNS:
        count = runs.lines_in(len(words) * 4)
        if count and (not samples or clock.left > 0):
            work = partial(probes.read, words, runs, count)
            samples.append(RateSample(runs.bytes, count, best_seconds(device, work, seconds / len(RUNS), clock)))
    return tuple(samples)


def pull(device: Device, probes: Probes, arrays: tuple[Any, Any], seconds: float, clock: TimeBudget) -> Samples:
    """Edges per second of a sweep over (neighbors, values): by threads of the host's, one sample at 0 on a GPU."""
    edges, samples = len(arrays[0]), list[RateSample]()
    for threads in doublings(cores()) if probes.threaded else (0,):
        if not samples or clock.left > 0:
            work = partial(probes.pull, *arrays, edges, threads)
            samples.append(RateSample(threads, edges, best_seconds(device, work, seconds, clock, threads)))
    return tuple(samples)


def skewed_ids(edges: int, vertices: int) -> NDArray[np.uint32]:
    """Return ids of sources as edges have them where sources are grouped: half are in the first hundredth."""
    shares = np.random.default_rng(2).random(edges, dtype=np.float32) ** np.float32(SKEW)
    return (shares * np.float32(vertices - 1)).astype(np.uint32)


def sweep(probes: HostProbes, arrays: tuple[Any, Any], seconds: float, clock: TimeBudget) -> Samples:
    """Edges per second of a sweep over (neighbors, values) that asks for values ahead, by threads of the host's."""
    host, edges, samples = Device(), len(arrays[0]), list[RateSample]()
    for threads in doublings(cores()):
        if not samples or clock.left > 0:
            work = partial(probes.sweep, *arrays, edges, threads)
            best = min(best_seconds(host, work, seconds / ROUNDS, clock, threads) for _ in range(ROUNDS))
            samples.append(RateSample(threads, edges, best))
    return tuple(samples)


def launch(device: Device, probes: Probes, seconds: float, clock: TimeBudget) -> Samples:
    """Launches per second, BATCH of them one after the other without waiting; the best batch."""
    probes.launch()
    device.finish()
    best, repeats, until = float("inf"), 0, clock.until(seconds)
    while repeats < REPEATS and (not repeats or clock.now() < until):
        began = clock.now()
        for _ in range(BATCH):
            probes.launch()
        device.finish()
        best = min(best, clock.now() - began)
        repeats += 1
    return (RateSample(BATCH, BATCH, best),)


def gather(host: Device, source: NDArray[np.uint32], seconds: float, clock: TimeBudget) -> Samples:
    """Bytes per second of every other row of `source`, gathered by the threads of route compaction, by their number."""
    samples = list[RateSample]()
    parts, target = gathering(source)
    for threads in doublings(min(cores(), MOST_THREADS)):
        if not samples or clock.left > 0:
            packs = GatherBuffers(Device(), 0, 0, (np.uint32, None), threads)
            took = best_seconds(host, partial(_all_of, packs, parts), seconds, clock, threads)
            packs.close()
            samples.append(RateSample(threads, target.nbytes, took))
    return tuple(samples)


def _all_of(packs: GatherBuffers, parts: Sequence[Callable[[], None]]) -> None:
    for done in [packs.submit(part) for part in parts]:
        done.result()


def gathering(source: NDArray[np.uint32]) -> tuple[Sequence[Callable[[], None]], NDArray[np.uint32]]:
    """Every other row of ROW_EDGES edges, in partitions of PART_ROWS rows: parts to call, and what these fill.

    `source` holds two rows or more.
    """
    rows = len(source) // ROW_EDGES // 2 * 2
    index = from_degrees(rows, lambda: iter((np.full(rows, ROW_EDGES),)))
    active = ActiveRows(np.full(-(-rows // 32), 0x55555555, np.uint32), index.arrays())
    edges = GatherSource(source, None, 0)
    table = partitions(index, "out", rows * ROW_EDGES, PART_ROWS * ROW_EDGES, ROW_EDGES)
    counts = [count_rows(active, table[number]) for number in range(len(table))]
    plan = compacted_layout(*np.array(counts).T)
    target = np.empty(plan.words, np.uint32)
    whole = (*plan.slices(target), None)
    parts = [
        partial(gather_rows, active, table[number], edges, plan.place(number), whole) for number in range(len(table))
    ]
    return parts, target


WIDTH, HIGH_WIDTH, EXCEPTIONS = 15, 8, 8
ID_BITS = 24
BLOCK_WORDS = LANES * WIDTH + EXCEPTIONS // 4 + EXCEPTIONS * HIGH_WIDTH // 32
CHUNK_EDGES = 1 << 18
"""Edges of a chunk, as conversion cuts them, where there is room for several."""
CHUNKS = (1, 4, 16, 64)
"""Chunks decoded at once: one shows what a launch takes, many the rate."""


def made_payload(edges: int) -> NDArray[np.uint32]:
    """A payload of so many ids, a multiple of BLOCK, below 2^ID_BITS."""
    blocks = edges // BLOCK
    data = HEADER_WORDS + 3 * blocks
    words = np.zeros(data + BLOCK_WORDS * blocks + LANES, np.uint32)
    words[:HEADER_WORDS] = edges, ID_BITS, blocks, len(words) - LANES
    words[data - blocks : data] = WIDTH | HIGH_WIDTH << 6 | EXCEPTIONS << 12
    words[data:-LANES] = np.random.default_rng(1).integers(0, 1 << 32, BLOCK_WORDS * blocks, np.uint32)
    return words


def unpack_rates(device: Device, unpacker: Unpacker, size: int, seconds: float, clock: TimeBudget) -> Samples:
    """Ids per second by how many are decoded at once, into at most `size` bytes of the device."""
    chunk = min(CHUNK_EDGES, size // (4 * CHUNKS[1]) // BLOCK * BLOCK)
    counts = [count for count in CHUNKS if 4 * count * chunk <= size]
    payload = made_payload(chunk)
    words = device.to_device(np.tile(payload, counts[-1]))
    starts = device.to_device(np.arange(counts[-1] + 1) * len(payload))
    out: Any = device.array(counts[-1] * chunk, np.uint32)
    samples = list[RateSample]()
    for count in (counts[-1], *counts[:-1]):  # two samples at least: of one alone, what a launch takes counts as edges
        if len(samples) < 2 or clock.left > 0:
            edges = counts[-1] * chunk
            request = UnpackRequest(words, 0, starts, 0, count, chunk, edges, out, 0, 1 << ID_BITS, False, None)
            work = partial(unpacker.unpack, request, None)
            took = best_seconds(device, work, seconds / len(counts), clock)
            samples.append(RateSample(count * chunk, count * chunk, took))
    unpacker.check()
    return tuple(sorted(samples, key=lambda sample: sample.at))
