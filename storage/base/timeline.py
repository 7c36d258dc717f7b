"""A ring of stamped spans: what ran when, and where; filled during a run and read when it is over.

A span says on which track something ran (a group such as "disk", and a thread or a stream in it), from when to when by
this process's clock, and for what: bytes, items, the first of so many chunks or partitions, the iteration. The ring is
allocated once, `most` spans of 48 bytes; what is older than the last `most` spans is overwritten and counted. Any
thread may add, in about a microsecond. It is passed as an argument, or None, which costs nothing. `tools` writes it to
a file.
"""

from __future__ import annotations

import json
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

MOST = 1 << 17
LEVELS = "levels"
"""The group of what is no work but a number that changes: its value is in `items`."""
NOTHING: AbstractContextManager[None] = nullcontext()
_SPAN = struct.Struct("<ddqqiiiHH")
"""Began, seconds, bytes, items, first, parts, iteration, track, name."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a span was for: bytes moved; items, such as edges; `parts` chunks or partitions from number `first` on.

    `first` is -1 where there is no such number.
    """

    bytes: int = 0
    items: int = 0
    first: int = -1
    parts: int = 0


NO_WORK = Work()


@dataclass(frozen=True, slots=True)
class Span:
    """One entry: `name` ran on `track` of `group` for `seconds` from `began` on (time.perf_counter)."""

    group: str
    track: str
    name: str
    began: float
    seconds: float
    work: Work
    iteration: int


class Timeline:
    """The last `most` spans of a run. `iteration`: which one is under way; the loop sets it."""

    def __init__(self, most: int = MOST) -> None:
        self.iteration = 0
        self.began = time.perf_counter()
        self._most = max(1, most)
        self._ring = bytearray(self._most * _SPAN.size)
        self._added = 0
        self._tracks: dict[tuple[str, str], int] = {}
        self._names: dict[str, int] = {}
        self._here = threading.local()
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Bytes of the ring."""
        return len(self._ring)

    @property
    def dropped(self) -> int:
        """Spans that were overwritten."""
        return max(0, self._added - self._most)

    def track(self, group: str, name: str) -> int:
        """Return the number of a track, which is made at the first call."""
        with self._lock:
            return self._tracks.setdefault((group, name), len(self._tracks))

    def here(self, group: str) -> int:
        """Return the calling thread's own track in a group, named by the order in which its threads came."""
        own: dict[str, int] = self._here.__dict__
        if group not in own:
            with self._lock:
                number = 1 + sum(known == group and name.startswith("thread ") for known, name in self._tracks)
                own[group] = self._tracks.setdefault((group, f"thread {number}"), len(self._tracks))
        return own[group]

    def level(self, name: str, moment: float, value: int) -> None:
        """Add that a number is `value` from `moment` on."""
        self.add(self.track(LEVELS, name), name, moment, 0.0, Work(items=value))

    def add(
        self, track: int, name: str, began: float, seconds: float, work: Work = NO_WORK, iteration: int | None = None
    ) -> None:
        """Add one span, from any thread; iteration: the present one, where none is given."""
        what = work.bytes, work.items, work.first, work.parts, self.iteration if iteration is None else iteration
        with self._lock:
            known = self._names.setdefault(name, len(self._names))
            at = self._added % self._most * _SPAN.size
            _SPAN.pack_into(self._ring, at, began, seconds, *what, track, known)
            self._added += 1

    def spans(self) -> Iterator[Span]:
        """Yield what the ring holds, oldest entries first; no thread may add meanwhile."""
        tracks, names = list(self._tracks), list(self._names)
        for number in range(self.dropped, self._added):
            began, seconds, size, items, first, parts, iteration, track, name = _SPAN.unpack_from(
                self._ring, number % self._most * _SPAN.size
            )
            group, place = tracks[track]
            yield Span(group, place, names[name], began, seconds, Work(size, items, first, parts), iteration)

    def to_bytes(self) -> bytes:
        """Return the ring with its names, for `of_bytes` in another process; no thread may add meanwhile."""
        facts = {"most": self._most, "began": self.began, "added": self._added}
        names = {"tracks": list(self._tracks), "names": list(self._names)}
        head = json.dumps(facts | names).encode()
        used = min(self._added, self._most) * _SPAN.size
        return len(head).to_bytes(8, "little") + head + self._ring[:used]

    @classmethod
    def of_bytes(cls, data: bytes) -> Timeline:
        """Return what `to_bytes` has made bytes of, to be read."""
        size = 8 + int.from_bytes(data[:8], "little")
        facts = json.loads(data[8:size])
        found = cls(facts["most"])
        found.began, found._added = facts["began"], facts["added"]
        found._tracks = {(group, name): number for number, (group, name) in enumerate(facts["tracks"])}
        found._names = {name: number for number, name in enumerate(facts["names"])}
        found._ring[: len(data) - size] = data[size:]
        return found


def during(timeline: Timeline | None, group: str, name: str, work: Work = NO_WORK) -> AbstractContextManager[None]:
    """Stamp a block that the calling thread runs; without a timeline do nothing. A block that raises is stamped too."""
    return NOTHING if timeline is None else _stamped(timeline, group, name, work)


@contextmanager
def _stamped(timeline: Timeline, group: str, name: str, work: Work) -> Iterator[None]:
    began = time.perf_counter()
    try:
        yield
    finally:
        timeline.add(timeline.here(group), name, began, time.perf_counter() - began, work)
