"""`--trace FILE`: a run's timeline in the Trace Event Format (Google, 2016), for Perfetto and chrome://tracing.

One process for each kind of work (engine, disk, decode, gather, link, kernel), one thread for each of its tracks, a
complete event ("X") for every span, an instant ("i") for what took no time, counters ("C") for levels; times in
microseconds since the timeline began. Of several ranks one process for each rank, on rank 0's clock. A run that fails
leaves the trace of what it did until then, of several ranks rank 0's.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.storage.base.atomic import whole_file
from penstock.storage.base.errors import InputError, PenstockError
from penstock.storage.base.timeline import LEVELS, Span, Timeline
from penstock.tools.base.output import plain

if TYPE_CHECKING:
    from penstock.engine.ranks.communicator import Communicator
    from penstock.engine.ranks.reports import RankTimeline

GROUPS = ("engine", "exchange", "disk", "decode", "gather", "link", "unpack", "kernel")
"""Processes from top to bottom."""
SLIP = 5e-6
"""Seconds by which spans of a track may overlap because two clocks tell them; the later one is cut."""
ROUNDING = 1e-9
"""Seconds: clocks that run for weeks are floats, which are not finer than this."""

_log = logging.getLogger("penstock.tools.run.trace")
Event = dict[str, Any]
Tracks = dict[tuple[str, str], list[Span]]


@contextmanager
def open_trace(
    path: Path | None,
    ranks: Communicator | None = None,
    *,
    force: bool,
    facts: Mapping[str, Any] | None = None,
    begun: Callable[[], bool] = lambda: True,
) -> Iterator[Timeline | None]:
    """Yield a timeline for a run, None where no trace is wanted; it is written when the block ends, however it does.

    ranks: the processes that are traced together; when all have ended their blocks, the one with a path writes it.
    facts: what else the file says about the run. begun: whether the run has begun; one that failed before replaces no
    file, and leaves none where its input was refused. Raises InputError or RunError where it cannot be written; a
    failing run's own error goes first.
    """
    if path is None and ranks is None:
        yield None
        return
    timeline = Timeline()
    try:
        yield timeline
    except BaseException as failure:
        if path is not None and (begun() or not (isinstance(failure, InputError) or path.exists())):
            try:
                write(timeline, path, force=force, facts=facts)
            except PenstockError as error:
                _log.warning("no trace of the failed run: %s", error)
        raise
    told: Timeline | Sequence[RankTimeline] = timeline
    if ranks is not None:
        from penstock.engine.ranks.reports import gather_timelines

        told = gather_timelines(ranks, timeline)
    if path is not None:
        write(told, path, force=force, facts=facts)


def write(
    told: Timeline | Sequence[RankTimeline], path: Path, *, force: bool = False, facts: Mapping[str, Any] | None = None
) -> None:
    """Write a timeline, or those of all ranks, to which nothing is added any more.

    Raises InputError or RunError where it cannot be written.
    """
    if isinstance(told, Timeline):
        found, dropped = events(told), told.dropped
    else:
        found, dropped = rank_events(told), sum(one.timeline.dropped for one in told)
    about = json.dumps(plain({"dropped_events": dropped, **(facts or {})}), allow_nan=False)
    with whole_file(path, force=force) as partial, partial.open("w", encoding="utf-8") as file:
        file.write(f'{{"displayTimeUnit": "ms", "otherData": {about},\n"traceEvents": [')
        separator = "\n"
        for event in found:
            file.write(separator + json.dumps(event, allow_nan=False))
            separator = ",\n"
        file.write("\n]}\n")
    if dropped:
        _log.warning("%s lacks the first %d events: a trace holds the last ones only", path, dropped)


def events(timeline: Timeline) -> Iterator[Event]:
    """Yield the events of a timeline: names of processes and threads first, then every track's, by time."""
    tracks = _tracks(timeline)
    for pid, (group, names) in enumerate(_named_tracks(tracks), start=1):
        if names:
            yield from _process(pid, group, {(group, name): tracks[group, name] for name in names}, timeline.began)
    yield from _levels(tracks, 1, timeline.began)


def rank_events(every: Sequence[RankTimeline]) -> Iterator[Event]:
    """Yield the events of all ranks: a process for each, a thread for each of its tracks, times by rank 0's clock."""
    first = min(one.timeline.began - one.ahead for one in every)
    for pid, one in enumerate(every, start=1):
        tracks, began = _tracks(one.timeline), first + one.ahead
        placed = {(group, name): tracks[group, name] for group, names in _named_tracks(tracks) for name in names}
        yield from _process(pid, f"rank {one.rank} on {one.host}", placed, began)
        yield from _levels(tracks, pid, began)


def _process(pid: int, name: str, tracks: Tracks, began: float) -> Iterator[Event]:
    """The names of a process and of its threads, one for each track, and the events of these."""
    yield _named("process_name", pid, 0, name=name)
    yield _named("process_sort_index", pid, 0, sort_index=pid)
    for tid, ((group, track), spans) in enumerate(tracks.items(), start=1):
        yield _named("thread_name", pid, tid, name=f"{group}: {track}")
        yield _named("thread_sort_index", pid, tid, sort_index=tid)
        yield from _track(spans, (pid, tid), began)


def _tracks(timeline: Timeline) -> Tracks:
    """The spans of each track."""
    tracks: Tracks = {}
    for span in timeline.spans():
        tracks.setdefault((span.group, span.track), []).append(span)
    return tracks


def _named_tracks(tracks: Tracks) -> Iterator[tuple[str, list[str]]]:
    """Groups from top to bottom, with the names of their tracks."""
    for group in [*GROUPS, *sorted({group for group, _ in tracks} - {*GROUPS, LEVELS})]:
        yield group, sorted((name for known, name in tracks if known == group), key=_by_number)


def _levels(tracks: Tracks, pid: int, began: float) -> Iterator[Event]:
    """The counters of a process."""
    for (group, name), spans in tracks.items():
        if group == LEVELS:
            for span in sorted(spans, key=lambda span: span.began):
                at = _microseconds(span.began - began)
                yield {"ph": "C", "name": name, "pid": pid, "tid": 0, "ts": at, "args": {name: span.work.items}}


def _track(spans: list[Span], place: tuple[int, int], began: float) -> Iterator[Event]:
    """The events of one track, cut where clocks make them overlap by a little."""
    pid, tid = place
    last = float("-inf")
    for span in sorted(spans, key=lambda span: (span.began, span.seconds)):
        start, end = span.began, span.began + span.seconds
        if start < last <= start + SLIP + ROUNDING:
            start, end = last, max(last, end)
        last = max(last, end)
        event = {"ph": "X", "name": span.name, "cat": span.group, "pid": pid, "tid": tid}
        work = span.work
        about = {"bytes": work.bytes, "edges": work.items, "count": work.parts}
        told = {"iteration": span.iteration} | {what: value for what, value in about.items() if value}
        told |= {"first": work.first} if work.first >= 0 else {}
        event |= {"ts": _microseconds(start - began), "dur": _microseconds(end - start), "args": told}
        if span.seconds == 0.0:
            del event["dur"]
            event |= {"ph": "i", "s": "p"}
        yield event


def _named(kind: str, pid: int, tid: int, **arguments: Any) -> Event:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": arguments}


def _by_number(name: str) -> tuple[str, int]:
    """Threads in the order of their numbers."""
    head, _, tail = name.rpartition(" ")
    return (head, int(tail)) if tail.isdigit() else (name, 0)


def _microseconds(seconds: float) -> float:
    return round(seconds * 1e6, 3)
