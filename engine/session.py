"""A session: what runs on one graph share – reader, host cache, device, pipeline, compiled kernels.

Holds what `MemoryPlan` divides the host memory budget into, and frees everything at the end. A run borrows what it
needs; programs that run one after another find the edges that are cached already.
"""

from __future__ import annotations

import logging
import time
import weakref
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from copy import copy
from dataclasses import fields, replace
from functools import partial, reduce
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from penstock.engine.execution import nan_check, plain_first, triangles, union_find, whole_rows
from penstock.engine.execution.kernel_profiler import KernelProfiler
from penstock.engine.execution.layers import Layers, layer_bounds
from penstock.engine.execution.loop import Loop
from penstock.engine.execution.owned_loop import OwnedLoop
from penstock.engine.execution.priorities import Due
from penstock.engine.execution.rebalance import Rebalance
from penstock.engine.execution.shared_loop import SharedLoop
from penstock.engine.kernels.ahead.announce import announce_run, expect_run, is_new_run
from penstock.engine.kernels.ahead.choice import (
    fill_of,
    has_state_there,
    kernel_class,
    kind_on,
    new_kernels,
    new_state,
)
from penstock.engine.kernels.interface import Kernels
from penstock.engine.kernels.packed.unpackers import unpacker_of
from penstock.engine.planning.requirements import (
    Plan,
    RunRequirements,
    RunSetting,
    check_program_on,
    held_bytes,
    likeness,
    paged_bytes,
    planned,
    requirements_of,
    retried,
    sending_direction,
)
from penstock.engine.program.on_graph import OnGraph
from penstock.engine.program.precision import formed
from penstock.engine.program.program import Program, author_function, has_phases
from penstock.engine.program.program_check import check_phase, check_start, check_sufficed
from penstock.engine.ranks.agreement import agree, check_combines, check_same, with_shares
from penstock.engine.ranks.rank_devices import RankDevices
from penstock.engine.ranks.reports import gather_reports
from penstock.engine.resources.block_stream import check_options
from penstock.engine.resources.config import Config
from penstock.engine.resources.device_resources import RESOURCES, device_of
from penstock.engine.resources.host_resources import HostResources
from penstock.engine.resources.memory_plan import HeldBytes, MemoryPlan
from penstock.engine.resources.requirements_types import MemoryRequest
from penstock.engine.state.compacted_rows import CompactedRows
from penstock.engine.state.device_pages import DevicePages, KeptRows, LockedPages
from penstock.engine.state.fused_iterations import RunRecords
from penstock.engine.state.records import IterationRecord, PhaseRecord
from penstock.engine.state.result import Result
from penstock.engine.state.state import fields_for
from penstock.engine.state.state_arrays import INCOMING, SENT
from penstock.engine.state.unmatched_rows import UnmatchedRows
from penstock.storage.base.errors import BudgetError, InputError
from penstock.storage.base.freed_memory import give_back_freed_memory, keep_no_large_blocks
from penstock.storage.base.stage_clock import stage
from penstock.storage.base.threads import ExclusiveUse
from penstock.storage.base.timeline import Timeline, during
from penstock.storage.checkpoint.page_file import PageFile, check_folders, folders_beside, slot_bytes
from penstock.storage.checkpoint.state_pages import StatePages
from penstock.storage.companion.process import end
from penstock.storage.format.graph import Graph
from penstock.storage.read.degree_count import degree_index
from penstock.transfer.devices.device import Device
from penstock.transfer.values.rates import Rates

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.engine.checkpoint.checkpoint import Checkpoints
    from penstock.engine.planning.forecast import Forecast
    from penstock.engine.queries.walks import Walks
    from penstock.engine.ranks.communicator import ArrayRanks, Communicator
    from penstock.engine.resources.ownership import Ownership
    from penstock.storage.format.index import Index
    from penstock.transfer.values.task import Direction as AdjacencyDirection

_log = logging.getLogger("penstock.engine.session")

OWN_SHARE = 1.25
"""Of an equal share of the vertices a rank's part may be so many: parts have as many edges, and their bounds move."""


