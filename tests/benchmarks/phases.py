"""The suite `phases`: what each launch of a dense run takes on a GPU, and the pauses between them; levels by blocks.

CUDA events around every launch, and around the few other things that the engine does on the device between two (CuPy's
fills and sums), are put there by wrapping the engine's functions. Where edges travel over the link, the pause of the
link from one sweep to the next counts. An event costs two microseconds, so the run is measured without them; with them
it only says how its time divides.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import cupy
from penstock.engine import Graph, Program, Session
from penstock.engine.kernels.cuda import driver as seam
from penstock.engine.kernels.cuda import frontier, launch
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.pagerank import ChebyshevPageRank, PageRank
from penstock.engine.programs.sssp import SSSP
from penstock.engine.state.device_state import DeviceBitmap
from penstock.transfer.staging.link_reader import LinkReader

from benchmarks import graphs
from benchmarks.measure import edge_memory
from benchmarks.runner import Runner, prepare_cuda

LEVELS_SIDE = 3000
WRAPPED = (
    (launch.CudaKernels, "_shares"),
    (launch.CudaKernels, "_fold"),
    (DeviceBitmap, "clear"),
)
"""What the engine does by CuPy: methods that are watched like kernels."""


def _name_of(kernel: Any) -> str:
    """What a launch is shown as: a kernel, or what makes it of a program, alone or with its options behind it."""
    made = kernel[0] if isinstance(kernel, tuple) else kernel
    return str(made.__name__).removeprefix("make_")


class Watched:
    """Events of launches in the order of the host: name, begin and end on the device, begin and end on the host.

    copies: the events around every copy over the link, which the engine has itself.
    """

    def __init__(self) -> None:
        self.seen: list[tuple[str, Any, Any, float, float]] = []
        self.copies: list[tuple[Any, Any]] = []
        self._undo: list[Callable[[], None]] = []
        self._inside = False

    def __enter__(self) -> Watched:
        self._wrap(launch.CudaKernels, "_call", lambda arguments: _name_of(arguments[1]))
        for owner, name in WRAPPED:
            self._wrap(owner, name, lambda arguments, label=name: f"({label})")
        for name in ("sum_up", "enumerate_marked"):
            self._wrap(frontier, name, lambda arguments, label=name: label)
        self._note_copies()
        return self

    def __exit__(self, *arguments: object) -> None:
        for undo in self._undo:
            undo()

    def _wrap(self, owner: Any, name: str, label: Callable[[tuple[Any, ...]], str]) -> None:
        before = vars(owner)[name]

        def watched(*arguments: Any) -> Any:
            if self._inside:
                return before(*arguments)
            first, last = cupy.cuda.Event(), cupy.cuda.Event()
            self._inside, began = True, time.perf_counter()
            first.record(cupy.cuda.Stream.null)
            try:
                return before(*arguments)
            finally:
                last.record(cupy.cuda.Stream.null)
                self._inside = False
                self.seen.append((label(arguments), first, last, began, time.perf_counter()))

        setattr(owner, name, watched)
        self._undo.append(lambda: setattr(owner, name, before))

    def _note_copies(self) -> None:
        before = LinkReader.copy_async

        def noted(link: LinkReader, *arguments: Any) -> Any:
            found = before(link, *arguments)
            self.copies.append(arguments[0].spans[-1][1:])
            return found

        setattr(LinkReader, "copy_async", noted)  # noqa: B010
        self._undo.append(lambda: setattr(LinkReader, "copy_async", before))


def phases(runner: Runner) -> None:
    """Sweeps of PageRank, plain and Chebyshev's, and levels of searches, by how many blocks a launch has."""
    prepare_cuda()
    choices = runner.choices
    scale = choices.scale or 24
    programs: dict[str, Program] = {
        "pagerank": PageRank(tol=0, max_iter=10, weight=False),
        "chebyshev": ChebyshevPageRank(tol=0, max_iter=10, weight=False),
    }
    graph = graphs.rmat_by_gpu(scale, hubs=choices.hubs)
    for memory in choices.memory or ("resident",):
        for blocks in choices.blocks or (0,):
            options = edge_memory(graph, memory) | {"device": "cuda:0"} | choices.given
            label = f"rmat{scale}{' hubs' if choices.hubs else ''} {memory}{f' {blocks} blocks' if blocks else ''}"
            with Session(graph, **options) as session, most_blocks_of(blocks):
                for name, program in programs.items():
                    sweeps(runner, session, program, f"{label} {name} sweep")
    del graph
    levels(runner)


def sweeps(runner: Runner, session: Session, program: Program, figure: str) -> None:
    """Milliseconds of a sweep; says how those of one more run divide into launches and pauses."""
    if not runner.wants(figure):
        return

    def once() -> float:
        result = session.run(program)
        return result.seconds / result.iterations * 1e3

    runner.measure(figure, "ms", once, untimed=2)
    with Watched() as watched:
        result = session.run(program)
    cupy.cuda.Device().synchronize()
    runner.say(f"    watched: {result.seconds / result.iterations * 1e3:.3f} ms a sweep")
    tell_launches(watched, result.iterations, runner.say)
    tell_pauses_of_link(watched, runner.say)


