"""What a sweep over a graph that need not exist would take of so many ranks: memory, seconds, what limits them, price.

Pure: numbers in, values out. As in Lux (VLDB 2017, section 6) a rank has an equal share of the edges, and loads,
decodes and walks it, all at the same time; then new values are exchanged. Vertex state is in every rank; where ranks of
cores have no memory for it, the plan is that of a run (`requirements.py`, `forecast.py`) with values in a file of each.
`Machine` is checked as it is read from TOML.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from penstock.engine.planning.forecast import Sweep, index_disk_bytes
from penstock.engine.planning.rank_forecast import RankLink, exchange_seconds, exchanged_bytes, vertex_seconds
from penstock.engine.planning.requirements import RunSetting, planned, windows_of
from penstock.engine.program.program import Program, author_function, has_phases, needs_rows
from penstock.engine.resources.config import Config
from penstock.engine.state.device_state import device_state_bytes
from penstock.engine.state.state import bitmap_bytes, state_bytes
from penstock.storage.base.budget import parse_bytes
from penstock.storage.base.errors import BudgetError, InputError
from penstock.storage.format.frames import Frames
from penstock.storage.format.graph import Adjacency, Graph
from penstock.storage.format.row_pages import page_rows
from penstock.storage.format.schema import CHUNK_EDGES, CHUNK_VERTICES, ArraySpec, window_name
from penstock.transfer.values.cost import Cost
from penstock.transfer.values.rates import Rates

EXAMPLE = """\
# One host of eight GPUs. Rates are per second; sizes are bytes, or text such as "130GiB".
ranks_per_host = 8
disk_bytes = 13e9            # of a host: its ranks share the disks
host_memory = "1.5TiB"       # of a host
host_bytes = 300e9           # memory bandwidth of a host; left out: it never limits
device_memory = "130GiB"     # of a rank; leave this and the next two out for CPU ranks, whose kernels decode
copy_bytes = 53e9            # of a rank's link from host memory
unpack_edges = 150e9         # packed edges that a rank decodes
kernel_edges = 22e9          # edges that a rank's kernels walk
local_bytes = 100e9          # that a rank receives from ranks of its host; left out: as from other hosts
network_bytes = 25e9         # that a host receives from other hosts
network_latency = 10e-6      # seconds of a message
threads = 8                  # of a rank; they count where values of vertices are in a file
price_per_hour = 30.0        # of a host; may be left out
"""
PAPER_ROW_BYTES = 0.7
"""Bytes of a row's degree on disk: 11.4 MB for 16.8 M rows (R-MAT 24 x 2)."""
SIZES = ("host_memory", "device_memory")


@dataclass(frozen=True)
class Machine:
    """Hosts of several ranks each; `EXAMPLE` says what each value is. device_memory 0: the ranks are CPU cores."""

    ranks_per_host: int
    disk_bytes: float
    host_memory: int
    kernel_edges: float
    network_bytes: float
    network_latency: float
    host_bytes: float = math.inf
    device_memory: int = 0
    copy_bytes: float = math.inf
    unpack_edges: float = math.inf
    local_bytes: float | None = None
    threads: int = 8
    price_per_hour: float | None = None

    def link(self, hosts: int) -> RankLink:
        """What carries values between ranks on so many hosts."""
        received = self.network_bytes if hosts > 1 or self.local_bytes is None else self.local_bytes
        return RankLink(received, self.network_latency)

    @classmethod
    def of(cls, content: Mapping[str, Any], source: object) -> Machine:
        """Of a file's keys and values; source: its name for messages. Raises InputError."""
        known = {field.name: field for field in fields(cls)}
        for key in content:
            if key not in known:
                raise InputError(f"{source}: {key} is no key of a machine: take one of {', '.join(known)}")
        needed = list(known)[: list(known).index("host_bytes")] + (["copy_bytes"] if "device_memory" in content else [])
        for key in needed:
            if key not in content:
                raise InputError(
                    f"{source}: {key} is missing: add {key} = NUMBER, as in `penstock plan --write-example`"
                )
        return cls(**{key: _value(key, value, source) for key, value in content.items()})


