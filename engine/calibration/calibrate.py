"""One calibration of this machine, from an arena of random ids to rates.

One arena in host memory serves every probe: its bytes are copied to the device, its lines are read in place, its words
are the ids that the pull sweeps over and that are gathered. Each probe has a share of the time and begins only if what
it may take at its worst (compiling its kernel included) is left; otherwise `Calibration.missing` names it and its rate
is the built-in one. Owns the order and the shares. Refuses to store anything (tools/run/rates.py does).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray
from penstock.engine.calibration import probes as timing
from penstock.engine.calibration.material import Material, machine_facts
from penstock.engine.calibration.probes import unpack_rates
from penstock.engine.kernels.ahead.choice import probes_of
from penstock.engine.kernels.packed.unpackers import unpacker_of
from penstock.engine.kernels.probes.host_probes import HostProbes, Probes
from penstock.storage.base.budget import available_memory, cores
from penstock.storage.base.errors import InputError
from penstock.storage.base.measurement import RateSample, TimeBudget, doublings
from penstock.storage.format.read_plan import read_threads
from penstock.storage.read.disk_probe import RUN_BYTES, DiskBlocks, DiskProbe, direct_files, spread
from penstock.storage.read.probes import PLACES, decode_rates, made_chunks, stored_chunks
from penstock.transfer.calibration.calibration import Calibration, Samples, copy_rates, derive, fastest
from penstock.transfer.devices.device import Device

QUICK_SECONDS = 1.5
"""Of all probes together; what is left of two seconds is for loading this, finding the device, storing the result."""
QUICK_ARENA = 64 << 20
ARENA = 1 << 30
LEAST_ARENA = 1 << 20
COMPILE_SECONDS = 0.4
"""What a probe's kernel may take to compile, the first time on a machine."""
FIRST_COMPILE_SECONDS = 0.9
"""What a GPU's first may, which wakes its compiler."""
DECODE_SECONDS = 1.0
"""What the decoder may."""
MOST_VERTICES = 1 << 24
"""Those that a pull reads from: 8 bytes each, more than caches hold."""
SWEEP_EDGES, SWEEP_VERTICES = 1 << 24, 1 << 22
"""Those of the sweep that is measured, at most."""
CHUNKS = 8
CHUNK_BYTES = 1 << 20
"""Of a decoded chunk."""
QUEUES = (1, 2, 4, 8)
"""Reads in flight, beside as many as a reader has."""
READ_BYTES = 2 << 20
LEAST_BYTES = 16 << 20
"""Shorter files say nothing about their disk."""
DISK_SHARES = 2
"""Probes' shares of the time that the disk has: half of it for as many reads as a reader has."""
LEFT_OUT = "no time left"


@dataclass(frozen=True)
class Effort:
    """How much to measure: `seconds` in all (None: no limit), `each` probe's share, bytes of the arena.

    The memory taken is up to two and a half times the arena's.
    """

    seconds: float | None
    each: float
    arena_bytes: int

    @classmethod
    def quick(cls, memory_bytes: int | None = None) -> Effort:
        """At most two seconds in all. memory_bytes: a ceiling (what is free), of which a third is taken at most."""
        return cls(QUICK_SECONDS, 0.1, _power_below(QUICK_ARENA, memory_bytes))

    @classmethod
    def full(cls, memory_bytes: int | None = None) -> Effort:
        """About a second for each probe, and for each number of threads."""
        return cls(None, 1.0, _power_below(ARENA, memory_bytes))


def _power_below(wanted: int, memory_bytes: int | None) -> int:
    """Return `wanted`, or an eighth of the memory rounded down to a power of two, but never below LEAST_ARENA."""
    eighth = (available_memory() if memory_bytes is None else memory_bytes) // 8
    return max(LEAST_ARENA, min(wanted, 1 << max(0, eighth.bit_length() - 1)))


@dataclass
class _Found:
    """What has been measured so far."""

    clock: TimeBudget
    tables: dict[str, Samples] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def keep(self, table: str, seconds: float, probe: Callable[[], Samples]) -> None:
        """Run a probe if `seconds` are left for it, and keep what it finds."""
        if not self.clock.allows(seconds):
            self.missing[table] = LEFT_OUT
            return
        try:
            samples = probe()
        except InputError as error:
            self.missing[table] = str(error)
            return
        if samples:
            self.tables[table] = samples
        else:
            self.missing[table] = LEFT_OUT


def calibrate(
    device: Device,
    effort: Effort,
    material: Material,
    *,
    kernels: str = "host",
    clock: TimeBudget | None = None,
) -> Calibration:
    """Measure everything that `Rates` holds, on one device and on every core of this host.

    kernels: the option, by which an emulated device may run a GPU's (under numba's simulator). clock: in place of one
    of `effort.seconds` from now. The device stays open. Raises RunError when a copy or a read fails.
    """
    found, threads = _Found(clock or TimeBudget(effort.seconds)), cores()
    device.use()
    if device.reads_host:  # what comes from disk matters most where nothing crosses a link, and least where it does
        _measure_storage(material, effort, found)
    with closing(probes_of(device, threads, kernels)) as probes:
        arena = _measure_device(device, probes, effort, found)
    if device.reads_host:
        _measure_sweep(HostProbes(threads), effort, found)
    else:
        _measure_unpacking(device, effort, found, kernels)
        _measure_storage(material, effort, found)
    found.keep("gather", COMPILE_SECONDS, lambda: timing.gather(Device(), arena, effort.each, found.clock))
    disk = found.tables.pop("disk", ())
    return Calibration(
        machine=machine_facts(device),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        quick=effort.seconds is not None,
        seconds=found.clock.spent,
        threads=threads,
        rates=derive(device.rates(threads), found.tables, disk, threads),
        tables=found.tables,
        disks={material.disk: disk} if disk else {},
        missing=found.missing,
    )


