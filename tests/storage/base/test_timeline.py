"""The ring of stamped spans: bounded, complete from any thread, and nothing where there is none."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from penstock.storage.base.errors import RunError
from penstock.storage.base.timeline import NOTHING, Timeline, Work, during
from penstock.storage.read.reader import Reader
from support.graphs import on_disk, skewed
from support.oracles import EdgeList


def test_a_span_comes_back_as_it_was_added() -> None:
    timeline = Timeline()
    timeline.iteration = 7
    work = Work(bytes=1 << 40, items=3, first=5, parts=2)
    timeline.add(timeline.track("link", "to it"), "filter", 1.25, 0.5, work)
    timeline.add(timeline.track("kernel", "cpu"), "push", 1.5, 0.25, iteration=2)
    first, second = timeline.spans()
    assert (first.group, first.track, first.name, first.began, first.seconds) == ("link", "to it", "filter", 1.25, 0.5)
    assert (first.work, first.iteration) == (work, 7)
    assert (second.group, second.iteration, second.work) == ("kernel", 2, Work())


def test_the_ring_keeps_the_last_spans_and_counts_the_others() -> None:
    timeline = Timeline(8)
    size = timeline.nbytes
    for number in range(21):
        timeline.add(timeline.track("kernel", "cpu"), "push", float(number), 0.5)
    assert [span.began for span in timeline.spans()] == list(range(13, 21))
    assert (timeline.dropped, timeline.nbytes) == (13, size)


def test_threads_have_tracks_of_their_own_and_lose_nothing() -> None:
    timeline = Timeline()

    def work() -> None:
        for number in range(500):
            timeline.add(timeline.here("gather"), "gather", float(number), 0.0)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spans = list(timeline.spans())
    assert len(spans) == 2000
    for number in range(1, 5):
        mine = [span.began for span in spans if span.track == f"thread {number}"]
        assert mine == list(range(500))
    assert timeline.here("gather") != timeline.here("disk")


def test_a_block_is_stamped_also_when_it_raises() -> None:
    timeline = Timeline()
    with pytest.raises(ValueError, match="no"), during(timeline, "engine", "plan"):
        raise ValueError("no")
    (span,) = timeline.spans()
    assert (span.name, span.seconds >= 0) == ("plan", True)
    assert during(None, "engine", "plan") is NOTHING


@pytest.mark.parametrize("watched", [True, False])
def test_a_reader_stamps_what_its_records_say(tmp_path: Path, watched: bool) -> None:
    edges = EdgeList(200, *skewed(200, 3000, 5), None, True)
    graph = on_disk(edges, tmp_path / "g.h5", both=False)
    timeline = Timeline() if watched else None
    found = np.empty(graph.edges, np.uint32)
    with Reader(graph, decode_threads=2, timeline=timeline) as reader:
        told = reader.fetch(graph.out, np.arange(graph.out.chunks), 0, found).result()
    if timeline is None:
        return
    spans = list(timeline.spans())
    for group, seconds, size in (("disk", told.read_seconds, told.bytes), ("decode", told.decode_seconds, 4 * 3000)):
        mine = [span for span in spans if span.group == group]
        assert sum(span.seconds for span in mine) == pytest.approx(seconds, rel=1e-9)
        assert sum(span.work.bytes for span in mine) == size
        assert sum(span.work.parts for span in mine) == graph.out.chunks
    assert {span.group for span in spans} == {"disk", "decode"}


def test_a_read_that_fails_leaves_no_span(tmp_path: Path) -> None:
    edges = EdgeList(200, *skewed(200, 3000, 5), None, True)
    graph = on_disk(edges, tmp_path / "g.h5", both=False)
    timeline = Timeline()
    with Reader(graph, decode_threads=1, timeline=timeline) as reader:
        (tmp_path / "g.h5").write_bytes(b"")
        with pytest.raises(RunError):
            reader.fetch(graph.out, np.arange(graph.out.chunks), 0, np.empty(graph.edges, np.uint32)).result()
    assert list(timeline.spans()) == []


def test_a_timeline_is_the_same_from_its_bytes() -> None:
    timeline = Timeline(8)
    for number in range(5):
        timeline.add(
            timeline.track("disk", f"thread {number % 2}"), f"read {number}", float(number), 0.5, Work(bytes=7)
        )
    found = Timeline.of_bytes(timeline.to_bytes())
    assert list(found.spans()) == list(timeline.spans())
    assert (found.began, found.dropped) == (timeline.began, 0)
    assert not list(Timeline.of_bytes(Timeline().to_bytes()).spans())
