"""Reads every chunk of arrays that go together, in several threads, and notes what is wrong with each.

A `Reader` stops at the first error; a scan goes on: what it yields for a chunk is what the caller's `look` made of its
items, or what is wrong with it. Reads are merged as a fetch merges them; where one fails, its chunks are tried one by
one. Items are gone when `look` returns.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import RunError
from penstock.storage.base.slot_pool import aligned_empty
from penstock.storage.base.threads import PerThread, ordered_map
from penstock.storage.encoding.codec import Decoder
from penstock.storage.format.direct_io import DirectFile, open_direct_file
from penstock.storage.format.frames import WAY_OUT, Frames
from penstock.storage.format.read_plan import PAGE, ReadRange, plan_reads

T = TypeVar("T")
GROUP_BYTES = 4 << 20
"""Bytes on disk of chunks that one thread reads and looks at together."""
Items = tuple[NDArray[Any], ...]


@dataclass(frozen=True, slots=True)
class GraphProblem:
    """Something that is wrong with a graph: where, and what."""

    place: str
    what: str


@dataclass(frozen=True, slots=True)
class ScannedChunk(Generic[T]):
    """One chunk: what was made of it (None where a frame is bad), bytes read for it, and what is wrong with it."""

    chunk: int
    found: T | None
    bytes: int
    problems: tuple[GraphProblem, ...]


class Scan:
    """Reads all chunks of arrays whose chunks go together; a context manager."""

    def __init__(self, arrays: Sequence[Frames], pool: Executor, threads: int, *, direct_io: bool = False) -> None:
        self._arrays, self._pool, self._threads, self._direct = tuple(arrays), pool, threads, direct_io
        self._stack = ExitStack()
        self._files: dict[int, DirectFile] = {}
        self._own = threading.local()
        self._decoding = PerThread(lambda: (Decoder(), [np.empty(f.spec.chunk_items, f.spec.kind) for f in arrays]))

    def __enter__(self) -> "Scan":
        """Open the files. Raises RunError."""
        for number, file in enumerate(self._arrays[0].open_files):
            try:
                self._files[number] = self._stack.enter_context(open_direct_file(file, direct=self._direct))
            except RunError:
                self._stack.close()
                raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def chunks(self, look: Callable[[int, Items], T]) -> Iterator[ScannedChunk[T]]:
        """Yield every chunk in order; ``look`` is called in threads, with its number and its items of every array."""

        def work(group: range) -> list[ScannedChunk[T]]:
            return [self._seen(chunk, frames, look) for chunk, frames in self._read(group)]

        for group in ordered_map(self._pool, work, self._groups(), 2 * self._threads):
            yield from group

    def _groups(self) -> Iterator[range]:
        lengths = np.sum([frames.lengths for frames in self._arrays], axis=0)
        first, held = 0, 0
        for chunk, length in enumerate(lengths.tolist()):
            if chunk > first and held + length > GROUP_BYTES:
                yield range(first, chunk)
                first, held = chunk, 0
            held += length
        if len(lengths):
            yield range(first, len(lengths))

    def _read(self, group: range) -> Iterator[tuple[int, list[memoryview | GraphProblem]]]:
        """The frames of each chunk of a group, or why there is none."""
        found: list[list[memoryview | GraphProblem]] = [[] for _ in group]
        chunks = np.arange(group.start, group.stop)
        plans = [self._plan(frames, chunks) for frames in self._arrays]
        buffer = self._buffer(sum(read.length for plan in plans for read in plan))
        for frames, plan in zip(self._arrays, plans, strict=True):
            for read in plan:
                view, buffer = buffer[: read.length], buffer[read.length :]
                for member, frame in self._frames(frames, group, read, view):
                    found[member].append(frame)
        yield from zip(group, found, strict=True)

    @staticmethod
    def _plan(frames: Frames, chunks: NDArray[np.int64]) -> list[ReadRange]:
        return plan_reads(frames.shard[chunks], frames.offsets[chunks], frames.lengths[chunks])

    def _frames(
        self, frames: Frames, group: range, read: ReadRange, view: memoryview
    ) -> Iterator[tuple[int, memoryview | GraphProblem]]:
        try:
            self._files[read.shard].read(read, view)
        except RunError as error:
            if len(read.members) == 1:
                problem = GraphProblem(frames.name(group[read.members[0]]), reason(error))
                yield read.members[0], problem
                return
            for member in read.members:
                chunk = group[member]
                alone = replace(self._plan(frames, np.array([chunk]))[0], members=(member,))
                room = memoryview(aligned_empty(alone.length, np.uint8).data)
                yield from self._frames(frames, group, alone, room)
            return
        for member in read.members:
            first = int(frames.offsets[group[member]]) - read.start
            yield member, view[first : first + int(frames.lengths[group[member]])]

    def _seen(
        self, chunk: int, read: list[memoryview | GraphProblem], look: Callable[[int, Items], T]
    ) -> ScannedChunk[T]:
        problems = [frame for frame in read if isinstance(frame, GraphProblem)]
        items = []
        decoder, places = self._decoding()
        for frames, frame, place in zip(self._arrays, read, places, strict=True):
            if isinstance(frame, GraphProblem):
                continue
            out = place[: frames.spec.chunk_length(chunk)]
            flaw = frames.flaw(chunk, frame, decoder, out)
            if flaw is None:
                items.append(out)
            else:
                problems.append(GraphProblem(frames.name(chunk), flaw))
        found = look(chunk, tuple(items)) if len(items) == len(self._arrays) else None
        size = sum(int(frames.lengths[chunk]) for frames in self._arrays)
        return ScannedChunk(chunk, found, size, tuple(problems))

    def _buffer(self, size: int) -> memoryview:
        if getattr(self._own, "room", 0) < size:
            self._own.room = -(-size // PAGE) * PAGE
            self._own.buffer = aligned_empty(self._own.room, np.uint8)
        return memoryview(self._own.buffer.data)[:size]


def reason(error: Exception) -> str:
    """The message of an error without the way out, which the caller adds once."""
    text = str(error)
    for way in (WAY_OUT, "check the disk", "convert the input again"):
        text = text.removesuffix(f"; {way}")
    return text
