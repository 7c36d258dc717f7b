"""What a program asks of a session: directions, weights, how its updates are seen, and the memory that follows.

Sums up what a run asks of memory before there is a run, so that a forecast, a refusal and the run itself have the same:
for all programs that may run in the course of one. Reads the row index where the sum needs it, never an edge. Refuses
what the graph or the options rule out, and a budget below the least that works, which it names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar, cast

from penstock.engine.execution import cel, layers, triangles, whole_rows
from penstock.engine.execution.owned_steps import keeps_apart
from penstock.engine.execution.windows import AHEAD, KEPT_SHARE, WindowCut, cut_windows, window_vertices, windows_walked
from penstock.engine.program.precision import formed
from penstock.engine.program.program import (
    AUTHORED,
    VERTEX,
    Program,
    arguments,
    author_function,
    fields_of,
    has_phases,
    needs_rows,
    weighted,
    words_of,
)
from penstock.engine.program.program_check import check_field_types, check_program, synchronous_words
from penstock.engine.resources.block_stream import check_listed, list_bytes
from penstock.engine.resources.direction import Traversal, traversals
from penstock.engine.resources.memory_plan import MemoryPlan, left_for_edges, plan_memory
from penstock.engine.resources.requirements_types import SMALL_CHANGE, MemoryRequest, index_bytes, row_index_bytes
from penstock.engine.state.device_pages import device_page_rows
from penstock.engine.state.device_state import device_state_bytes
from penstock.engine.state.row_blocks import message_capacity
from penstock.engine.state.state import (
    EXCHANGED_AT_ONCE,
    bitmap_bytes,
    exchange_bytes,
    field_bytes,
    fields_for,
    is_sweep,
    listing_bytes,
    state_bytes,
    value_bytes,
)
from penstock.engine.state.state_arrays import StepValues, array_of_messages
from penstock.engine.state.unmatched_rows import unmatched_bytes
from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import BudgetError, InputError
from penstock.storage.base.slot_pool import ALIGNMENT
from penstock.storage.checkpoint.file import WRITING_BYTES
from penstock.storage.checkpoint.state_pages import MOVERS
from penstock.storage.format.degrees import packed_bytes
from penstock.storage.format.index import part_of_page
from penstock.storage.format.row_pages import OFFSET_BYTES, page_rows

if TYPE_CHECKING:
    from penstock.engine.resources.config import Config
    from penstock.engine.resources.direction import Direction
    from penstock.storage.format.graph import Adjacency, Graph
    from penstock.transfer.values.task import Direction as AdjacencyDirection

Found = TypeVar("Found")
PAGE_THREADS = 8
"""Threads at most that read pages of a row index side by side: each takes some MiB."""
DECODERS = 2
"""Threads that decode edges, for each of these: more take the place of values, of which windows are smaller then."""
VALUE_PAGE_BYTES = 64 << 20
"""Bytes of a page of all arrays of values, above which it is a part of a page of the index."""
RANGES = 8
"""Ranges of rows whose values would find room beside each other: fewer leave little to a window."""
READING_SHARE, READING_BYTES = 16, 128 << 20
"""Edges get this part of the room for values beside the least that reading takes, at most so many bytes: longer reads,
and fewer views."""
EDGE_SHARE = 4
"""Edges get this part of what bitmaps leave of a device, where its values come in pages."""
KEPT_ROW_BYTES = 16
"""Bytes for a row of a page while its edges to a window are kept."""
DECLARED = sorted({*Program.__annotations__} - {*AUTHORED, "watched"})
"""Attributes of programs, but for functions and ids of vertices."""
PUSHED = ("compaction", "cel")  # routes that bring the rows of active vertices only


@dataclass(frozen=True)
class RunSetting:
    """What a run's memory depends on besides the graph and the program.

    device_bytes: memory of the device behind a link, None without one. timeline_bytes: of a run that is traced.
    checkpoints: whether it keeps some. ranks: how many processes share the edges. by_windows: whether values of
    vertices are in a file, so that sweeps push: a pull would write the values of all rows once for each window.
    state_there: whether its state is on the device. mixed: whether edges come over a link in some rank. grain: bytes of
    which memory for pages is a multiple there. goes_on: whether it continues from a checkpoint, and so in the form of
    the program that this is of.
    """

    config: Config
    device_bytes: int | None = None
    timeline_bytes: int = 0
    checkpoints: bool = False
    ranks: int = 1
    by_windows: bool = False
    state_there: bool = False
    mixed: bool = False
    grain: int = ALIGNMENT
    goes_on: bool = False

    @property
    def on_cores(self) -> bool:
        """Whether the cores compute, in all ranks."""
        return self.device_bytes is None and not self.mixed

    def takes(self, lighter: Program) -> bool:
        """Whether such a program may run in the place of one that asks for more."""
        kept = lighter.in_pages and not self.goes_on
        return (self.on_cores and (kept or not self.checkpoints)) or not (lighter.on_cores or lighter.in_pages)

    @property
    def pages_there(self) -> bool:
        """Whether a device may have values in pages: a GPU of one process."""
        return self.state_there and self.ranks == 1

    @property
    def other_bytes(self) -> int:
        """Bytes that trace and checkpoints take."""
        return self.timeline_bytes + (WRITING_BYTES if self.checkpoints else 0)

    @property
    def room_bytes(self) -> int:
        """Bytes of the memory that holds the state: the host's, or a device's, of which the host must have as much."""
        ours = self.config.memory_bytes
        return ours if self.device_bytes is None else min(ours, self.device_bytes)

    def plan(self, graph: Graph, needs: MemoryRequest) -> MemoryPlan:
        """The plan of a run with these needs. Raises BudgetError."""
        return plan_memory(graph, self.config, needs, self.device_bytes)

    @property
    def messages(self) -> int:
        """Messages that a buffer of whole rows should have room for."""
        return message_capacity(None if self.device_bytes is None else self.room_bytes)

    def given(self, option: str, budget: int) -> RunSetting:
        """The same with another budget: of the host, or of the device."""
        if option == "--device-memory":
            return replace(self, device_bytes=budget)
        return replace(self, config=replace(self.config, host_memory=budget))


@dataclass(frozen=True)
class RunRequirements:
    """What one program asks for.

    asynchronous: updates are seen at once. apart: messages have a place of their own. unmatched: bytes, of the state's,
    for rows that pulls keep. by_windows: whether values of vertices may be in a file, and come when they are wanted.
    """

    program: Program
    directions: dict[Direction, tuple[Traversal, ...]]
    asynchronous: bool
    apart: bool
    needs: MemoryRequest
    unmatched: int = 0
    by_windows: bool = False


def requirements_within(
    graph: Graph, program: Program, setting: RunSetting
) -> tuple[tuple[RunRequirements, ...], MemoryPlan]:
    """What a run asks for, program by program, the first one first, and its plan; the program as its `form` has it.

    Raises InputError for what cannot run, BudgetError for a budget that is too small: it names the least that works.
    """

    def attempt(setting: RunSetting) -> tuple[tuple[RunRequirements, ...], MemoryPlan]:
        asks = tuple(_all_requirements(graph, program, setting))
        needs = reduce(
            MemoryRequest.joined, [one.needs for one in asks], _between_phases(graph, program, setting, asks)
        )
        threads = min(setting.config.thread_count, PAGE_THREADS)
        paged = replace(needs, page_threads=threads, plain=True)
        if setting.by_windows:
            needs = in_windows(graph, setting, program, asks, paged)
            if setting.device_bytes is not None:
                needs = in_device_windows(graph, setting, program, asks, needs)
            return asks, setting.plan(graph, needs)
        try:
            return asks, setting.plan(graph, needs)
        except BudgetError:
            if not needs.in_order:
                raise
        return asks, setting.plan(graph, paged)

    return retried(setting, attempt)


def _has_pages(graph: Graph, program: Program, setting: RunSetting, asks: tuple[RunRequirements, ...]) -> bool:
    """Whether values of vertices may be in a file in all that a program may run."""
    known = not has_phases(program) or (program.may_run(graph) is not None and has_value_pages(program))
    return known and bool(asks) and all(one.by_windows for one in asks)


def paged_bytes(graph: Graph, program: Program, one: RunRequirements) -> dict[str, int]:
    """Bytes of each array that may be in a file while a program, or one of its phases, runs, by name."""
    shared = field_bytes(program, graph.vertices, graph.vertex_dtype) if has_phases(program) else {}
    return shared | value_bytes(one.program, graph.vertices, graph.vertex_dtype, apart=one.apart)


def in_windows(
    graph: Graph, setting: RunSetting, program: Program, asks: tuple[RunRequirements, ...], needs: MemoryRequest
) -> MemoryRequest:
    """These needs of all that a program may run, with the values of vertices in a file but for what there is room for.

    At least for two ranges of rows, of which one is at hand, and a window of as many vertices. Several threads read
    pages of the index where ranges of as many pages leave most of the room to the window.
    """
    values = [paged_bytes(graph, program, one) for one in asks]
    assert graph.out.degrees is not None, "rows in order are those of a file"
    edges, index_rows = graph.out.chunk_edges, page_rows(graph.out.degrees.spec.chunk_items)
    pairs = zip(asks, values, strict=True)
    of_file = [window for adjacency in needs.adjacencies for window in adjacency.windows]
    of_file += [one for one in needs.adjacencies if all(one is not whole for whole in needs.indexed)]
    others = max(
        one.needs.state_bytes - one.unmatched - _listing_bytes(graph, one, setting) - sum(sizes.values())
        for one, sizes in pairs
    )
    others += edges * graph.out.edge_bytes(needs.weighted)
    rows = min(_value_rows(graph, sizes) for sizes in values)
    page = max(sum(size // max(1, graph.vertices) * rows + ALIGNMENT for size in sizes.values()) for sizes in values)
    most = max(sum(sizes.values()) for sizes in values)
    threads = needs.page_threads
    kept_row = KEPT_ROW_BYTES if any(one.program.combine != "union" for one in asks) else 0
    while True:
        if setting.device_bytes is None:
            held = others + kept_row * threads * index_rows  # with a chunk's edges to a window, and their rows
        else:
            packed = _packed_bytes(needs, device_page(graph, setting.grain, threads))
            held = others + MOVERS * 2 * packed  # rows come chunk by chunk, and are put together
        if of_file:  # pages of the rows of one at a time
            held += max(index_bytes(one, threads) for one in of_file) + len(of_file) * (
                row_index_bytes(0) + graph.vertices // 8192
            )
        needs = replace(needs, page_threads=threads, state_bytes=held)
        decoders = min(setting.config.thread_count, DECODERS * threads)
        room = left_for_edges(replace(setting.config, threads=decoders), needs, graph)
        reading = min(room // READING_SHARE, READING_BYTES) if setting.on_cores else 0
        room = min(most + page, room - reading)
        if threads == 1 or room >= RANGES * page * (threads if rows == index_rows else 1):
            break
        threads //= 2
    least = (AHEAD + 1) * page
    room = max(room, least if kept_row else least + least // KEPT_SHARE)  # pairs of trees are kept beside the pages
    return replace(needs, state_bytes=held + room, value_room=room, value_rows=rows)


def _value_rows(graph: Graph, sizes: Mapping[str, int]) -> int:
    """Vertices of a page of values: of vectors fewer than rows of a page of the index; sizes: of all arrays."""
    assert graph.out.degrees is not None, "rows in order are those of a file"
    each = max(1, sum(sizes.values()) // max(1, graph.vertices))
    return part_of_page(page_rows(graph.out.degrees.spec.chunk_items), VALUE_PAGE_BYTES // each)


def _listing_bytes(graph: Graph, one: RunRequirements, setting: RunSetting) -> int:
    """Bytes, of the state's, of lists of a frontier, of which there are none where values are in pages."""
    found = listing_bytes(one.program, graph.vertices, graph.vertex_dtype)
    if setting.device_bytes is not None:
        found += device_state_bytes(one.program, graph.vertices, graph.vertex_dtype)
    return found


