"""A session: what runs on one graph share – reader, host cache, devices, pipelines, compiled kernels.

Owns the division of the host memory budget between state, index, cache and slabs, and frees everything at the end. A
run borrows what it needs; programs that run one after another find the edges that are cached already.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from functools import partial
from types import TracebackType
from typing import Any, cast

import numpy as np
from penstock.engine import forest
from penstock.engine.config import Config
from penstock.engine.direction import Direction
from penstock.engine.kernels.host import HostKernels
from penstock.engine.kernels.reference import ReferenceKernels
from penstock.engine.lane import Lane
from penstock.engine.linked import LinkedEdges, device_of, size_of
from penstock.engine.loop import Loop, Worker
from penstock.engine.ownership import owners
from penstock.engine.placed import PlacedState, placed_bytes
from penstock.engine.program import Program, check
from penstock.engine.result import Result
from penstock.engine.state import State, state_bytes
from penstock.engine.trace import IterationRecord
from penstock.storage.cache import Arena, Extent, HostCache
from penstock.storage.errors import InputError
from penstock.storage.graph import Adjacency, Graph
from penstock.storage.reader import Reader
from penstock.transfer.device import Device
from penstock.transfer.host import HostDevice
from penstock.transfer.layout import Budget, Layout, layout
from penstock.transfer.options import TransferOptions
from penstock.transfer.pipeline import Pipeline
from penstock.transfer.rates import Rates

LINKED_BUCKET = 1 / 8  # of the usual width: edges relaxed in vain cost more over a link than iterations do
SMALL_CHANGE = 4 << 20  # bytes for what is too small to be counted one by one


class Session:
    """One graph, opened for running programs; a context manager.

    options: see `Config`. Raises InputError for unknown options.
    """

    def __init__(self, graph: Graph, **options: Any) -> None:
        self.graph = graph
        self.config = Config.of(**options)
        self._kernels: dict[Any, Any] = {}
        self._equipment: _Equipment | None = None
        self._device = device_of(self.config, graph)
        self._indexes: dict[int, Any] = {}

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop reading and free the caches."""
        if self._equipment is not None:
            self._equipment.close()
            self._equipment = None
        if self._device is not None:
            for kernels in self._kernels.values():
                kernels.close()
            self._kernels.clear()
            self._indexes.clear()
            self._device.close()

    def run(self, program: Program) -> Result:
        """Run one program to its end. Raises InputError for what cannot run, RunError when reading fails."""
        steps = self.steps(program)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return cast(Result, end.value)

    def steps(self, program: Program) -> Generator[IterationRecord, None, Result]:
        """As `run`, one iteration at a time: yields each one's record, and returns the Result."""
        program = program.form(self.graph, self.config.mode)
        check(program)
        self._check_weights(program)
        result, values = yield from self._steps(program)
        wider = program.instead(values)
        return result if wider is None else (yield from self.steps(wider))

    def _steps(self, program: Program) -> Generator[IterationRecord, None, tuple[Result, dict[str, Any]]]:
        loop = self._loop(program)
        first = loop.workers[0].state
        began = time.perf_counter()
        everything = self._start(program, loop)
        steps = forest.grow(loop) if program.combine == "union" else loop.iterate(everything)
        records = []
        for record in steps if self.graph.vertices else ():
            records.append(record)
            yield record
        if self._device is not None:
            self._device.finish()
        seconds = time.perf_counter() - began
        values = first.host_fields()
        fields = program.finish(self.graph, values)
        return Result(program, self.graph, fields, records, seconds, loop.converged), values

    def _start(self, program: Program, loop: Loop) -> bool:
        """Give every device the first values and the first frontier; whether that is every vertex."""
        first = loop.workers[0].state
        if isinstance(first, State) or program.starts_anywhere:
            start = program.start(self.graph, first.fields)
        else:
            fields = first.host_fields()
            start = program.start(self.graph, fields)
            first.take(fields)
        if program.bucket_is_free and any(lane.linked for lane in loop.workers[0].lanes.values()):
            program.bucket *= LINKED_BUCKET
        loop.limit = program.bucket or float("inf")
        for worker in loop.workers:
            _adopt(worker.state, first)
            if start.active is not None:
                worker.kernels.mark(worker.state, start.active)
        return start.everything

    def _loop(self, program: Program) -> Loop:
        asynchronous = program.self_combining and self.config.mode != "sync"
        if self.config.mode == "async" and not (asynchronous or program.combine in ("union", "sum")):
            raise InputError(
                f"{type(program).__name__} cannot run asynchronously: its vertex() is not its combiner; use --mode sync"
            )
        apart = not asynchronous and program.combine != "union"
        weighted = program.needs_weights and self.graph.weight_dtype is not None
        directions = self._directions(program)
        equipment = self._equip(program, directions, weighted, apart)
        kernels = self._kernels_of(program, weighted)
        workers = []
        for lanes in equipment.lanes(directions, weighted):
            state = self._state(program, kernels)
            if apart:
                state.accumulate_apart()
            workers.append(Worker(state, kernels, lanes))
        forced = None if self.config.direction == "auto" else self.config.direction
        return Loop(program, self.graph, self.graph.out.index(), workers, asynchronous, forced)

    def _state(self, program: Program, kernels: Any) -> State | PlacedState:
        count, dtype = self.graph.vertices, self.graph.vertex_dtype
        if isinstance(kernels, HostKernels | ReferenceKernels):
            return State(program, kernels.author, 0, count, dtype)
        return PlacedState(program, kernels.author, (0, count), dtype, self._device)

    def _directions(self, program: Program) -> tuple[Direction, ...]:
        """Which directions the run may walk: only those get a share of the budget."""
        forced = self.config.direction
        if forced == "pull" and self.graph.into is None:
            raise InputError(
                f"{self._graph_name}: pull needs in-edges, which this graph does not store; convert it with "
                "--direction both, or run with --direction push"
            )
        if program.combine == "union" or self.graph.into is None or forced == "push":
            return ("push",)
        if forced == "pull" or program.everywhere:
            return ("pull",)
        return ("push", "pull")

    @property
    def _graph_name(self) -> str:
        return "the graph" if self.graph.path is None else str(self.graph.path)

    def _check_weights(self, program: Program) -> None:
        if not (program.non_negative_weights and program.needs_weights) or self.graph.weight_range is None:
            return
        low = self.graph.weight_range[0]
        if not low >= 0:
            raise InputError(
                f"{self._graph_name}: the smallest weight is {low:g}, and this program accepts non-negative weights "
                "only; convert the input without weights, or with another column (--columns)"
            )

    def _kernels_of(self, program: Program, weighted: bool) -> Any:
        key = type(program), weighted
        if key not in self._kernels:
            self._kernels[key] = self._compiled(program, weighted)
        return self._kernels[key]

    def _compiled(self, program: Program, weighted: bool) -> Any:
        dtype, threads = self.graph.vertex_dtype, self.config.thread_count
        if self.config.kernels == "reference":
            return ReferenceKernels(program, dtype, weighted, threads)
        if self._device is None or (self._device.kind == "emulated" and self.config.kernels == "host"):
            return HostKernels(program, dtype, weighted, threads)
        from penstock.engine.kernels.cuda_kernels import CudaKernels  # numba.cuda only where a device is used

        return CudaKernels(program, dtype, weighted, self._device, self._indexes)

    def _equip(self, program: Program, directions: tuple[Direction, ...], weighted: bool, apart: bool) -> _Equipment:
        """What the runs share, made anew where this run needs other directions, weights, or more state."""
        adjacencies = _adjacencies(self.graph, directions)
        held = state_bytes(program, self.graph.vertices, self.graph.vertex_dtype, apart=apart)
        if self._device is not None:
            held += placed_bytes(self.graph.vertices, self.graph.vertex_dtype)
        fixed = held * self.config.devices + _index_bytes(self.graph, adjacencies) + _id_bytes(self.graph)
        old = self._equipment
        if old is None or not old.suffices(adjacencies, weighted, fixed):
            if old is not None:
                adjacencies, weighted = _united(old.adjacencies, adjacencies), weighted or old.weighted
                old.close()
            make = _Equipment if self._device is None else partial(_LinkedEquipment, self._device)
            self._equipment = make(self.graph, self.config, adjacencies, weighted, fixed + SMALL_CHANGE)
        assert self._equipment is not None
        return self._equipment