class Session:
    """One graph, opened for running programs; a context manager.

    Threads may share a session: their runs take turns. A session that is dropped without `close` closes itself. A
    forked process must open its own.

    A run goes through layers: `_in_turn` the lock, `_run_form` the plan, memory and checkpoints, `_phases` one program
    after another, `_run_phase` the state and records of one, `_loop` its parts, `_operator` which code iterates.

    Parameters
    ----------
    graph : Graph
        The graph of every run.
    timeline : Timeline, optional
        Records when each kernel, copy and step ran; without it no time stamp is taken.
    ranks : Communicator, optional
        The processes that share the edges of every run, each of which has such a session and runs the same programs.
    **options
        The fields of `penstock.engine.resources.config.Config`.

    Raises
    ------
    InputError
        An option is unknown, out of range, or has no effect on the device.
    """

    def __init__(
        self, graph: Graph, *, timeline: Timeline | None = None, ranks: Communicator | None = None, **options: Any
    ) -> None:
        self.graph = graph
        self.config = Config.of(**options)
        self._ranks = None if ranks is None or ranks.size == 1 else ranks
        if graph.layout == "list":
            check_options(graph, self.config, 1 if self._ranks is None else self._ranks.size)
        self._all_threads: int | None = None
        if self._ranks is not None:
            self.config, self._all_threads = agree(self.config, graph, self._ranks)
        elif self.config.shares is not None:
            raise InputError(
                f"shares is {self.config.shares}, and there is one rank, which has all edges: leave it out"
            )
        self._device = device_of(self.config)
        self._resources = RESOURCES[self._device.kind]
        self._kind = kind_on(self._device, self.config.kernels)
        self._rank_devices = RankDevices()
        if self._ranks is not None:
            self._rank_devices = RankDevices.of(self._ranks, self._device, state_there=has_state_there(self._kind))
            ability = self._resources.ability(graph, self.config, self._device)
            self.config = with_shares(self.config, ability, graph.edges, self._ranks)
        if self._device.reads_host and self._rank_devices.linked:
            self.config = self.config.of_cores()
        self.config.check_used(self._device)
        self._kernels: dict[tuple[type[Program], bool], Kernels[Any]] = {}
        self._turns = ExclusiveUse("Session")
        self._held = _Held(self._device, self._kernels, self._rank_devices.arrays)
        self._dropped = weakref.finalize(self, self._held.close)
        self._dropped.atexit = False  # daemon threads and a device go with the process
        self._timeline = timeline
        self._watch = None if timeline is None else KernelProfiler(timeline, self._device)
        self._indexes: dict[int, Any] = {}
        self._degrees: dict[str, Index] = {}
        self._kept_rows: KeptRows = weakref.WeakKeyDictionary()
        self._shared: dict[str, Any] = {}
        self._ran: set[type[Program]] = set()
        self._moved: Ownership | None = None
        self._setting = self._setting_of(checkpoints=False)
        self._whole: Program | None = None
        self._phase: PhaseRecord | None = None
        self._prepared: MemoryRequest | None = None
        self._planned: MemoryRequest | None = None
        self._pages: StatePages | None = None
        self._paged: tuple[list[Path], int] = [], 0
        self._accepted: CompactedRows | None = None
        self._other: Session | None = None
        self._announced: Program | None = None
        self._asked: RunRequirements | None = None
        self._coming: tuple[RunRequirements, ...] = ()
        self._served: list[MemoryRequest] = []
        self._plans: dict[int, tuple[Program, dict[str, Any], RunSetting, Plan]] = {}
        self._read_before = 0

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.failed = kind is not None
        self.close()

    def __repr__(self) -> str:
        """One line: the graph, where it computes, and whether it is closed."""
        count = self.config.thread_count
        place = f"{count} thread{'s' * (count != 1)}" if self._device.reads_host else self._device.name
        return f"<Session on {place}{'' if self._dropped.alive else ', closed'}: {self.graph!r}>"

    def close(self) -> None:
        """Stop reading and free the caches, after a run in another thread has ended; again: no effect."""
        with self._turns.closing():
            self._dropped()
            self._indexes.clear()
            self._plans.clear()
            self._kept_rows.clear()

    @property
    def _equipment(self) -> HostResources | None:
        return self._held.equipment

    @property
    def device(self) -> Device:
        """The device on which runs compute, the cores of the host or one behind a link."""
        return self._device

    @property
    def rates(self) -> Rates:
        """The rates with which plans begin, before a run corrects them."""
        return self.config.rates_on(self._device)

    @property
    def _options(self) -> dict[str, Any]:
        """The options of this session, for another one."""
        return {entry.name: getattr(self.config, entry.name) for entry in fields(Config)}

    @property
    def bytes_read(self) -> int:
        """Bytes of edges read from disk since memory was last divided; any thread may ask, also during a run."""
        if (other := self._other) is not None:
            return self._read_before + other.bytes_read
        return self._read_before if (equipment := self._equipment) is None else equipment.bytes_read

    @property
    def spare_bytes(self) -> int:
        """Bytes of the host memory budget that nothing takes, as far as is known; 0 before the first run."""
        return 0 if self._equipment is None else max(0, self._equipment.host_spare)

    @property
    def holdings(self) -> HeldBytes | None:
        """How many bytes of edges fit where; None before the first run."""
        return None if self._equipment is None else self._equipment.plan.held

    def run(self, program: Program, checkpoints: Checkpoints | None = None) -> Result:
        """Run one program to its end; wait while another thread runs one.

        Parameters
        ----------
        program : Program
            The program.
        checkpoints : Checkpoints, optional
            Stores the run's state, and restores it if it was created with `resume`; used for this run only. The caller
            clears it when the answer is stored.

        Returns
        -------
        Result
            One array of shape (vertices, ...) per field, and the records of the iterations.

        Raises
        ------
        InputError
            The program cannot run on this graph or with these options, or the checkpoints are of another run.
        BudgetError
            The memory budget is too small.
        RunError
            Reading the graph failed.
        """
        self._turns.check()
        steps = self._in_turn(program, checkpoints, each=False)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return cast(Result, end.value)

    def steps(
        self, program: Program, checkpoints: Checkpoints | None = None
    ) -> Generator[IterationRecord, None, Result]:
        """Run one program, one iteration at a time.

        Other threads wait for the session until the generator has ended or is closed.

        Parameters
        ----------
        program : Program
            The program.
        checkpoints : Checkpoints, optional
            As in `run`.

        Yields
        ------
        IterationRecord
            After each iteration: frontier, direction, seconds, bytes, tasks.

        Returns
        -------
        Result
            As `run`; the value of the generator's StopIteration.

        Raises
        ------
        InputError, BudgetError, RunError
            As in `run`.
        """
        self._turns.check()
        return self._in_turn(program, checkpoints, each=True)

    def _in_turn(
        self, program: Program, checkpoints: Checkpoints | None, *, each: bool
    ) -> Generator[IterationRecord, None, Result]:
        """As `steps`; each: whether every record is yielded, else only some, which is sooner done."""
        with self._turns.acquired():
            compiled = False
            try:
                result = None
                if type(program) not in self._ran and self._expect(program) and checkpoints is None:
                    result = yield from self._run_plain(program, each)
                if result is None:
                    compiled = True
                    result = yield from self._run_form(program, checkpoints, each)
            finally:
                end(compiled=compiled)
            if compiled:
                self._ran.add(type(program))
            if self._ranks is None:
                return result
            return replace(result, ranks=gather_reports(self._ranks, self._device.name, result.records))

    def _is_tried_plain(self, program: Program) -> bool:
        """Whether a program, whose kernels are not compiled, may be done sooner by their plain definition."""
        alone = self._device.reads_host and self._ranks is None and self._timeline is None
        asked = self.config.kernels != "reference" and self.config.precision == "double"
        return alone and asked and plain_first.is_tried(program, self.graph)

    def _run_plain(self, program: Program, each: bool) -> Generator[IterationRecord, None, Result | None]:
        """Run a program by the plain definition of its kernels; None where these have to be compiled."""
        if not self._is_tried_plain(program):
            return None
        own = copy(program)
        with Session(self.graph, **self._options | {"kernels": "reference"}) as plain:
            plain._kind = "plain"
            late = partial(expect_run, program, self.graph, self._kind)
            found = plain_first.result_of(plain._run_form(own, None, each=True), program, late)
        if found is None:
            return None
        vars(program).update(vars(own))
        records, result = found
        yield from records if each else ()
        return result

    def _run_form(
        self, program: Program, checkpoints: Checkpoints | None, each: bool
    ) -> Generator[IterationRecord, None, Result]:
        """Run the form of the program that fits into memory; if its numbers do not suffice, a wider one instead."""
        with stage("state"):
            self._setting = self._setting_of(checkpoints=checkpoints is not None)
            if checkpoints is not None:
                first = formed(program, self.graph, self.config.mode, self.config.precision)
                form = checkpoints.form_of(first, self.graph)
                self._setting = replace(self._setting, goes_on=form is not None)
                program = program if form in (None, first) else form
            announced, self._announced = program is self._announced, None
            program, asks, plan = self._plan_of(program)
            self._planned, self._served = plan.needs, []
            if not self._planned.keeps_rows:  # they are not among what it takes
                self._kept_rows.clear()
            self._setting = replace(self._setting, by_windows=self._planned.value_room > 0)
            self._paged = self._value_file(program, asks, self._planned)
            self._asked = None if has_phases(program) or checkpoints is not None else asks[0]
            self._coming = asks if program.alternates and self._device.reads_host else ()
            if not (announced or has_phases(program)):
                self._announce(asks[0])  # a GPU's kernels are compiled while edges are loaded
        with checkpoints or nullcontext():
            with stage("state"):
                if checkpoints is not None:
                    program = checkpoints.begin(program, self.graph, self.config)
                if program.other_graph_bytes:
                    keep_no_large_blocks()  # buffers of each graph have other sizes, and would come on top
                self._make_room(self._planned)
            if has_phases(program):
                return (yield from self._phases(program, checkpoints, each))
            result, values = yield from self._run_phase(program, checkpoints, each)
            wider = program.instead(values) if checkpoints is None else checkpoints.widen(program, values)
            if wider is None:
                return result
            del result, values
            return (yield from self._run_form(wider, checkpoints, each))

    def walk(
        self,
        *,
        length: int = 80,
        walks_per_vertex: int = 10,
        sources: int | str | Iterable[int | str] | None = None,
        scratch: Path | str | None = None,
        **options: Any,
    ) -> Walks:
        """Return random walks, which are made with this session's device, memory and threads when they are read.

        Other threads wait for the session while they are read. What runs have cached gives way to walkers, and is read
        again by the next run.

        Parameters
        ----------
        length, walks_per_vertex, sources, scratch, **options
            As of `penstock.engine.walk`.

        Returns
        -------
        Walks
            The same as of `penstock.engine.walk`.

        Raises
        ------
        InputError
            An option is unknown or out of range, the graph cannot be walked on, or the session is of several ranks.
        BudgetError
            The memory budget is too small.
        """
        from penstock.engine.queries.walk_options import WalkOptions, WalkResources
        from penstock.engine.queries.walks import Walks

        self._turns.check()
        if self._ranks is not None:
            raise InputError("walks are made by one process, and this session is of several: open one without ranks")
        wanted = WalkOptions.of(length=length, walks_per_vertex=walks_per_vertex, **options)
        given = WalkResources(self.config, scratch, self._lent, self._setting.device_bytes)
        return Walks(self.graph, wanted, sources, given)

    @contextmanager
    def _lent(self) -> Iterator[Device]:
        """Have the device, and all the memory, for a block in turn."""
        with self._turns.acquired():
            if self._equipment is not None:
                self._drop(self._equipment)
            for kernels in self._kernels.values():
                kernels.close()
            self._indexes.clear()
            give_back_freed_memory()
            yield self._device

    def prepare(self, *programs: Program, begins: bool = False) -> None:
        """Import what programs need, and reserve memory for all: later ones find the edges that earlier ones read.

        Call it before they run. If one of them alone would have room for all its edges and together they do not, or if
        the budget is too small for all of them, each run reserves its own memory. Phases whose needs are known only
        when they run are not counted.

        Parameters
        ----------
        *programs : Program
            The programs that will run, in any order.
        begins : bool
            Whether the first runs next: a GPU's kernels that it lacks may be compiled from now on.
        """
        setting = self._setting_of(checkpoints=False)
        plain = [self._expect(one) and self._is_tried_plain(one) for one in programs]
        with self._turns.acquired():
            try:
                plans = [planned(self.graph, one, setting) for one in programs]
                self._plans = {
                    id(one): (one, dict(vars(one)), setting, plan) for one, plan in zip(programs, plans, strict=True)
                }
                if begins and not (plain[0] or has_phases(plans[0][0])):
                    self._announce(plans[0][1][0])
                    self._announced = programs[0]
                alone = [plan.needs for _, _, plan in plans]
                together = reduce(MemoryRequest.joined, alone)
                room = setting.plan(self.graph, together).room
            except BudgetError:
                self._prepared = None  # a run or forecast of one of them reports it, and the least budget
            else:
                alike = len({needs.value_room > 0 for needs in alone}) == 1  # values are in memory, or in pages, in all
                self._prepared = together if alike and room >= max(plan.room for *_, plan in plans) else None
        with stage("imports"):
            for one, first in zip(programs, plain, strict=True):
                kernel_class("plain" if first else self._kind, self.graph, one)

    def forecast(self, program: Program, *, checkpoints: bool = False) -> Forecast:
        """Compute what running a program would take, of several ranks in this one; no edge is read.

        Parameters
        ----------
        program : Program
            The program.
        checkpoints : bool
            Whether the run would store checkpoints.

        Returns
        -------
        Forecast
            Memory in bytes by purpose, and bytes and seconds of a sweep over every edge.

        Raises
        ------
        InputError
            The program cannot run on this graph or with these options; a disk has no room for values of vertices.
        BudgetError
            The memory budget is too small.
        """
        with self._turns.acquired():
            program, asks, plan = planned(self.graph, program, self._setting_of(checkpoints=checkpoints))
            first = asks[0] if asks else None
            if self._ranks is not None and first is not None:
                check_combines(first.program, asynchronous=first.asynchronous)
            folders, room = self._value_file(program, asks, plan.needs)
            check_folders(folders, room * self._setting.ranks)  # on paper all ranks are of this host
            from penstock.engine.planning.forecast import forecast

            found = forecast(self.graph, self.config, self._device, first, self._with_others(plan.needs), self._rank)
        phases = has_phases(program) and first is not None
        most = None if phases else found.most_iterations
        found = replace(found, value_file=room, value_folders=tuple(folders), compiles=self._is_new(program))
        return replace(found, program=type(program).__name__, phases=phases, most_iterations=most)

    def _phases(
        self, program: Program, checkpoints: Checkpoints | None, each: bool
    ) -> Generator[IterationRecord, None, Result]:
        """Run a program's phases one after another on its fields, which stay in host memory in between."""
        began = time.perf_counter()
        records, outer = RunRecords(), self._phase
        count, dtype = self.graph.vertices, self.graph.vertex_dtype
        self._whole, pages = program, self._value_pages()
        fill = fill_of(self._kind, self.config.thread_count)
        self._shared, self._pages = fields_for(program, count, dtype, fill=fill, pages=pages), pages
        asked: dict[tuple[Any, ...], RunRequirements] = {}
        try:
            phases = enumerate((checkpoints or program).phases(self.graph, self._shared))
            for counted, phase in phases:
                number = counted if checkpoints is None else checkpoints.phase
                self._phase = self._place_of(program, number, outer)
                if isinstance(phase, OnGraph):
                    records.extend((yield from self._on_graph(program, phase, each)))
                    continue
                kind = likeness(phase)
                if kind not in asked:
                    check_program_on(self.graph, phase)
                check_phase(phase, self.graph, self.config.mode)
                if kind not in asked:
                    asked[kind] = requirements_of(self.graph, phase, self._setting, program)
                self._asked = replace(asked[kind], program=phase)
                if pages is not None:
                    pages.keep(self._shared)  # not before: the program may read what the last phase had besides
                result, values = yield from self._run_phase(phase, checkpoints, each)
                check_sufficed(phase, values)
                for name, ours in self._shared.items():
                    if values.get(name) is not None and values[name] is not ours:
                        ours[...] = values[name]
                phase.converged = result.converged
                if phase.accepted_edges == "kept" and self._accepted is None:
                    phase.accepted_edges = ""
                records.extend(result.records)
                del result, values
            with stage("summary"):
                found = program.finish(self.graph, self._shared)
        finally:
            self._shared, self._whole, self._phase, self._pages, self._accepted = {}, None, outer, None, None
        before = 0 if checkpoints is None else checkpoints.began
        return Result(program, self.graph, found, records, time.perf_counter() - began, program.converged, before)

    def _place_of(self, program: Program, number: int, outer: PhaseRecord | None) -> PhaseRecord:
        """Return a phase for the records; of a program that is a phase itself, `outer`, with both names."""
        name = program.phase_name(self.graph, number)
        if outer is None:
            return PhaseRecord(number, name, program.phase_count(self.graph))
        return replace(outer, name=", ".join(part for part in (outer.name, name) if part))

    def _on_graph(self, program: Program, phase: OnGraph, each: bool) -> Generator[IterationRecord, None, RunRecords]:
        """Run a phase on a graph that it makes, in a session with the memory that is left; return its records."""
        if self._equipment is not None:
            self._drop(self._equipment)
        options = self._options
        room = self.config.memory_bytes - held_bytes(self.graph, program)
        give_back_freed_memory()  # of the edges that were cached
        if phase.on_cores is not None and self.config.kernels != "reference":
            found = phase.on_cores(room, self.config.thread_count, not self._device.reads_host)
            if found is not None:
                phase.fields = found
                return RunRecords()
        graph = phase.make(room, self.config.thread_count)
        give_back_freed_memory()
        if graph is not self.graph and graph.out.arrays is not None:
            room -= sum(array.nbytes for array in graph.out.arrays if array is not None)
        options["host_memory"] = room
        with Session(graph, timeline=self._timeline, **options) as other:
            self._other, other._phase, other._kind = other, self._phase, self._kind
            try:
                result = yield from other._run_form(phase.program, None, each)
            finally:
                self._read_before += other.bytes_read
                self._other = None
        phase.fields = result.fields
        return result.records

    def _run_phase(
        self, program: Program, checkpoints: Checkpoints | None, each: bool
    ) -> Generator[IterationRecord, None, tuple[Result, dict[str, Any]]]:
        """Run a phase, or a program without phases; return its result and the values of its fields."""
        if self._watch is not None:
            self._watch.begin(type(program).__name__)
        with during(self._timeline, "engine", "prepare"), stage("state"):
            loop = self._loop(program)
        loop.phase = self._phase
        state = loop.state
        began = time.perf_counter()
        with stage("state"):
            if checkpoints is None or not checkpoints.restore(loop, self._shared):
                loop.everything = self._start(program, loop)
            if isinstance(loop, SharedLoop):
                checked = time.perf_counter()
                check_same(program, loop.iteration, state.host_fields(), state.pending_bits(), loop.ranks)
                began += time.perf_counter() - checked
                loop.keep_apart(checkpoints=checkpoints is not None)
        steps = self._operator(program, loop)
        records = RunRecords()
        look = nan_check.FIRST_LOOK
        if self._watch is None and checkpoints is None and not each:
            loop.collected = records
        for record in steps if self.graph.vertices else ():
            if loop.phase is not None:
                record.phase = loop.phase
            count = records.append(record)
            if self._watch is not None:
                self._watch.note(record)
            if checkpoints is None:
                loop.keep_whole(wanted=False)
            else:
                with during(self._timeline, "engine", "checkpoint"):
                    record.checkpoint = checkpoints.after(loop, self._shared)
            if count >= look:
                nan_check.check_nan_now(program, state, count)
                look = 2 * count
            yield record
        if self._equipment is not None:
            self._equipment.settle()
        if self._watch is not None:
            self._watch.settle()
        self._accepted, seconds = state.accepted, time.perf_counter() - began
        _log.info("%s: %d iterations in %.3g s", type(program).__name__, len(records), seconds)
        with stage("summary"):
            values = state.host_fields()
            if self._ranks is not None:
                check_same(program, loop.iteration, values, state.pending_bits(), self._ranks)
            known = nan_check.check_nan(program, values, loop.iteration)
            found = program.finish(self.graph, values)
            if self._ranks is not None or type(program).finish is not Program.finish:  # values are others, or may be
                known = {}
        before = loop.iteration - len(records)
        ended = seconds, loop.converged, before
        return Result(program, self.graph, found, records, *ended, known=known), values

    def _operator(self, program: Program, loop: Loop) -> Iterator[IterationRecord]:
        """Return the iterations of the operator that the program needs: the loop's own, or one beside it."""
        if program.combine == "union":
            return union_find.link_components(loop)
        messages = self._setting.messages
        if program.peels:
            folders = folders_beside(self.graph.files) if self.config.scratch is None else [self.config.scratch]
            return triangles.peel_edges(loop, self._setting.room_bytes, messages, folders)
        if author_function(program, "corner") is not None:
            return triangles.count_triangles(loop, self._setting.room_bytes, messages)
        return whole_rows.run_whole_rows(loop, messages) if program.combine == "all" else loop.iterate()

    def _start(self, program: Program, loop: Loop) -> bool:
        """Initialize the state with first values and first frontier; return whether that is every vertex."""
        state = loop.state
        state.take({name: values for name, values in self._shared.items() if name in state.fields})
        if program.starts_anywhere and state.pages is None:
            start = program.start(self.graph, state.fields)
        else:
            taken = state.host_fields()
            start = program.start(self.graph, taken)
            state.take(taken)
        check_start(program, start)
        loop.begin_buckets()
        # Where updates are seen at once, changed and active vertices differ by their bits: so every bit is set.
        marked = start.everything and loop.asynchronous and not program.everywhere
        if start.active is not None:
            loop.kernels.mark(state, start.active)
        if marked:
            loop.kernels.mark(state, np.broadcast_to(np.True_, self.graph.vertices))
        return start.everything and not marked

    def _loop(self, program: Program) -> Loop:
        asks, self._asked = self._asks(program), None
        asynchronous, apart, weighted, directions = asks.asynchronous, asks.apart, asks.needs.weighted, asks.directions
        if self._whole is not None:
            self._announce(asks)
        equipment = self._equip(asks.needs, program)
        coming, self._coming = self._coming, ()
        self._announce(asks, *coming, decoding=equipment.pipeline.staging.kernels_unpack)
        for one in coming:
            self._kernels_of(one.program, one.needs.weighted)  # which are announced now
        if program.combine == "union":
            equipment.bring_residents()  # what is linked first: the rows of its largest tree need not come
        kernels = self._kernels_of(program, weighted)
        equipment.feedback.turn_to((type(program), weighted))
        sent = self._degree_index(sending_direction(self.graph, program))
        streams, against = equipment.streams(directions, weighted, sent)
        fill = fill_of(self._kind, self.config.thread_count)
        pages = self._value_pages() if self._whole is None else self._pages
        state = new_state(self._kind, self.graph, program, kernels.author, self._device, self._shared, fill, pages)
        if apart:
            state.accumulate_apart()
        if self._ranks is not None:
            check_combines(program, asynchronous=asynchronous)
            if not apart:
                state.mark_apart()
        state.groups = None if against else equipment.group_sources(program, kernels.author, streams)
        equipment.give_ids_back(state.groups)
        if pages is not None and program.accepted_edges == "kept" and not self._setting.checkpoints:
            state.accepted = CompactedRows() if "push" in directions else None
        elif program.accepted_edges == "walked":
            state.compacted, self._accepted = self._accepted, None
        if asks.unmatched and pages is None:
            state.unmatched = UnmatchedRows.with_room(asks.unmatched, self.graph.vertices, self.graph.vertex_dtype)
        for stream in (*streams.values(), *against.values()):
            stream.complete = asynchronous and self.config.tuning.local_rounds > 0
            if not program.early_exit:
                stream.heads = None
        if self._watch is not None:
            kernels = self._watch.kernels(kernels)
        forced = next(iter(directions)) if len(directions) == 1 else None
        local = asynchronous and not kernels.author.has_send and self._ranks is None
        rounds = self.config.tuning.local_rounds if local else 0
        due = Due(program)
        if self.config.tuning.layers:
            due = Layers(program, state, layer_bounds(sent, self.config.tuning.layers))
        kind: Callable[..., Loop] = Loop
        if self._ranks is not None:
            assert equipment.ownership is not None, "ranks own rows"
            moves = self.config.repartition and not self._rank_devices.linked
            kind = partial(
                SharedLoop if pages is None else OwnedLoop,
                ranks=self._ranks,
                devices=self._rank_devices,
                ownership=equipment.ownership,
                rebalance=Rebalance(equipment).after_walk if moves else None,
                timeline=self._timeline,
            )
        return kind(
            program=program,
            graph=self.graph,
            out=sent,
            state=state,
            kernels=kernels,
            due=due,
            streams=streams,
            against=against,
            asynchronous=asynchronous,
            forced=forced,
            local_rounds=rounds,
        )

    def _value_file(
        self, program: Program, asks: Iterable[RunRequirements], needs: MemoryRequest
    ) -> tuple[list[Path], int]:
        """Where values of vertices go that memory has no room for, and the bytes of all; nowhere where it has room."""
        if not needs.value_room:
            return [], 0
        graph, scratch = self.graph, self.config.scratch
        arrays = [paged_bytes(graph, program, one) for one in asks]
        if needs.device_room and needs.value_room >= max(sum(map(slot_bytes, each.values())) for each in arrays):
            return [], 0
        folders = folders_beside(graph.files) if scratch is None else [scratch]
        every = {item for each in arrays for item in each.items()}
        if self._setting.ranks == 1:
            return folders, sum(slot_bytes(size) for _, size in every)
        # A rank has its own part of all while it walks, and at the end all of the fields, where long messages were.
        own = min(1.0, OWN_SHARE / self._setting.ranks)
        fields = [size for name, size in every if name not in (SENT, INCOMING)]
        stay = [size for name, size in every if name in (SENT, INCOMING) and size < max(fields)]
        ends = sum(size + size // graph.vertices * needs.value_rows for size in fields)  # of the last pages few fit
        return folders, slot_bytes(int(max(ends + own * sum(stay), own * sum(size for _, size in every))))

    def _value_pages(self) -> StatePages | None:
        """Return what holds the values of vertices, in a file; None: memory does."""
        if self._planned is None or not self._planned.value_room:
            return None
        graph, pages = self.graph, self.graph.out.index().pages
        assert pages is not None, "values come with the rows of the index"
        file = PageFile(*self._paged)
        rows, room = self._planned.value_rows, self._planned.value_room
        given, needs = (graph.vertices, rows, room, file, self._timeline), self._planned
        if not needs.device_room:
            return StatePages(*given)
        unpacker = unpacker_of(self._device, self.config.kernels)
        of_device = self._device, LockedPages(self._device, *given), pages.together, needs.device_room, unpacker
        return DevicePages(*of_device, self._timeline, kept_rows=self._kept_rows if needs.keeps_rows else None)

    def _degree_index(self, direction: AdjacencyDirection) -> Index:
        """Return the index whose rows are as long as the vertices' degrees; a list's are read or counted once."""
        if self.graph.layout == "rows":
            return degree_index(self.graph, direction, self.config.thread_count)
        if direction not in self._degrees:
            self._degrees[direction] = degree_index(self.graph, direction, self.config.thread_count)
        return self._degrees[direction]

    def _announce(self, *asks: RunRequirements, decoding: bool | None = None) -> None:
        """Let kernels that are missing be compiled by several processes; as `announce_run`. Once for like phases."""
        kinds = {(type(one.program), one.needs.weighted): one for one in asks}
        new = [one for kind, one in kinds.items() if kind not in self._kernels]
        if new:
            announce_run(new, self.graph, self._device, self._setting, decoding, phases=self._phase_count)

    def _expect(self, program: Program) -> bool:
        """Let a companion start while this process imports the compiler, and return True, if the program is new."""
        early = not self._is_tried_plain(program)
        return self.config.kernels != "reference" and expect_run(program, self.graph, self._kind, early=early)

    def _is_new(self, program: Program) -> bool:
        """Whether its kernels will have to be compiled."""
        return self.config.kernels != "reference" and is_new_run(program, self.graph, self._kind)

    def _kernels_of(self, program: Program, weighted: bool) -> Kernels[Any]:
        key = type(program), weighted
        if key in self._kernels:
            return self._kernels[key]
        placed, threads = (self._device, self._indexes), (self.config.thread_count, self._all_threads)
        made = new_kernels(self._kind, self.graph, program, weighted, placed, threads, self._phase_count)
        self._kernels[key] = made
        return made

    @property
    def _phase_count(self) -> int:
        """How many phases the run has, as far as is known."""
        return 0 if self._phase is None else self._phase.count or 0

    @property
    def _rank(self) -> tuple[int, int] | None:
        """Of a session of several ranks, the number of this one, and how many there are."""
        return None if self._ranks is None else (self._ranks.rank, self._ranks.size)

    def _setting_of(self, *, checkpoints: bool) -> RunSetting:
        timeline_bytes = 0 if self._timeline is None else self._timeline.nbytes
        size = 1 if self._ranks is None else self._ranks.size
        given = self.config, self._device.own_bytes, timeline_bytes, checkpoints, size
        mixed = self._rank_devices.linked
        there = has_state_there(self._kind)
        return RunSetting(*given, state_there=there, mixed=mixed, grain=self._device.grain)

    def _most_of_all(self, number: int) -> int:
        """Return the largest number that a rank has; without ranks this one."""
        return number if self._ranks is None else int(self._ranks.gather_numbers(np.array([number])).max())

    def _plan_of(self, program: Program) -> Plan:
        """Plan a run, unless `prepare` has and nothing that it went by can have changed, as a list can in place."""
        known = self._plans.pop(id(program), None)
        if known is not None and self._ranks is None:
            _, given, setting, plan = known
            now = vars(program)
            if (
                setting == self._setting
                and given.keys() == now.keys()
                and all(given[name] is now[name] and isinstance(now[name], Hashable) for name in now)
            ):
                return plan
        return planned(self.graph, program, self._setting, self._most_of_all)

    def _asks(self, program: Program) -> RunRequirements:
        """Return what the program asks for: as planned, or as phases like it do; of one that is resumed, found now."""
        if self._asked is not None and self._asked.program is program:
            return self._asked
        return requirements_of(self.graph, program, self._setting, self._whole)

    def _check_told(self, program: Program) -> None:
        """Refuse a phase that was not announced and exceeds the memory. Raises BudgetError."""

        def attempt(setting: RunSetting) -> MemoryPlan:
            needs = requirements_of(self.graph, program, setting, self._whole).needs
            needs = needs if self._planned is None else self._planned.joined(needs)
            return setting.plan(self.graph, needs)

        retried(self._setting, attempt)

    def _with_others(self, needs: MemoryRequest, old: MemoryRequest | None = None) -> MemoryRequest:
        """Return these needs and those of programs that ran or will run here, as far as the budget allows."""
        prepared = None if self._prepared is None or self._prepared.value_room != needs.value_room else self._prepared
        old = None if old is None or (old.value_room > 0) != (needs.value_room > 0) else old
        others = [] if prepared is None else [prepared.joined(needs)]
        for both in others if old is None else [*others, old.and_also(others[0] if others else needs)]:
            try:
                self._setting.plan(self.graph, both)
            except BudgetError:
                break
            needs = both
        return needs

    def _make_room(self, needs: MemoryRequest) -> None:
        """Prepare for a run before it takes memory; resources of earlier runs are closed if they do not fit."""
        if needs.adjacencies:
            self._equip(needs)
        elif self._equipment is not None and not self._equipment.needs.covers(needs, self._equipment.spare):
            self._drop(self._equipment)

    def _drop(self, equipment: HostResources) -> None:
        """Close the resources of earlier runs; bounds that they moved hold on, as they do in other ranks."""
        self._held.equipment, self._served = None, []
        self._kept_rows.clear()  # of its indexes
        self._moved = equipment.moved
        for index in equipment.own_indexes:
            self._indexes.pop(id(index), None)
        equipment.close()

    def _equip(self, needs: MemoryRequest, program: Program | None = None) -> HostResources:
        """Return what runs share, made anew if this run needs other directions, weights, or more state."""
        old = self._equipment
        if old is not None and not old.mixed and any(needs is one for one in self._served):  # of phases before
            return old
        self._served.append(needs)
        needs = needs if self._planned is None else self._planned.joined(needs)
        if old is None or old.mixed or not old.needs.covers(needs, old.spare):
            if program is not None:
                self._check_told(program)
            needs = self._with_others(needs, None if old is None else old.needs)
            if old is not None:
                self._drop(old)
            for adjacency in self.graph.adjacencies:
                if all(adjacency is not one for one in needs.indexed):
                    adjacency.drop_index()
            given = self.graph, self.config, needs, self._device, self._timeline, self._rank, self._moved
            self._held.equipment = made = self._resources(*given)
            if old is not None:
                made.feedback.inherit(old.feedback)
            if self._watch is not None:
                made.feedback.stamps = self._watch.stamps
            made.log()
        assert self._held.equipment is not None
        return self._held.equipment


class _Held:
    """What a session gives back when it is closed, or dropped: its equipment, device, and what has memory of that.

    failed: whether it is closed by an error.
    """

    failed = False

    def __init__(self, device: Device, kernels: dict[Any, Any], arrays: ArrayRanks | None = None) -> None:
        self.equipment: HostResources | None = None
        self._device, self._kernels, self._arrays = device, kernels, arrays

    def close(self) -> None:
        """Stop reading, and free the caches and what is on the device."""
        equipment, self.equipment = self.equipment, None
        if equipment is not None:
            equipment.close()
        for kernels in self._kernels.values():
            kernels.close()
        if self._arrays is not None:
            self._arrays.close(failed=self.failed)
        self._device.close()
        self._kernels.clear()