def _value(key: str, value: Any, source: object) -> Any:
    """A checked value. Raises InputError naming the key."""
    if key in SIZES and isinstance(value, str):
        try:
            return parse_bytes(value)
        except InputError as error:
            raise InputError(f"{source}: {key}: {error}") from error
    whole = key in ("ranks_per_host", "threads")
    number = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
    low = key in ("network_latency", "price_per_hour")
    if not number or not math.isfinite(value) or not (value >= 0 if low else value > 0):
        wanted = "a whole number" if whole else "a number"
        raise InputError(f"{source}: {key} is {value!r}: give {wanted} {'of at least' if low else 'above'} 0")
    return int(value) if key in SIZES else value


INDEX_BYTES = 8
"""A vertex' entries in two row indexes: its degree, and its in-edges."""


@dataclass(frozen=True)
class SweepWork:
    """A sweep: its edges and their stored bytes, memory that every rank takes besides edges, bytes handed out."""

    edges: float
    edge_bytes: float
    rank_bytes: int
    exchanged: int

    @classmethod
    def of(cls, program: Program, vertices: int, edges: float, bytes_per_edge: float) -> SweepWork:
        """Of a program that pulls along every edge in every iteration. Raises InputError for others."""
        pulls = program.everywhere and author_function(program, "send") is not None and program.combine != "union"
        if not pulls or needs_rows(program) or has_phases(program):
            raise InputError(
                f"--program: {type(program).__name__} does not walk every edge in every iteration, one message each; "
                "a plan is for programs that do, such as pagerank"
            )
        dtype = np.dtype(np.uint32 if vertices <= 1 << 32 else np.uint64)
        held = state_bytes(program, vertices, dtype, apart=True) + bitmap_bytes(vertices)
        held += device_state_bytes(program, vertices, dtype) + INDEX_BYTES * vertices
        handed = exchanged_bytes(program, "pull", vertices, dtype.itemsize)
        return cls(edges, edges * bytes_per_edge, held, handed)


@dataclass(frozen=True)
class RankPlan:
    """A sweep by so many ranks.

    memory: bytes that a rank takes with its edges. places: its edges' bytes on the device, in host memory, on disk.
    lacking: why state does not fit, and what would; None where it does. costs: seconds by resource, at the same time.
    price: of a sweep; None where machines have none. windows: of vertices, for which edges are read edge_reads times,
    with value_bytes read from their file and written to it in value_seconds; 0 where memory has all values.
    """

    ranks: int
    hosts: int
    memory: float
    places: dict[str, float]
    lacking: str | None
    costs: dict[str, float]
    exchange: float
    price: float | None
    windows: int = 0
    edge_reads: int = 1
    value_bytes: int = 0
    value_seconds: float = 0.0

    @property
    def seconds(self) -> float:
        """Of a sweep: the busiest resource's, then those of what follows: the exchange, values from a file."""
        return max(self.costs.values()) + self.exchange + self.value_seconds

    @property
    def limit(self) -> str:
        """The resource that takes longest."""
        each = self.costs | {"exchange": self.exchange, "values": self.value_seconds}
        return max(each, key=lambda name: each[name])


