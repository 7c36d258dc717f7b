"""How fast a device decodes packed edges: payloads that are made without packing anything, decoded into one array.

A made payload has random lanes of WIDTH bits and a few random exceptions in every block, about as a skewed graph's has;
any bits are ids, so nothing has to be packed first, which would take the packer's compiler.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.calibration.probes import best_seconds
from penstock.storage.base.rate_sample import RateSample
from penstock.storage.base.time_budget import TimeBudget
from penstock.storage.encoding.payload import BLOCK, HEADER_WORDS, LANES
from penstock.transfer.calibration.calibration import Samples
from penstock.transfer.devices.device import Device, Unpacker, UnpackRequest

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