def _arena_bytes(device: Device, effort: Effort) -> int:
    return min(effort.arena_bytes, _power_below(effort.arena_bytes, device.memory_bytes))


def _measure_device(device: Device, probes: Probes, effort: Effort, found: _Found) -> NDArray[np.uint32]:
    """Copies, lines in place, the pull and its launch: whatever runs between the arena and the device."""
    clock, size = found.clock, _arena_bytes(device, effort)
    vertices = min(MOST_VERTICES, size // 8)
    arena = neighbors = timing.arena_of(device, size, vertices)
    travel = 0.0
    if not device.reads_host:
        neighbors = device.array(len(arena), np.uint32)
        ends = neighbors.view(np.uint8), arena.view(np.uint8)
        found.keep("copy", 0.0, lambda: copy_rates(device, *ends, effort.each, clock))
        words = device.mapped(arena)
        found.keep("lines", FIRST_COMPILE_SECONDS, lambda: timing.lines(device, probes, words, effort.each, clock))
        travel = size / fastest(found.tables["copy"]) if "copy" in found.tables else 0.0

    def sweep() -> Samples:
        if neighbors is not arena:
            stream = device.stream()
            device.copy_in(neighbors, arena, stream)
            device.follow(device.event(stream))
        values = device.to_device(np.ones(vertices))
        return timing.pull(device, probes, (neighbors, values), effort.each, clock)

    found.keep("kernel", COMPILE_SECONDS + travel, sweep)
    if "kernel" in found.tables:  # the same kernel, with nothing to do
        found.keep("launch", 0.0, lambda: timing.launch(device, probes, effort.each, clock))
    else:
        found.missing["launch"] = LEFT_OUT
    return arena


def _measure_sweep(probes: HostProbes, effort: Effort, found: _Found) -> None:
    """What sweeps do on edges that stay, with their messages grouped."""
    edges = min(SWEEP_EDGES, effort.arena_bytes // 16)
    vertices = min(SWEEP_VERTICES, edges)

    def sweep() -> Samples:
        arrays = timing.skewed_ids(edges, vertices), np.ones(vertices)
        return timing.sweep(probes, arrays, effort.each, found.clock)

    found.keep("sweep", COMPILE_SECONDS, sweep)


def _measure_unpacking(device: Device, effort: Effort, found: _Found, kernels: str) -> None:
    unpacker, size = unpacker_of(device, kernels), _arena_bytes(device, effort)
    found.keep("unpack", FIRST_COMPILE_SECONDS, lambda: unpack_rates(device, unpacker, size, effort.each, found.clock))


def _measure_storage(material: Material, effort: Effort, found: _Found) -> None:
    found.keep("disk", 0.0, lambda: disk_rates(material, effort, found.clock))
    found.keep("decode", DECODE_SECONDS, lambda: decode_rates_of(material, effort, found.clock))


def disk_rates(material: Material, effort: Effort, clock: TimeBudget) -> Samples:
    """Bytes per second of direct reads by reads in flight, the last as many as a reader has under way.

    They are spread over the files that hold the edges, in order for RUN_BYTES, as those of a sweep. Raises InputError
    where no files are named, they are too short, or their file system takes no direct reads.
    """
    if not material.files:
        raise InputError("no file or folder on the disk is named")
    opened, stretches = material.reads()
    blocks = DiskBlocks(stretches, READ_BYTES)
    if blocks.nbytes < LEAST_BYTES:
        raise InputError(f"{material.files[0]} is too short to tell: {LEAST_BYTES >> 20} MiB are needed")
    most = read_threads(len(material.files), cores())
    depths = [depth for depth in QUEUES if depth < most] + [most]
    depths = [depth for depth in depths if depth == 1 or depth * READ_BYTES <= effort.arena_bytes]
    samples: list[RateSample] = []
    with direct_files(opened) as files:
        disk = DiskProbe(files, depths[-1] * READ_BYTES)
        for depth in depths:
            share = effort.each * (DISK_SHARES / 2 if depth == depths[-1] else DISK_SHARES / 2 / len(QUEUES))
            order = spread(len(blocks), RUN_BYTES // READ_BYTES, depth)
            sample = disk.rate(blocks, order, depth, min(share, clock.left))
            if sample.amount:
                samples.append(sample)
    return tuple(samples)


def decode_rates_of(material: Material, effort: Effort, clock: TimeBudget) -> Samples:
    """Decoded bytes per second by threads: of the graph's own chunks, or of made ones where there is time to encode.

    Raises InputError where there is neither.
    """
    chunks = [] if material.graph is None else stored_chunks(material.graph, CHUNKS)
    if not chunks and effort.seconds is not None:
        raise InputError("no graph file is named whose chunks could be decoded")
    held = PLACES * CHUNK_BYTES  # what a thread decodes into
    threads = [count for count in doublings(cores()) if count * held <= effort.arena_bytes]
    return decode_rates(chunks or made_chunks(CHUNKS), threads or [1], effort.each / 2, clock)