def plan_ranks(work: SweepWork, machine: Machine, ranks: int) -> RankPlan:
    """Predict a later sweep, when every edge that stays in memory is there."""
    local = min(ranks, machine.ranks_per_host)
    hosts = -(-ranks // machine.ranks_per_host)
    share = work.edge_bytes / ranks
    host_room = machine.host_memory / local - work.rank_bytes
    device_room = machine.device_memory - work.rank_bytes if machine.device_memory else 0.0
    on_device = min(share, max(0.0, device_room))
    on_host = min(share - on_device, max(0.0, host_room))
    on_disk = share - on_device - on_host
    edges = work.edges / ranks
    brought = share - on_device
    costs = {
        "disk": on_disk * local / machine.disk_bytes,
        "host memory": brought * local / machine.host_bytes,
        "link": brought / machine.copy_bytes,
        "unpack": edges / machine.unpack_edges,
        "kernel": edges / machine.kernel_edges,
    }
    exchange = exchange_seconds(work.exchanged, ranks, machine.link(hosts))
    price = None
    if machine.price_per_hour is not None:
        price = machine.price_per_hour * hosts * (max(costs.values()) + exchange) / 3600
    return RankPlan(
        ranks,
        hosts,
        work.rank_bytes + share,
        {"device": on_device, "host": on_host, "disk": on_disk},
        _lacking(work.rank_bytes, machine, local, device_room, host_room),
        costs,
        exchange,
        price,
    )


def plan_run(program: Program, graph: Graph, machine: Machine, ranks: int = 1) -> RankPlan:
    """Predict a later sweep of ranks of cores as their run would plan it: with less memory than `SweepWork` takes."""
    local, hosts = min(ranks, machine.ranks_per_host), -(-ranks // machine.ranks_per_host)
    config = Config(host_memory=machine.host_memory // local, threads=machine.threads)
    try:
        _, (asks, *_), plan = planned(graph, program, RunSetting(config, ranks=ranks))
    except BudgetError as error:
        return RankPlan(ranks, hosts, 0.0, {}, str(error), {}, 0.0, None)
    needs = plan.needs
    rates = Rates(disk_bytes=machine.disk_bytes / local, kernel_edges=machine.kernel_edges)
    stored, edges = int(graph.out.chunk_bytes(with_weights=False).sum()) // ranks, graph.edges // ranks
    kept = 0 if needs.value_room else max(0, min(stored, config.memory_bytes - needs.fixed))
    read, computed = stored - kept, graph.vertices
    sweep = Sweep(Cost(disk=read / rates.disk_bytes, kernel=edges / rates.kernel_edges), read, 0, {}, edges=edges)
    windows, reads, moved = 0, 1, 0
    if needs.value_room:
        cut, moved = windows_of(graph, asks, needs, "push", ranks)
        windows, reads, computed = cut.count, cut.reads, graph.vertices // ranks
        sweep = sweep.by_windows(cut, moved, computed, index_disk_bytes(needs, cut) // ranks, rates, rates.disk_bytes)
    costs = {"disk": sweep.cost.disk, "kernel": sweep.cost.kernel + vertex_seconds(computed, machine.threads)}
    places = {"device": 0.0, "host": float(kept), "disk": float(read)}
    handed = exchanged_bytes(program, "pull", graph.vertices, graph.vertex_dtype.itemsize)
    exchange = exchange_seconds(handed, ranks, machine.link(hosts))
    found = RankPlan(
        ranks, hosts, needs.fixed + kept, places, None, costs, exchange, None, windows, reads, moved,
        sweep.value_seconds,
    )  # fmt: skip
    hour = machine.price_per_hour
    return found if hour is None else replace(found, price=hour * hosts * found.seconds / 3600)


def _lacking(rank_bytes: int, machine: Machine, local: int, device_room: float, host_room: float) -> str | None:
    """Why vertex state does not fit in memory, and what would: more ranks do not help, since each has all of it."""
    if device_room < 0:
        return (
            f"device_memory is {machine.device_memory:,} bytes, and state takes {rank_bytes:,} in every rank: have as "
            "much, or leave device_memory out (CPU ranks)"
        )
    if host_room < 0:
        fits = machine.host_memory // rank_bytes
        fewer = f", or ranks_per_host = {fits}" if fits else ""
        return f"state of {local} ranks takes more than host_memory: have {local * rank_bytes:,} bytes{fewer}"
    return None


def paper_graph(vertices: int, edges: int, edge_bytes: float, windows: int = 0) -> Graph:
    """A graph that need not exist, of so many vertices and edges, each of so many bytes on disk, without weights.

    Edges are those of out-rows, in chunks of equal length; windows: once more by so many of the file, 0: by none.
    """
    dtype = np.dtype(np.uint32 if vertices <= 1 << 32 else np.uint64)
    neighbors = _frames("out/neighbors", dtype, edges, CHUNK_EDGES, edge_bytes)
    degrees = _frames("out/degrees", np.dtype(np.uint32), vertices, CHUNK_VERTICES, PAPER_ROW_BYTES)
    out = Adjacency("out", edges, vertices, dtype, None, "packed", CHUNK_EDGES, neighbors=neighbors, degrees=degrees)
    if windows:
        page = page_rows(CHUNK_VERTICES)
        size = -(-vertices // (windows * page)) * page
        out = replace(
            out,
            window_vertices=size,
            windows=tuple(replace(out, direction=window_name("out", number)) for number in range(-(-vertices // size))),
        )
    return Graph(None, vertices, edges, edges, True, out, None, {}, "")


def _frames(path: str, dtype: np.dtype[Any], items: int, chunk: int, item_bytes: float) -> Frames:
    """The frames of an array of so many bytes an item, in no file."""
    lengths = np.full(-(-items // chunk), int(chunk * item_bytes), np.int64)
    zeros = np.zeros(len(lengths), np.int64)
    spec = ArraySpec(path, dtype.name, items, chunk, "packed", 0)
    return Frames(spec, (), zeros, zeros, lengths, zeros.astype(np.uint64), None)