def in_device_windows(
    graph: Graph, setting: RunSetting, program: Program, asks: tuple[RunRequirements, ...], needs: MemoryRequest
) -> MemoryRequest:
    """These needs where a device has values and rows in pages, too, and edges come by the windows of the file.

    A device picks no edges: each window of the file, or all vertices where it has none, has its values there at once.
    Edges get a quarter of what bitmaps leave, where the user does not say how much. Raises BudgetError.
    """
    device, config = setting.device_bytes, setting.config
    assert device is not None, "there is a device"
    assert graph.out.degrees is not None, "rows in order are those of a file"
    page = device_page(graph, setting.grain, needs.page_threads)
    held, most, least, window, widest = 0, 0, 0, 0, 0
    for one in asks:
        of_host = sum(paged_bytes(graph, program, one).values())
        held = max(held, one.needs.state_bytes - _listing_bytes(graph, one, setting) - of_host)
        sizes = value_bytes(one.program, graph.vertices, graph.vertex_dtype, apart=one.apart)
        each = {name: size // max(1, graph.vertices) for name, size in sizes.items()}
        messages = array_of_messages(one.program.accumulator, sizes, apart=one.apart)
        steps = StepValues.of(one.program)
        for walk in (walk for walks in one.directions.values() for walk in walks):
            whole, pushes = graph.adjacency(walk.key), walk.direction == "push"
            assert whole is not None, "a direction that is walked is stored"
            far, near = steps.at_hand(each, messages, pushes=pushes)
            cut = cut_windows(whole, steps, graph.vertices, 0, page, (far, near), picks=False, pushes=pushes)
            pages = -(-min(cut.size, graph.vertices) // page) + (cut.of_file % page > 0)  # it may begin inside of one
            taken = far * pages * page + AHEAD * (near + OFFSET_BYTES) * page
            least, window = max((least, window), (taken, cut.size if far else page))
        most = max(most, sum(each.values()) * -(-graph.vertices // page) * page)
        widest = max(widest, *each.values())
    spare = OFFSET_BYTES * page  # with where the row behind a range begins
    held += SMALL_CHANGE + spare
    read = {id(one): one for one in (*needs.indexed, *needs.adjacencies)}.values()
    held += sum(one.edges // 256 + one.vertices // 1024 for one in read)  # tiles, blocks of rows
    held += MOVERS * _packed_bytes(needs, page)
    given = config.device_edge_memory
    edges = max(0, device - held) // EDGE_SHARE if given is None else given
    if device - held - edges < least:
        wanted = held + (given + least if given is not None else -(-least * EDGE_SHARE // (EDGE_SHARE - 1)))
        raise BudgetError(
            "--device-memory",
            f"bitmaps of vertices and pages of rows take {format_bytes(held)}, edges {format_bytes(edges)}, and values "
            f"of a window of {window} vertices {format_bytes(least)}",
            -(-wanted // (1 << 20)),
            ", or convert with more --windows",
        )
    rows = OFFSET_BYTES * (graph.vertices // page + 1) * page  # with where the last row ends
    room = min(most + rows * len(read), device - held - edges)
    lacking = max(0, min(page, graph.vertices) * widest - needs.value_room)  # a page of the device, in host memory
    needs = replace(
        needs,
        page_threads=_whole_power(needs.page_threads),
        state_bytes=needs.state_bytes + lacking,
        value_room=needs.value_room + lacking,
    )
    rows_kept = sum(packed_bytes(one.degrees, 0) for one in read if one.degrees is not None)
    kept = replace(needs, state_bytes=needs.state_bytes + rows_kept, keeps_rows=True)
    keeps = left_for_edges(config, kept, graph) >= needs.edge_bytes  # else edges are worth more than rows
    return replace(kept if keeps else needs, device_held=held + room, device_room=room)


def _whole_power(threads: int) -> int:
    """So many threads or fewer, a power of two: a page of the device is no longer than what comes at once then."""
    return 1 << (max(1, threads).bit_length() - 1)


def device_page(graph: Graph, grain: int, threads: int) -> int:
    """Vertices of a page of a device, where so many threads read pages of rows side by side."""
    assert graph.out.degrees is not None, "rows in order are those of a file"
    return device_page_rows(grain, page_rows(graph.out.degrees.spec.chunk_items) * _whole_power(threads))


def _packed_bytes(needs: MemoryRequest, page: int) -> int:
    """Bytes of the packed degrees of so many rows of an index at most."""
    read = (*needs.indexed, *needs.adjacencies)
    return max(packed_bytes(one.degrees, page) for one in read if one.degrees is not None)


def windows_of(
    graph: Graph, one: RunRequirements, needs: MemoryRequest, direction: Direction, ranks: int = 1,
    *, of_file: bool = False,
) -> tuple[WindowCut, int]:  # fmt: skip
    """In which windows a sweep has the values of vertices, and the bytes of these that it reads and writes at most.

    of_file: those between host memory and the file, where a device has pages of what host memory has pages of.

    A sweep is: what vertices send; for each window its values, and those of all rows; what vertices become. Of several
    ranks each has rows and values of its own.
    """
    assert graph.out.degrees is not None, "rows in order are those of a file"
    sizes = value_bytes(one.program, graph.vertices, graph.vertex_dtype, apart=one.apart)
    each = {name: size // max(1, graph.vertices) for name, size in sizes.items()}
    steps, pushes = StepValues.of(one.program), direction == "push"
    messages = array_of_messages(one.program.accumulator, sizes, apart=one.apart)
    far, near = steps.walked(messages, pushes=pushes)
    rows, index_rows = needs.value_rows, page_rows(graph.out.degrees.spec.chunk_items)
    together = rows * max(1, needs.page_threads) if rows == index_rows else rows
    beside = steps.at_hand(each, messages, pushes=pushes)
    room = needs.device_room or needs.value_room
    size = window_vertices(room, beside, rows, together)
    if one.program.combine == "union":  # trees of one window stay, the others are written at the end
        return WindowCut(size, 1, 1), max(0, sum(sizes.values()) - beside[0] * size)
    walked = graph.adjacency(one.directions[direction][0].key)
    assert walked is not None, "a direction that is walked is stored"
    how = {"picks": not needs.device_room, "pushes": pushes}
    cut = cut_windows(walked, steps, graph.vertices, size, rows, beside, room, **how)
    stays = max(0, room - beside[0] * min(cut.size, graph.vertices)) if not of_file else needs.value_room
    if of_file and stays >= sum(sizes.values()):
        return cut, 0
    emptied = steps.emptied(messages)

    def of(*names: Iterable[str]) -> int:
        return sum(sizes[name] for some in names for name in some)

    moved = of(steps.reads("send"), steps.sends, far - emptied)
    within = one.apart and pushes and steps.applied_within(messages)
    at_hand = far if within else frozenset[str]()
    moved += of({messages} | steps.changing & at_hand) * (1 if pushes else cut.count)
    moved -= 0 if pushes else of(near & emptied)
    if one.apart:
        moved += of(steps.applies(messages) - at_hand, (steps.changing | ({messages} - emptied)) - at_hand)
    moved //= ranks
    again = max(0, of(near) // ranks - stays)  # from one walk of the rows to the next
    return cut, moved + cut.count * again


def retried(setting: RunSetting, attempt: Callable[[RunSetting], Found]) -> Found:
    """What `attempt` finds in a setting. Raises its BudgetError with the least number of MiB that it does not refuse.

    What is taken may grow with what is given, but by less: so the sums for growing budgets end at the least one.
    """
    try:
        return attempt(setting)
    except BudgetError as refusal:
        refused = latest = refusal.with_traceback(None)  # which leads to this frame, and so to what callers hold
    while True:
        try:
            attempt(setting.given(refused.option, latest.least_mib << 20))
        except BudgetError as again:
            if again.option == refused.option and again.least_mib > latest.least_mib:
                latest = again.with_traceback(None)
                continue
        break
    grows = "; of a larger budget kept rows take more" if latest is not refused else ""
    raise BudgetError(refused.option, refused.reason + grows, latest.least_mib, refused.otherwise)


def _all_requirements(graph: Graph, program: Program, setting: RunSetting) -> Iterable[RunRequirements]:
    """What a program asks for, or each of its phases; then what those that may run in its stead do."""
    check_program_on(graph, program)
    if has_phases(program):
        if program.other_graph_bytes and setting.ranks > 1:
            raise InputError(
                f"{type(program).__name__} makes graphs of its own, and these are not shared by {setting.ranks} ranks; "
                "run it in one process, without --devices"
            )
        for phase in _phases(graph, program):
            if has_phases(phase):
                yield from _on_other_graphs(graph, program, phase, setting)
                continue
            check_program_on(graph, phase)
            yield requirements_of(graph, phase, setting, program)
        return
    yield requirements_of(graph, program, setting)
    for other in program.may_run(graph) or ():
        yield from _all_requirements(graph, other.form(graph, setting.config.mode), setting)


def _on_other_graphs(graph: Graph, program: Program, phase: Program, setting: RunSetting) -> Iterable[RunRequirements]:
    """What a phase asks for that runs on graphs no larger than this one, beside what its program keeps."""
    held = held_bytes(graph, program)
    for one in _all_requirements(graph, phase, setting):
        needs = replace(one.needs, state_bytes=one.needs.state_bytes + held)
        yield replace(one, needs=needs, by_windows=False)


def held_bytes(graph: Graph, program: Program) -> int:
    """What a program of phases keeps while one of them runs on another graph."""
    fields = sum(field_bytes(program, graph.vertices, graph.vertex_dtype).values())
    return fields + int(program.working_bytes * graph.vertices)


def _phases(graph: Graph, program: Program) -> Iterable[Program]:
    """The phases that a program may have; of one that does not say which, the first."""
    said = program.may_run(graph)
    if said is not None:
        return said
    first = next(iter(program.phases(graph, fields_for(program, graph.vertices, graph.vertex_dtype))), None)
    return [] if first is None else [first]


def _between_phases(
    graph: Graph, program: Program, setting: RunSetting, asks: tuple[RunRequirements, ...]
) -> MemoryRequest:
    """What a program of phases takes of itself; one without any reads degrees, of which a file's are not held."""
    held = sum(field_bytes(program, graph.vertices, graph.vertex_dtype).values()) if has_phases(program) else 0
    held += program.other_graph_bytes
    held += setting.other_bytes
    names, threads = _names_vertices(program), setting.config.thread_count
    needs = MemoryRequest.of(graph, (), weighted=False, names=names, threads=threads, state_bytes=held)
    working = int(program.working_bytes * graph.vertices)
    needs = replace(needs, in_order=bool(asks))
    held_indexes = [one for one in graph.adjacencies if graph.degree_frames(one.direction) is None]
    return replace(needs, working_bytes=working, indexed=needs.indexed if asks else tuple(held_indexes))


def requirements_of(
    graph: Graph, program: Program, setting: RunSetting, whole: Program | None = None
) -> RunRequirements:
    """What a program asks for.

    whole: the one whose phase it is.
    Raises InputError for a direction, mode or route in which the program cannot run on this graph.
    """
    config = setting.config
    words = synchronous_words(program) if program.self_combining else []
    asynchronous = program.self_combining and config.mode != "sync" and not words
    tolerant = asynchronous or whole is not None or program.order_free or program.combine == "union"
    if config.mode == "async" and not tolerant:
        why = f"{', '.join(words)} would mean nothing there" if program.self_combining else "it is not self_combining"
        raise InputError(
            f"{type(program).__name__} cannot run asynchronously: {why}; leave --mode async out, or use --mode sync"
        )
    cel.check(program, config, asynchronous=asynchronous)
    layers.check(program if whole is None else whole, config, asynchronous=asynchronous and whole is None)
    apart = not asynchronous and program.combine not in ("union", "all")
    by_weight = weighted(program, graph)
    forced = replace(config, direction="push") if config.tuning.layers else config
    by_device = setting.by_windows and setting.device_bytes is not None
    directions = _directions(graph, forced, program, "push" if setting.by_windows else "pull", by_device=by_device)
    held = state_bytes(program, graph.vertices, graph.vertex_dtype, apart=apart) + setting.other_bytes
    working = program.working_bytes
    if whole is not None:
        shared = field_bytes(whole, graph.vertices, graph.vertex_dtype)
        held += sum(size for name, size in shared.items() if name not in fields_of(program))
        working = max(working, whole.working_bytes)
    if program.combine == "all":
        held += whole_rows.row_bytes(program, graph, setting.messages)
    counts = author_function(program, "corner") is not None
    if counts:
        sum_of = triangles.peeling_bytes if program.peels else triangles.strip_bytes
        held += sum_of(graph, setting.room_bytes, setting.messages)
    if setting.ranks > 1:
        sliced = program.combine == "all" or (program.everywhere and list(directions) == ["pull"] and not counts)
        at_once = EXCHANGED_AT_ONCE if setting.device_bytes is None else graph.vertices
        if setting.by_windows and graph.out.degrees is not None:
            sizes = value_bytes(program, graph.vertices, graph.vertex_dtype, apart=apart)
            at_once = _value_rows(graph, sizes)
        owners = setting.on_cores and not setting.by_windows and "pull" in directions and keeps_apart(program)
        size = {"at_once": at_once, "ranks": setting.ranks}
        held += exchange_bytes(
            program, graph.vertices, graph.vertex_dtype, apart=apart, owners=owners, sliced=sliced, **size
        )
    if graph.layout == "list":
        held += list_bytes(graph)
    if setting.device_bytes is not None:
        held += device_state_bytes(program, graph.vertices, graph.vertex_dtype)
        held += bitmap_bytes(graph.vertices) if is_sweep(program) else 0
    walked = [walk for walks_of in directions.values() for walk in walks_of]
    needs = MemoryRequest.of(
        graph,
        walked,
        weighted=by_weight,
        names=_names_vertices(whole or program),
        threads=config.thread_count,
        state_bytes=held,
        working_bytes=int(working * graph.vertices),
        sending=sending_direction(graph, program),
    )
    if setting.ranks > 1 and setting.device_bytes is not None:  # indexes of a rank's own rows, beside those of all
        held += sum(index_bytes(one) for one in needs.adjacencies)
    union, undirected = program.combine == "union", not graph.directed
    here = program.everywhere and setting.ranks == 1 and setting.device_bytes is None
    decodes = here and gathers_ahead(program, config, directions)  # `kernels/host/packed_sweep.py`
    if by_device:
        needs = replace(needs, adjacencies=_read_by_windows(graph, StepValues.of(program), walked))
    needs = replace(
        needs,
        state_bytes=held,
        heads=program.early_exit and not by_weight and "pull" in directions and not by_device,
        sweeps=not (union and undirected) and (union or program.everywhere),
        one_pass=union and undirected,
        plain=by_weight if decodes else needs.plain,
        all_rows=counts,
        in_order=(setting.device_bytes is None or setting.by_windows)
        and wants_rows_in_order(graph, program, directions),
    )
    unmatched = _unmatched_bytes(graph, program, setting, directions, needs)
    needs = replace(needs, state_bytes=needs.state_bytes + unmatched)
    by_windows = needs.in_order and (setting.on_cores or setting.pages_there) and _walks_by_windows(program, setting)
    return RunRequirements(program, directions, asynchronous, apart, needs, unmatched, by_windows)


def _walks_by_windows(program: Program, setting: RunSetting) -> bool:
    """Whether the values of vertices may be in a file while a program walks edges.

    Trees are linked so by the cores of one process. Not where tuning options push again what a view has changed.
    """
    config, tuning = setting.config, setting.config.tuning
    plain = not (tuning.layers or tuning.local_rounds or config.route in PUSHED or config.kernels == "reference")
    links = program.combine == "union" and not (setting.on_cores and setting.ranks == 1)
    return plain and not links and has_value_pages(program)


def has_value_pages(program: Program) -> bool:
    """Whether values of a program's vertices may be in a file: reached by ranges and positions."""
    return all(vars(kind).get("by_ranges") for kind in whose_functions(program))


def whose_functions(program: Program) -> list[type]:
    """The classes of a program whose own functions have its fields; each says of these whether they go `by_ranges`."""
    methods = {"phases", "instead", "finish"} | (set() if program.starts_anywhere else {"start"})
    return [kind for kind in type(program).__mro__ if kind is not Program and not methods.isdisjoint(vars(kind))]


def wants_rows_in_order(graph: Graph, program: Program, directions: Mapping[Direction, object]) -> bool:
    """Whether the cores walk the rows of a graph file in order, so that its row index need not be in memory.

    Not where pulls ask for the degrees of their sources, where functions of the author are given all of a field, and of
    programs on whole rows, but for those that only combine vectors.
    """
    edge = author_function(program, "edge")
    of_sources = "pull" in directions and edge is not None and "degree" in arguments(edge)
    everywhere = any(word.startswith("every_") for word in words_of(program))
    whole = needs_rows(program) and not program.message_shape
    return graph.out.has_row_pages and not (of_sources or everywhere or whole)


def _names_vertices(program: Program) -> bool:
    """Whether values of the answer are vertices, which are named by their original ids."""
    return any(field.output and field.dtype is VERTEX for field in fields_of(program).values())


def gathers_ahead(program: Program, config: Config, directions: dict[Direction, tuple[Traversal, ...]]) -> bool:
    """Whether the cores' kernels ask for a program's messages ahead: sweeps (`Author.sweeps`) along one adjacency."""
    one_way = list(directions) == ["pull"] and len(directions["pull"]) == 1
    gathers = author_function(program, "send") is not None and not (program.early_exit or needs_rows(program))
    return config.kernels != "reference" and one_way and gathers


def _unmatched_bytes(
    graph: Graph,
    program: Program,
    setting: RunSetting,
    directions: dict[Direction, tuple[Traversal, ...]],
    needs: MemoryRequest,
) -> int:
    """Bytes for rows that pulls keep (`engine/state/unmatched_rows.py`): on cores, where every vertex has one row."""
    keeps = program.early_exit and program.visits_once and not needs.weighted
    if not keeps or setting.device_bytes is not None or setting.config.kernels == "reference":
        return 0
    if len(directions.get("pull", ())) != 1:
        return 0
    edges = needs.edge_bytes if graph.out.arrays is None else 0
    return unmatched_bytes(graph.vertices, left_for_edges(setting.config, needs, graph), edges)


def name_of(graph: Graph) -> str:
    """How messages call a graph."""
    return "the graph" if graph.path is None else str(graph.path)


def likeness(program: Program) -> tuple[Any, ...]:
    """What `check_program_on` and `requirements_of` look at in a program: of its own numbers only their types."""
    own = vars(program)
    return type(program), repr([getattr(program, name) for name in DECLARED]), *own, *map(type, own.values())


def check_program_on(graph: Graph, program: Program) -> None:
    """Refuse a program, or a phase, that cannot run on this graph as it is written. Raises InputError."""
    check_program(program)
    check_field_types(program, graph)
    if graph.layout == "list":
        check_listed(graph, program)
    check_weights(graph, program)


def check_weights(graph: Graph, program: Program) -> None:
    """Refuse a graph with weights below zero where the program accepts none."""
    if not (program.non_negative_weights and program.needs_weights) or graph.weight_range is None:
        return
    low = graph.weight_range[0]
    if not low >= 0:
        raise InputError(
            f"{name_of(graph)}: the smallest weight is {low:g}, and this program accepts non-negative weights "
            f"only; {_without_weights(program)}convert the input without weights, or with another column (--columns)"
        )


def _without_weights(program: Program) -> str:
    """The way out of programs that have a parameter `weight`."""
    takes = "weight" in signature(type(program)).parameters
    return "run with --no-weight, or " if takes else ""


def sending_direction(graph: Graph, program: Program) -> AdjacencyDirection:
    """Of which degrees what each vertex sends along is; "out" where that is not needed."""
    if program.along != "in" or not graph.directed:
        return "out"
    if graph.into is None and graph.layout == "rows":
        if "degree" in words_of(program):
            raise InputError(
                f"{name_of(graph)}: {type(program).__name__} asks for in-degrees, which this graph does not store; "
                "convert it with --direction both"
            )
        return "out"
    return "in"


def _directions(
    graph: Graph, config: Config, program: Program, sweeps: Direction, *, by_device: bool
) -> dict[Direction, tuple[Traversal, ...]]:
    """Which directions the run may walk, and how: only those get a share of the budget.

    sweeps: theirs, if there is. by_device: whether values of vertices come to a device in pages; where these may be
    pushed, pulls are a choice only if they read none of their sources: all other pulls move the values of all rows, and
    write them, once for each window. And only if windows of the file, of which pushes read, need not be read whole too.
    """
    forced = "push" if config.route in PUSHED else config.direction
    listed = graph.layout == "list"
    found = traversals(program.along, directed=graph.directed, both_stored=graph.into is not None, listed=listed)
    if listed:
        return found
    if forced not in ("auto", *found):
        raise InputError(
            f"{name_of(graph)}: {forced} needs in-edges, which this graph does not store; convert it with "
            f"--direction both, or run with --direction {next(iter(found))}"
        )
    if program.combine == "union":
        return {"push": found["push"]}
    if needs_rows(program):
        if "pull" not in found or len({walk.direction for walk in found["pull"]}) > 1:
            raise InputError(
                f"{name_of(graph)}: {type(program).__name__} works on whole rows, in-edges too, which this graph "
                "does not store; convert it with --direction both"
            )
        return {"pull": found["pull"]}
    if forced in found:
        return {forced: found[forced]}
    if program.accepted_edges == "walked":
        return {"push": found["push"]}
    once = program.early_exit and not StepValues.of(program).source and _windows_apart(graph, found)
    if by_device and "push" in found and not once:
        return {"push": found["push"]}
    if program.everywhere and sweeps in found:
        return {sweeps: found[sweeps]}
    return found


AFTER_ALL_FORMS = 1 << 10
"""More than there are forms of a program: in the agreement of ranks those come behind with values in a file."""


def _windows_apart(graph: Graph, found: Mapping[Direction, tuple[Traversal, ...]]) -> bool:
    """Whether no adjacency with windows is both pushed and pulled along."""
    pushed, pulled = ([graph.adjacency(walk.key) for walk in found.get(way, ())] for way in ("push", "pull"))
    return not any(one is other and one is not None and one.windows for one in pushed for other in pulled)


def _read_by_windows(graph: Graph, steps: StepValues, walks: Iterable[Traversal]) -> tuple[Adjacency, ...]:
    """What walks read of the adjacencies of a file where a device picks no edges: windows, or all edges."""
    read: dict[str, Adjacency] = {}
    for walk in walks:
        whole = graph.adjacency(walk.key)
        assert whole is not None, "a direction that is walked is stored"
        for one in windows_walked(whole, steps, pushes=walk.direction == "push") or (whole,):
            read[one.direction] = one
    return tuple(read.values())


Plan = tuple[Program, tuple[RunRequirements, ...], MemoryPlan]
"""The program that runs, what it and others that run with it ask for, and what all of it takes."""


def planned(graph: Graph, program: Program, setting: RunSetting, agree: Callable[[int], int] = int) -> Plan:
    """The program that runs for this one, and what it asks for; lighter ones (`Program.lighter`) where memory is short,
    then with values of vertices in a file.

    agree: of ranks, the largest of what they ask for: how many times lighter a program, then the same in a file.
    Raises InputError for what cannot run, BudgetError where the lightest does not fit.
    """
    forms, found = [formed(program, graph, setting.config.mode, setting.config.precision)], None
    refused: list[BudgetError] = []
    while found is None:
        try:
            found = len(forms) - 1, requirements_within(graph, forms[-1], setting)
        except BudgetError as refusal:
            refused.append(refusal.with_traceback(None))
            lighter = forms[-1].lighter(graph)
            if lighter is not None and (setting.takes(lighter) or (setting.pages_there and not lighter.on_cores)):
                forms.append(lighter)
            if lighter is None or not setting.takes(lighter):
                setting = replace(setting, by_windows=True)
                found = _first_in_windows(graph, forms, setting, refused)
    number, plan = found
    ours = number + AFTER_ALL_FORMS * setting.by_windows
    if (most := agree(ours)) > ours:
        by_windows, number = divmod(most, AFTER_ALL_FORMS)
        while len(forms) <= number:
            forms.append(cast("Program", forms[-1].lighter(graph)))
        plan = requirements_within(graph, forms[number], replace(setting, by_windows=bool(by_windows)))
    return forms[number], *plan


def _first_in_windows(
    graph: Graph, forms: list[Program], setting: RunSetting, refused: list[BudgetError]
) -> tuple[int, tuple[tuple[RunRequirements, ...], MemoryPlan]]:
    """The number of the first form that fits with its values in a file, and what it asks for.

    Raises BudgetError where none does, with the least budget of all, and the name of a class that does not say whether
    its functions go by ranges, as those that it derives from do. refused: of all forms in memory, which of few vertices
    take more by hashes than by ranks.
    """
    for number, form in sorted(enumerate(forms), key=lambda one: not one[1].on_cores):  # values of fewer bytes first
        if _has_pages(graph, form, setting, tuple(_all_requirements(graph, form, setting))):
            try:
                return number, requirements_within(graph, form, setting)
            except BudgetError as other:
                refused = [*refused, other.with_traceback(None)]
    least = min(refused, key=lambda one: one.least_mib)
    unsaid = [kind.__name__ for kind in whose_functions(forms[-1]) if "by_ranges" not in vars(kind)]
    if unsaid and forms[-1].by_ranges:
        say = f", or say by_ranges = True in {unsaid[0]} if its functions go by ranges, for values in a file"
        least = BudgetError(least.option, least.reason, least.least_mib, least.otherwise + say, least.processes)
    raise least from None
