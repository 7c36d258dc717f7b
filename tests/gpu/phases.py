"""What each launch of a dense run takes on a real device, and what lies between them (`measure.py phases:SCALE`).

Owns CUDA events around every launch, and around the few other things that the engine does on the device between two
(CuPy's fills and sums), put there by wrapping; the package knows nothing of it. Where edges travel, what counts is how
long the link rests from one sweep to the next. Refuses nothing: what a version does not have is not wrapped. An event
costs two microseconds, so the time of a run without them is printed beside.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import cupy
from penstock.engine.kernels.cuda import driver as seam
from penstock.engine.kernels.cuda import frontier
from penstock.engine.kernels.cuda import launch as cuda_kernels
from penstock.engine.program.program import Program
from penstock.engine.session import Session
from penstock.engine.state.device_state import DeviceBitmap
from penstock.storage.format.graph import Graph
from penstock.transfer.staging.host_to_device import Link

Say = Callable[[str], None]
WRAPPED = (
    (cuda_kernels.CudaKernels, "_shares"),
    (cuda_kernels.CudaKernels, "_fold"),
    (DeviceBitmap, "clear"),
)
"""What the engine does by CuPy: methods that are watched like kernels, where there are such."""


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
        self._wrap(cuda_kernels.CudaKernels, "_call", lambda arguments: str(arguments[1]))
        for owner, name in WRAPPED:
            if name in vars(owner):
                self._wrap(owner, name, lambda arguments, label=name: f"({label})")
        for name in ("sum_up", "enumerate_marked"):
            self._wrap(frontier, name, lambda arguments, label=name: label)
        if "_between_events" in vars(Link):
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
        before = Link._between_events

        def noted(link: Link, *arguments: Any) -> Any:
            found = before(link, *arguments)
            self.copies.append(found[1])
            return found

        setattr(Link, "_between_events", noted)  # noqa: B010
        self._undo.append(lambda: setattr(Link, "_between_events", before))


def phases(graph: Graph, programs: dict[str, Program], say: Say, edge_memory: int = 0, blocks: int = 0) -> None:
    """Print milliseconds a sweep: in all, by launch, and of the pauses between launches.

    edge_memory: bytes of edges on the device, 0 for all. blocks: at most so many a multiprocessor in a launch, 0 for
    what the engine takes.
    """
    options: dict[str, Any] = {"device": "cuda:0"}
    if edge_memory:
        options["device_edge_memory"] = edge_memory
    label = f"{edge_memory >> 20} MiB on the device" if edge_memory else "resident"
    with Session(graph, **options) as session, most_blocks_of(blocks):
        for name, program in programs.items():
            plain = [session.run(program) for _ in range(3)][1:]
            with Watched() as watched:
                result = session.run(program)
            cupy.cuda.Device().synchronize()
            sweeps = result.iterations
            best = min(other.seconds for other in plain)
            say(
                f"{name} {label}, {blocks or 'usual'} blocks: {sweeps} sweeps, {best / sweeps * 1e3:.3f} ms each; "
                f"watched {result.seconds / sweeps * 1e3:.3f} ms"
            )
            told(watched, sweeps, say)
            resting(watched, say)


@contextmanager
def most_blocks_of(each: int) -> Iterator[None]:
    """Launch at most so many blocks a multiprocessor meanwhile, 0: as the engine does."""
    before = seam.most_blocks
    count = each * int(cupy.cuda.Device().attributes["MultiProcessorCount"])
    seam.most_blocks = cuda_kernels.most_blocks = (lambda: count) if each else before
    try:
        yield
    finally:
        seam.most_blocks = cuda_kernels.most_blocks = before


def told(watched: Watched, sweeps: int, say: Say) -> None:
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


def resting(watched: Watched, say: Say) -> None:
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
