"""What a disk gives, and what of it a sweep takes: all measurements of `bench disk`.

Raw reads first, by order, size and reads in flight. Then, in turns, so that a disk whose rate changes is fair to all:
the fastest of them again, the reads of a sweep raw, by a `Reader` that fetches payloads (where the file tells their
sizes), and by one that decodes. Every measurement is spread over the whole file: reads in order are so for 64 MiB, and
then at another place.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from penstock.storage.base.budget import cores
from penstock.storage.base.measurement import RateSample
from penstock.storage.format.graph import Graph
from penstock.storage.format.read_plan import ReadRange
from penstock.storage.read.disk_probe import RUN_BYTES, DiskBlocks, DiskProbe, Files, edge_stretches, spread
from penstock.storage.read.probes import SweepProbe
from penstock.storage.read.reader import Reader

DEPTHS = (1, 2, 4, 8, 16, 32)
SIZES = (128 << 10, 1 << 20, 4 << 20, 16 << 20)
IN_ORDER = "in order"
ORDERS = (IN_ORDER, "scattered")
MOST_BUFFERS = 256 << 20
"""More reads in flight than have buffers of this together are not measured."""
CASES = [(order, size, depth) for order in ORDERS for size in SIZES for depth in DEPTHS if depth * size <= MOST_BUFFERS]
BEST, RAW, PAYLOADS, DECODED = "best", "raw", "payloads", "decoded"
PARTS = (BEST, RAW, PAYLOADS, DECODED)
TURNS = 3
LIMITED = 0.9
"""A reader that takes this share of what the disk gives is limited by the disk."""
Advance = Callable[[], None]


@dataclass(frozen=True, slots=True)
class RawRead:
    """One measurement of raw reads."""

    order: str
    block_bytes: int
    sample: RateSample


@dataclass(frozen=True, slots=True)
class SweepPart:
    """What was read in some way, and the processor's seconds that this took. read_bytes: the mean size of a read."""

    read_bytes: float
    read: RateSample
    cpu_seconds: float

    def __add__(self, other: SweepPart) -> SweepPart:
        read = RateSample(self.read.at, self.read.amount + other.read.amount, self.read.seconds + other.read.seconds)
        return SweepPart(self.read_bytes, read, self.cpu_seconds + other.cpu_seconds)

    @property
    def cpu(self) -> float:
        """The share of all cores' time."""
        return self.cpu_seconds / (self.read.seconds * cores())


def verdict(parts: Mapping[str, SweepPart]) -> str:
    """Return what limits a sweep from a disk, by the parts named in PARTS."""
    best, raw, decoded = (parts[name].read.rate for name in (BEST, RAW, DECODED))
    packed = parts[PAYLOADS].read.rate if PAYLOADS in parts else 0.0
    beside = f" ({packed / best:.0%} where edges stay packed)" if packed else ""
    taken = f"a sweep takes {decoded / best:.0%}{beside} of what the disk gives at its best"
    if decoded >= LIMITED * best:
        return f"the disk limits: {taken}"
    if decoded >= LIMITED * raw:
        return f"the size or the number of reads limits: {taken}, its reads without decoding {raw / best:.0%}"
    return f"the reader limits: {taken}, its reads without decoding {raw / best:.0%}"


def raw_reads(files: Files, stretches: Sequence[ReadRange], seconds: float, advance: Advance) -> list[RawRead]:
    """Read stretches of files in every one of CASES, `seconds` in all."""
    disk, blocks = DiskProbe(files, MOST_BUFFERS), {size: DiskBlocks(stretches, size) for size in SIZES}
    found: list[RawRead] = []
    for number, (order, size, depth) in enumerate(CASES):
        ranges = blocks[size]
        turns = spread(len(ranges), _run(order, size), number)
        found.append(RawRead(order, size, disk.rate(ranges, turns, depth, seconds / len(CASES))))
        advance()
    return found


def _run(order: str, size: float) -> int:
    """How many reads of this size follow one another."""
    return max(1, int(RUN_BYTES / size)) if order == IN_ORDER else 1


def sweep_parts(
    graph: Graph, files: Files, best: RawRead, limits: tuple[float, int], advance: Advance
) -> dict[str, SweepPart]:
    """Read parts of a graph file in every way of PARTS, in turns; limits: seconds in all, threads that decode."""
    (seconds, threads), adjacency = limits, graph.into or graph.out
    probes = {DECODED: SweepProbe(adjacency)}
    if adjacency.payload_words(False) is not None:
        probes[PAYLOADS] = SweepProbe(adjacency, payloads=True)
    partitions = probes[DECODED].partitions
    reads = [read for number in range(partitions) for read in probes[DECODED].reads(number, threads)]
    mean = sum(one.needed for one in reads) / len(reads)
    sizes = {BEST: float(best.block_bytes), RAW: mean} | dict.fromkeys((n for n in PARTS if n in probes), mean)
    blocks = DiskBlocks(edge_stretches(graph), best.block_bytes)
    with Reader(graph, decode_threads=threads, direct_io=True) as reader:
        longest = reader.threads * max(read.length for read in reads)
        disk = DiskProbe(files, max(longest, best.sample.at * best.block_bytes))

        def read(name: str, turn: int, share: float) -> RateSample:
            if name in probes:
                return probes[name].run(reader, turn * partitions // TURNS, share)
            ranges: Sequence[ReadRange] = blocks
            order, in_flight = best.order, best.sample.at
            if name == RAW:
                ranges, order, in_flight = reads, IN_ORDER, reader.threads
            turns = spread(len(ranges), _run(order, sizes[name]), len(CASES) + turn)
            return disk.rate(ranges, turns, in_flight, share)

        return _in_turns(sizes, read, seconds, advance)


def _in_turns(
    sizes: Mapping[str, float], read: Callable[[str, int, float], RateSample], seconds: float, advance: Advance
) -> dict[str, SweepPart]:
    """Call `read` with every name of `sizes`, a turn and a share of `seconds`, in TURNS turns."""
    parts: dict[str, SweepPart] = {}
    for name in sizes:
        read(name, 0, 0.0)  # decoders are compiled, or loaded, before anything counts
    for turn in range(TURNS):
        for name, size in sizes.items():
            cpu = time.process_time()
            sample = read(name, turn, seconds / (TURNS * len(sizes)))
            part = SweepPart(size, sample, time.process_time() - cpu)
            parts[name] = parts[name] + part if name in parts else part
            advance()
    return parts
