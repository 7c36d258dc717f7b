"""A session: what runs on one graph share – reader, host cache, devices, pipelines, compiled kernels.

Owns the division of the host memory budget between state, index, cache and slabs, and frees everything at the end. A
run borrows what it needs; programs that run one after another find the edges that are cached already.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from dataclasses import fields, replace
from types import TracebackType
from typing import Any, cast

import numpy as np
from penstock.engine import cel, corners, forest, rows
from penstock.engine.config import Config
from penstock.engine.direction import Direction
from penstock.engine.equipment import Equipment, Needs
from penstock.engine.kernels.host import HostKernels
from penstock.engine.kernels.host_rows import HostRowKernels
from penstock.engine.kernels.reference import ReferenceKernels
from penstock.engine.kernels.reference_rows import ReferenceRowKernels
from penstock.engine.linked import LinkedEquipment, device_of
from penstock.engine.loop import Loop, Worker
from penstock.engine.placed import PlacedState, placed_bytes
from penstock.engine.program import Program, author_function, check, fields_of, has_phases, needs_rows, words_of
from penstock.engine.result import Result
from penstock.engine.sides import Walk, walks
from penstock.engine.state import State, fields_for, state_bytes
from penstock.engine.trace import IterationRecord
from penstock.storage.errors import InputError
from penstock.storage.graph import Adjacency, Graph

LINKED_BUCKET = 1 / 8  # of the usual width: edges relaxed in vain cost more over a link than iterations do
PUSHED = ("compaction", *cel.NAMES)  # routes that bring the rows of active vertices only
MARKED = 1 << 22  # vertices that are marked together
SMALL_CHANGE = 4 << 20  # bytes for what is too small to be counted one by one


class Session:
    """One graph, opened for running programs; a context manager.

    options: see `Config`. Raises InputError for unknown options.
    """

    def __init__(self, graph: Graph, **options: Any) -> None:
        self.graph = graph
        self.config = Config.of(**options)
        self._kernels: dict[Any, Any] = {}
        self._equipment: Equipment | None = None
        self._device = device_of(self.config, graph)
        self._indexes: dict[int, Any] = {}
        self._shared: dict[str, Any] = {}

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
        if needs_rows(program) and not self._has_host_kernels:
            return (yield from self._on_host(program))
        if has_phases(program):
            return (yield from self._phases(program))
        result, values = yield from self._steps(program)
        wider = program.instead(values)
        return result if wider is None else (yield from self.steps(wider))

    def _on_host(self, program: Program) -> Generator[IterationRecord, None, Result]:
        """Run a program that GPU kernels do not know on the CPU cores, unless a GPU is asked for."""
        if self.config.device != "auto":
            raise InputError(
                f"{type(program).__name__} works on whole rows, which GPU kernels cannot do yet; use --device cpu"
            )
        options = {entry.name: getattr(self.config, entry.name) for entry in fields(Config)} | {"device": "cpu"}
        with Session(self.graph, **options) as other:
            return (yield from other.steps(program))

    def _phases(self, program: Program) -> Generator[IterationRecord, None, Result]:
        """Run a program's phases one after another on its fields, which stay in host memory in between."""
        began = time.perf_counter()
        records: list[IterationRecord] = []
        self._shared = fields_for(program, self.graph.vertices, self.graph.vertex_dtype)
        try:
            for phase in program.phases(self.graph, self._shared):
                check(phase)
                self._check_weights(phase)
                result, values = yield from self._steps(phase)
                for name, ours in self._shared.items():
                    if values.get(name) is not None and values[name] is not ours:
                        ours[...] = values[name]
                records += result.records
            found = program.finish(self.graph, self._shared)
        finally:
            self._shared = {}
        return Result(program, self.graph, found, records, time.perf_counter() - began, program.converged)

    def _steps(self, program: Program) -> Generator[IterationRecord, None, tuple[Result, dict[str, Any]]]:
        loop = self._loop(program)
        first = loop.workers[0].state
        began = time.perf_counter()
        everything = self._start(program, loop)
        steps = self._story(program, loop, everything)
        records = []
        for record in steps if self.graph.vertices else ():
            records.append(record)
            yield record
        if self._device is not None:
            self._device.finish()
        if self._equipment is not None:
            self._equipment.settle()
        seconds = time.perf_counter() - began
        values = first.host_fields()
        found = program.finish(self.graph, values)
        return Result(program, self.graph, found, records, seconds, loop.converged), values

    def _story(self, program: Program, loop: Loop, everything: bool) -> Iterator[IterationRecord]:
        """How the program's iterations go."""
        if program.combine == "union":
            return forest.grow(loop)
        if author_function(program, "corner") is not None:
            return corners.meet(loop, self.config.memory_bytes)
        return rows.sweep(loop) if needs_rows(program) else loop.iterate(everything)

    def _start(self, program: Program, loop: Loop) -> bool:
        """Give every device the first values and the first frontier; whether that is every vertex."""
        first = loop.workers[0].state
        first.take({name: values for name, values in self._shared.items() if name in first.fields})
        if isinstance(first, State) or program.starts_anywhere:
            start = program.start(self.graph, first.fields)
        else:
            taken = first.host_fields()
            start = program.start(self.graph, taken)
            first.take(taken)
        if program.bucket_is_free and any(lane.linked for lane in loop.workers[0].lanes.values()):
            program.bucket *= LINKED_BUCKET
        loop.limit = program.bucket or float("inf")
        # Where updates are seen at once, who changes is told from who was active by bits: so everybody's is set.
        marked = start.everything and loop.asynchronous and not program.everywhere
        for worker in loop.workers:
            _adopt(worker.state, first)
            if start.active is not None:
                worker.kernels.mark(worker.state, start.active)
            for v in range(0, self.graph.vertices if marked else 0, MARKED):
                worker.kernels.mark(worker.state, np.arange(v, min(v + MARKED, self.graph.vertices)))
        return start.everything and not marked

    def _loop(self, program: Program) -> Loop:
        asynchronous = program.self_combining and self.config.mode != "sync"
        tolerant = asynchronous or self._shared or program.combine in ("union", "sum")
        if self.config.mode == "async" and not tolerant:
            raise InputError(
                f"{type(program).__name__} cannot run asynchronously: its vertex() is not its combiner; use --mode sync"
            )
        cel.check(program, self.config, asynchronous=asynchronous)
        apart = not asynchronous and program.combine not in ("union", "all")
        weighted = program.needs_weights and self.graph.weight_dtype is not None
        directions = self._directions(program)
        equipment = self._equip(program, directions, weighted, apart)
        kernels = self._kernels_of(program, weighted)
        workers = []
        for lanes, against in equipment.lanes(directions, weighted):
            state = self._state(program, kernels)
            if apart:
                state.accumulate_apart()
            for lane in (*lanes.values(), *against.values()):
                lane.complete = asynchronous and self.config.local_rounds > 0
                if program.early_exit:
                    kernels.use()
                    lane.fill_heads(kernels, state)
                else:
                    lane.heads = None
            workers.append(Worker(state, kernels, lanes, against))
        forced = next(iter(directions)) if len(directions) == 1 else None
        rounds = self.config.local_rounds if asynchronous and not kernels.author.has_send else 0
        sent = self._sent_along(program)
        return Loop(program, self.graph, sent.index(), workers, asynchronous, forced, rounds)

    def _sent_along(self, program: Program) -> Adjacency:
        """The adjacency whose rows are what each vertex sends along; the out-adjacency where nobody asks."""
        if program.along != "in" or not self.graph.directed:
            return self.graph.out
        if self.graph.into is None and "degree" in words_of(program):
            raise InputError(
                f"{self._graph_name}: {type(program).__name__} asks for in-degrees, which this graph does not store; "
                "convert it with --direction both"
            )
        return self.graph.into or self.graph.out

    def _state(self, program: Program, kernels: Any) -> State | PlacedState:
        count, dtype = self.graph.vertices, self.graph.vertex_dtype
        if isinstance(kernels, HostKernels | ReferenceKernels):
            return State(program, kernels.author, 0, count, dtype)
        return PlacedState(program, kernels.author, (0, count), dtype, self._device)

    def _directions(self, program: Program) -> dict[Direction, tuple[Walk, ...]]:
        """Which directions the run may walk, and how: only those get a share of the budget."""
        forced = "push" if self.config.route in PUSHED else self.config.direction
        found = walks(program.along, directed=self.graph.directed, both_stored=self.graph.into is not None)
        if forced not in ("auto", *found):
            raise InputError(
                f"{self._graph_name}: {forced} needs in-edges, which this graph does not store; convert it with "
                f"--direction both, or run with --direction {next(iter(found))}"
            )
        if program.combine == "union":
            return {"push": found["push"]}
        if needs_rows(program):
            if "pull" not in found or len({walk.direction for walk in found["pull"]}) > 1:
                raise InputError(
                    f"{self._graph_name}: {type(program).__name__} works on whole rows, in-edges too, which this graph "
                    "does not store; convert it with --direction both"
                )
            return {"pull": found["pull"]}
        if forced in found:
            return {forced: found[forced]}
        if program.everywhere and "pull" in found:
            return {"pull": found["pull"]}
        return found

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
            reference = ReferenceRowKernels if needs_rows(program) else ReferenceKernels
            return reference(program, dtype, weighted, threads)
        if self._has_host_kernels:
            return (HostRowKernels if needs_rows(program) else HostKernels)(program, dtype, weighted, threads)
        from penstock.engine.kernels.cuda_kernels import CudaKernels  # numba.cuda only where a device is used

        return CudaKernels(program, dtype, weighted, self._device, self._indexes)

    @property
    def _has_host_kernels(self) -> bool:
        """Whether kernels run on the CPU cores."""
        emulated = self._device is not None and self._device.kind == "emulated" and self.config.kernels == "host"
        return self._device is None or emulated or self.config.kernels == "reference"

    def _equip(
        self, program: Program, directions: dict[Direction, tuple[Walk, ...]], weighted: bool, apart: bool
    ) -> Equipment:
        """What the runs share, made anew where this run needs other directions, weights, or more state."""
        held = state_bytes(program, self.graph.vertices, self.graph.vertex_dtype, apart=apart)
        held += sum(array.nbytes for name, array in self._shared.items() if name not in fields_of(program))
        if program.combine == "all":
            held += rows.row_bytes(program, self.graph)
        if author_function(program, "corner") is not None:
            held += corners.strip_bytes(self.graph, self.config.memory_bytes)
        if self._device is not None:
            held += placed_bytes(self.graph.vertices, self.graph.vertex_dtype)
        walked = [walk for walks_of in directions.values() for walk in walks_of]
        needs = Needs.of(self.graph, walked, weighted, held * self.config.devices)
        if program.early_exit and not weighted and "pull" in directions:
            needs = replace(needs, heads=True)
        old = self._equipment
        if old is None or not old.needs.covers(needs):
            if old is not None:
                needs = old.needs.and_also(needs)
                old.close()
            needs = replace(needs, fixed=needs.fixed + SMALL_CHANGE)
            if self._device is None:
                self._equipment = Equipment(self.graph, self.config, needs)
            else:
                self._equipment = LinkedEquipment(self.graph, self.config, needs, self._device)
            if old is not None:
                self._equipment.feedback.inherit(old.feedback)
        assert self._equipment is not None
        return self._equipment


def _adopt(state: State, first: State) -> None:
    """Start from the first device's values."""
    if state is not first:
        for name, array in first.fields.items():
            state.fields[name][...] = array