class _Equipment:
    """Reader, cache and pipelines for some adjacencies of a graph, within a budget."""

    def __init__(self, graph: Graph, config: Config, adjacencies: list[Adjacency], weighted: bool, fixed: int) -> None:
        self.graph, self.config = graph, config
        self.weighted, self.fixed = weighted, fixed
        self.adjacencies = adjacencies
        self.reader: Reader | None = None
        cache = None
        chunk_edges = graph.out.chunk_edges
        divided = None
        if graph.out.arrays is None:
            divided = self._divide(adjacencies)
            self.reader = Reader(
                graph,
                decode_threads=config.thread_count,
                reads_in_flight=divided.reads_in_flight,
                direct_io=config.direct_io,
                throttle=config.throttle,
            )
            cache = self._cache(adjacencies, divided)
        step = divided.partition_edges if divided else _whole_chunks(config.partition_bytes, graph)
        options = TransferOptions(
            partition_edges=step,
            slabs=max(1, divided.slabs // config.devices) if divided and divided.slabs else 0,
            ahead=divided.ahead if divided else 2,
            ordered=False,
        )
        self.pipelines = [
            Pipeline(graph, self.reader, HostDevice(f"host:{number}", config.thread_count), cache, options)
            for number in range(config.devices)
        ]
        self.chunk_edges = chunk_edges
        self.rates = Rates.host(config.thread_count)

    def _divide(self, adjacencies: list[Adjacency]) -> Layout:
        budget = Budget(
            host_memory=self.config.memory_bytes,
            fixed=self.fixed,
            partition_bytes=self.config.partition_bytes,
            workers=self.config.thread_count,
            stripes=max(1, len(self.graph.files) - 1),
        )
        sizes = [size_of(adjacency) for adjacency in adjacencies]
        return layout(budget, sizes, with_weights=self.weighted)

    def _cache(self, adjacencies: list[Adjacency], divided: Layout) -> HostCache | None:
        if not divided.slots:
            return None
        extents = [Extent(a.direction, a.edges, a.chunk_edges) for a in adjacencies]
        weights = self.graph.weight_dtype if self.weighted else None
        arena = Arena(
            divided.partition_edges, self.graph.vertex_dtype, weights, None if divided.whole else divided.slots
        )
        return HostCache(extents, arena)

    def suffices(self, adjacencies: list[Adjacency], weighted: bool, fixed: int) -> bool:
        """Whether a run that needs these can use what is here."""
        known = _united(self.adjacencies, adjacencies)
        return len(known) == len(self.adjacencies) and weighted <= self.weighted and fixed <= self.fixed

    def lanes(self, directions: tuple[Direction, ...], weighted: bool) -> list[dict[Direction, Lane]]:
        """For every device, a lane for every direction."""
        return [
            {direction: self._lane(number, direction, weighted) for direction in directions}
            for number in range(len(self.pipelines))
        ]

    def _lane(self, number: int, direction: Direction, weighted: bool) -> Lane:
        pipeline = self.pipelines[number]
        adjacency = self.graph.out if direction == "push" else self.graph.into
        assert adjacency is not None
        weight = adjacency.weight_dtype if weighted else None
        lane = Lane(
            pipeline,
            direction,
            adjacency.index(),
            self.rates,
            weighted,
            self.chunk_edges,
            adjacency.neighbor_dtype.itemsize + (0 if weight is None else weight.itemsize),
        )
        if len(self.pipelines) > 1:
            table = pipeline.table(lane.key)
            lane.mine = owners(table.lengths, [1.0] * len(self.pipelines)) == number
        return lane

    def close(self) -> None:
        """Stop the reader and forget the caches."""
        for pipeline in self.pipelines:
            pipeline.close()
        if self.reader is not None:
            self.reader.close()


class _LinkedEquipment(_Equipment):
    """The same for a device with memory of its own: the edges are in host memory, and the pipeline is the link's."""

    def __init__(
        self, device: Device, graph: Graph, config: Config, adjacencies: list[Adjacency], weighted: bool, fixed: int
    ) -> None:
        self.graph, self.config = graph, config
        self.weighted, self.fixed = weighted, fixed
        self.adjacencies = adjacencies
        self.reader = None
        self.edges = LinkedEdges(graph, config, device, adjacencies, (weighted, fixed))
        self.pipelines = [self.edges.pipeline]
        self.chunk_edges = graph.out.chunk_edges
        self.rates = Rates.pcie5(config.thread_count)

    def close(self) -> None:
        """Let go of the edges on the device."""
        self.edges.close()


def _adopt(state: State, first: State) -> None:
    """Start from the first device's values."""
    if state is not first:
        for name, array in first.fields.items():
            state.fields[name][...] = array


def _adjacencies(graph: Graph, directions: tuple[Direction, ...]) -> list[Adjacency]:
    """The stored adjacencies that these directions walk; an undirected graph has only one."""
    wanted = [graph.out if direction == "push" else graph.into for direction in directions]
    return _united([], [adjacency for adjacency in wanted if adjacency is not None])


def _united(some: list[Adjacency], more: list[Adjacency]) -> list[Adjacency]:
    """Both lists without repeats."""
    found: list[Adjacency] = []
    for adjacency in (*some, *more):
        if all(adjacency is not other for other in found):
            found.append(adjacency)
    return found


def _index_bytes(graph: Graph, adjacencies: list[Adjacency]) -> int:
    """The indexes of the adjacencies walked, and of the out-adjacency for degrees."""
    held = {adjacency.direction for adjacency in adjacencies} | {"out"}
    return len(held) * (4 * graph.vertices + graph.vertices // 8192 + 4096)


def _id_bytes(graph: Graph) -> int:
    """Original ids while results are translated."""
    return 0 if graph.original is None else 17 * graph.vertices


def _whole_chunks(partition_bytes: int, graph: Graph) -> int:
    chunk = graph.out.chunk_edges
    return max(1, partition_bytes // (chunk * np.dtype(graph.vertex_dtype).itemsize)) * chunk