def levels(runner: Runner) -> None:
    """An iteration of BFS and SSSP on a resident grid: many in one launch of so many blocks, or (0) one at a time."""
    most = launch.blocks_together()
    graph: Graph | None = None
    answers: dict[str, Any] = {}
    for name, program in (("bfs", BFS(0)), ("sssp", SSSP(0))):
        for direction, counts in (("auto", (most,)), ("push", (0, 1, 8, 33, 66, most))):
            for blocks in counts:
                figure = f"grid{LEVELS_SIDE} {name} {direction} {blocks} blocks, iteration"
                if not runner.wants(figure):
                    continue
                if graph is None:
                    graph = graphs.grid(LEVELS_SIDE)
                if name not in answers:
                    with Session(graph, device="cpu") as host:
                        answers[name] = host.run(program).fields
                with Session(graph, device="cuda:0", direction=direction) as session, Fused(blocks) as fused:

                    def once(session: Session = session, program: Program = program, fused: Fused = fused) -> float:
                        fused.launches.clear()
                        result = session.run(program)
                        fused.fields = result.fields
                        return result.seconds / result.iterations * 1e3

                    runner.measure(figure, "ms", once, untimed=2, note=fused.note)
                runner.compare_answers(figure, fused.fields, answers[name])


class Fused:
    """Runs iterations that share a launch in so many blocks meanwhile, none for 0, and notes what the launches take."""

    def __init__(self, blocks: int) -> None:
        self.launches: list[tuple[float, int]] = []
        self.fields: dict[str, Any] = {}
        self._blocks = blocks
        kernels = launch.CudaKernels
        self._before = launch.blocks_together, kernels.can_fuse, kernels.fused_iterations

    def __enter__(self) -> Fused:
        _, able, fused = self._before

        def timed(*arguments: Any) -> Any:
            began = time.perf_counter()
            done = fused(*arguments)
            self.launches.append((time.perf_counter() - began, len(done[0])))
            return done

        self._put(lambda: self._blocks, able if self._blocks else lambda kernels, frontier: False, timed)
        return self

    def __exit__(self, *arguments: object) -> None:
        self._put(*self._before)

    def _put(self, blocks: Any, able: Any, fused: Any) -> None:
        launch.blocks_together = blocks
        launch.CudaKernels.can_fuse = able
        launch.CudaKernels.fused_iterations = fused

    def note(self) -> str:
        """What an iteration took within the launches of the last run."""
        iterations = sum(count for _, count in self.launches)
        if not iterations:
            return ""
        each = sum(seconds for seconds, _ in self.launches) / iterations * 1e6
        return f"{each:.1f} us of them in {len(self.launches)} launches"


@contextmanager
def most_blocks_of(each: int) -> Iterator[None]:
    """Launch at most so many blocks a multiprocessor meanwhile, 0: as the engine does."""
    before = seam.most_blocks
    count = each * int(cupy.cuda.Device().attributes["MultiProcessorCount"])
    seam.most_blocks = launch.most_blocks = (lambda: count) if each else before
    try:
        yield
    finally:
        seam.most_blocks = launch.most_blocks = before


def tell_launches(watched: Watched, sweeps: int, say: Callable[[str], None]) -> None:
    """Say what launches take, by name, and the pauses from one to the next."""
    spans: dict[str, list[tuple[float, float]]] = defaultdict(list)
    pauses: dict[str, list[float]] = defaultdict(list)
    before = None
    for one in watched.seen:
        name, first, last, began, ended = one
        spans[name].append((elapsed(first, last), (ended - began) * 1e3))
        if before is not None:
            pauses[f"{before[0]} -> {name}"].append(elapsed(before[2], first))
        before = one
    if before is None:
        return
    whole = elapsed(watched.seen[0][1], before[2])
    covered = sum(device for found in spans.values() for device, _ in found)
    say(
        f"    from the first launch to the end of the last {whole / sweeps:.3f} ms a sweep: "
        f"{covered / sweeps:.3f} within launches, {(whole - covered) / sweeps:.3f} between them"
    )
    for name, found in sorted(spans.items(), key=lambda item: -sum(device for device, _ in item[1])):
        device, host = (sum(pair[k] for pair in found) / sweeps for k in range(2))
        say(f"    {name:24s} {len(found) / sweeps:6.2f} a sweep, {device:8.4f} ms on the device, {host:8.4f} host")
    for name, gaps in sorted(pauses.items(), key=lambda item: -sum(item[1]))[:12]:
        say(f"    pause {name:34s} {len(gaps) / sweeps:6.2f} a sweep, {sum(gaps) / sweeps:8.4f} ms")


def tell_pauses_of_link(watched: Watched, say: Callable[[str], None]) -> None:
    """Say how long no copy is under way from one sweep to the next, which is where no kernel walks edges."""
    applies = [one for one in watched.seen if one[0] == "apply"]
    if not watched.copies or not applies:
        return
    origin = watched.seen[0][1]
    spans = sorted((elapsed(origin, first), elapsed(origin, last)) for first, last in watched.copies)
    rests = []
    for _, first, last, _, _ in applies[:-1]:
        ended = max((high for low, high in spans if low < elapsed(origin, first)), default=0.0)
        begun = min((low for low, _ in spans if low > elapsed(origin, last)), default=None)
        if begun is not None:
            rests.append((begun - ended, elapsed(origin, first) - ended, begun - elapsed(origin, last)))
    if rests:
        rest, tail, head = (sum(each) / len(rests) for each in zip(*rests, strict=True))
        say(
            f"    the link rests {rest:.3f} ms from sweep to sweep: {tail:.3f} from its last copy to apply, "
            f"{head:.3f} from the end of apply to its next copy"
        )


def elapsed(first: Any, last: Any) -> float:
    """Milliseconds between two events."""
    return float(cupy.cuda.get_elapsed_time(first, last))
