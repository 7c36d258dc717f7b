"""A graph on disk that memory does not hold: chunks read, partitions kept once, and what goes first.

What an iteration should read is counted here from the frontier's bits, or from the answer, and plain offsets; what it
did read from what the reader was asked for.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from penstock.engine.planning import requirements
from penstock.engine.session import Session
from penstock.storage.read.partition_cache import PartitionCache
from penstock.storage.read.reader import Reader
from penstock.transfer.pipeline import Pipeline
from penstock.transfer.planning.host_budget import HostBudget
from penstock.transfer.staging.link_reader import LinkReader
from penstock.transfer.staging.partition_directory import PartitionDirectory
from penstock.transfer.values.rates import Rates
from penstock.transfer.values.task import Demand
from support.covering import covering
from support.graphs import on_disk, shape, skewed, weighed
from support.oracles import EdgeList
from support.program_cases import PROGRAMS, check, program_of
from support.small_host import CHUNK, dividing, small_memory


class Watched(Session):
    """A session whose loop can be looked at between iterations."""

    loop: Any

    def _loop(self, program: Any) -> Any:
        self.loop = super()._loop(program)
        return self.loop

    @property
    def active(self) -> NDArray[np.int64]:
        """Whoever was active in the iteration that ended last."""
        bits = np.unpackbits(self.loop.state.active.words.view(np.uint8), bitorder="little")
        return np.flatnonzero(bits)


def counted_reads(patch: pytest.MonkeyPatch) -> list[int]:
    """How many chunks were asked of the disk since the list was last cleared, one item a fetch."""
    asked: list[int] = []
    fetch = Reader.fetch

    def counting(reader: Reader, adjacency: Any, chunks: Any, *arrays: Any) -> Any:
        asked.append(len(chunks))
        return fetch(reader, adjacency, chunks, *arrays)

    patch.setattr(Reader, "fetch", counting)
    return asked


def touched(offsets: NDArray[np.int64], vertices: NDArray[np.int64]) -> set[int]:
    """Chunks that hold any edge of these rows."""
    rows = [(int(offsets[v]), int(offsets[v + 1])) for v in vertices]
    return {chunk for start, end in rows if end > start for chunk in range(start // CHUNK, (end - 1) // CHUNK + 1)}


def follow(session: Watched, name: str, edges: EdgeList, see: Callable[[Any], None]) -> dict[str, NDArray[Any]]:
    """Run a program, with `see` after every iteration; its answer."""
    steps = session.steps(program_of(name, edges))
    while True:
        try:
            record = next(steps)
        except StopIteration as end:
            fields: dict[str, NDArray[Any]] = end.value.fields
            return fields
        see(record)


DEVICES: dict[str, dict[str, Any]] = {
    "host": {"device": "cpu"},
    "emulated": {"device": "emulated", "device_edge_memory": 6000},
    "nothing-stays": {"device": "emulated", "device_edge_memory": 6000, "tuning": {"residency": "none"}},
    "in-place": {"device": "emulated", "route": "zero-copy", "tuning": {"residency": "none"}},
}


@covering("name, memory", ("bfs", "sssp", "wcc"), [*product(DEVICES, (0, 6))], strength=1)
def test_only_chunks_that_active_rows_touch_are_read(
    name: str, memory: tuple[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each once an iteration, and all of them where nothing keeps any. Linking components reads every chunk once."""
    options, slots = DEVICES[memory[0]], memory[1]
    edges = shape("wide", directed=name != "wcc", weights="uint8" if name == "sssp" else None)
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=CHUNK)
    small_memory(monkeypatch, 4 * CHUNK, 3, slots)
    asked = counted_reads(monkeypatch)
    offsets = edges.rows[0]
    several: list[int] = []

    def see(record: Any) -> None:
        read, hits = (sum(getattr(task, which) for task in record.tasks) for which in ("chunks_read", "hits"))
        assert read == sum(asked)
        asked.clear()
        several.append(read)
        if name != "wcc":
            wanted = touched(offsets, session.active)
            assert read + hits == len(wanted)
            assert hits == 0 or slots or "tuning" not in options

    with Watched(graph, direction="push", partition_bytes=1 << 20, **options) as session:
        session._loop(program_of(name, edges))
        asked.clear()  # of what was brought to the device before the run
        check(name, edges, follow(session, name, edges, see))
    assert sum(several) > 0
    if name == "wcc":
        assert sum(several) <= graph.out.chunks


@pytest.mark.parametrize("options", [{"device": "cpu"}, {"device": "emulated", "device_edge_memory": 6000}])
def test_a_pull_reads_the_chunks_of_rows_that_nobody_has_reached(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most: where heads of rows lie on the device, those that they answer are not read either. No row is kept."""
    monkeypatch.setattr(requirements, "unmatched_bytes", lambda *_: 0)
    edges = shape("wide")
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=CHUNK)
    small_memory(monkeypatch, 4 * CHUNK, 3, 4)
    counts: list[tuple[int, int]] = []

    def see(record: Any) -> None:
        counts.append(tuple(sum(getattr(task, which) for task in record.tasks) for which in ("chunks_read", "hits")))

    with Watched(graph, direction="pull", partition_bytes=1 << 20, **options) as session:
        fields = follow(session, "bfs", edges, see)
    check("bfs", edges, fields)
    levels = np.where(fields["level"] > edges.vertices, edges.vertices, fields["level"]).astype(np.int64)
    offsets = edges.reversed().rows[0]
    for number, (read, hits) in enumerate(counts):
        wanted = touched(offsets, np.flatnonzero(levels > number))
        assert read + hits <= len(wanted)
        assert options["device"] != "cpu" or read + hits == len(wanted)


class Places:
    """Looks after every plan at what device and host keep from then on."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.twice = self.seen = 0
        residency = Pipeline.residency

        def watched(pipeline: Pipeline, demand: Any) -> Any:
            answer = residency(pipeline, demand)
            if isinstance(pipeline.source, LinkReader):
                self._look(pipeline.directory(demand.direction), pipeline.source.cache, answer.resident)
            return answer

        patch.setattr(Pipeline, "residency", watched)

    def _look(self, directory: PartitionDirectory, host: PartitionCache | None, resident: Any) -> None:
        device = directory.staging.cache
        if device is None or host is None:
            return
        mine = device.entries(directory.key)
        lacking = np.zeros(len(device.starts), dtype=bool)
        lacking[mine] = ~resident
        there, here = np.zeros(len(device.starts), dtype=bool), host.starts >= 0
        there[mine] = directory.partly_held
        twice = there & here & ~lacking
        waits = lacking & ~there & ~here
        assert not (twice.any() and waits.any()), "held twice while there is no room for another"
        self.twice += int(twice.sum())
        self.seen += 1


@settings(max_examples=20)
@given(
    size=st.tuples(st.integers(20, 120), st.integers(100, 600), st.integers(0, 99)),
    directed=st.booleans(),
    name=st.sampled_from(PROGRAMS),
    memory=st.tuples(st.sampled_from([32, 64]), st.integers(1, 3), st.integers(1, 8)),
    device=st.integers(2 * CHUNK * 5, 6000),
    options=st.fixed_dictionaries({"direction": st.sampled_from(["auto", "push"])}),
)
def test_host_and_device_keep_a_partition_twice_only_where_both_have_room(
    size: tuple[int, int, int],
    directed: bool,
    name: str,
    memory: tuple[int, int, int],
    device: int,
    options: dict[str, Any],
) -> None:
    vertices, count, seed = size
    edges = weighed(EdgeList(vertices, *skewed(vertices, count, seed), None, directed), "uint8")
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        small_memory(patch, *memory)
        Places(patch)
        graph = on_disk(edges, Path(folder) / "graph.h5", chunk_edges=CHUNK)
        given_ = {"device_edge_memory": device, "partition_bytes": 128}
        with Session(graph, device="emulated", **given_, **options) as session:
            for _ in range(2):
                check(name, edges, session.run(program_of(name, edges)).fields)


def test_what_comes_to_stay_on_the_device_leaves_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the demand moves on, the device follows; the host keeps what the device has no place for."""
    edges = shape("wide", directed=False)
    graph = on_disk(edges, tmp_path / "graph.h5", both=False, chunk_edges=CHUNK)
    small_memory(monkeypatch, 4 * CHUNK, 2, 3)
    places = Places(monkeypatch)
    with Watched(graph, device="emulated", device_edge_memory=6 * 4 * CHUNK * 4, partition_bytes=1 << 20) as session:
        session._loop(program_of("bfs", edges))
        pipeline = session._equipment.pipeline
        table, rates = pipeline.directory("out").table, Rates(copy_bytes=1e9, line_rate=1e6, sector_rate=1e6)
        device, host = pipeline.cache, pipeline.source.host.cache
        for wanted in ([7, 8, 9], [7, 8, 9], [7, 8, 9], range(7, 13), range(7, 13)):
            active = np.zeros(len(table), dtype=np.int64)
            active[list(wanted)] = table.lengths[list(wanted)]
            demand = Demand("out", active, active, active, active.astype(float))
            for _ in pipeline.arrivals(pipeline.plan(demand, rates), demand):
                pass
        kept = [set(np.flatnonzero(cache.starts >= 0).tolist()) for cache in (device, host)]
    assert device.room == 3 * device.partition_edges
    assert places.twice
    assert kept == [{7, 8, 9}, {10, 11, 12}]


def test_what_the_device_keeps_leaves_the_host_cache_to_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sweeps: together both hold as many partitions as they have places, and only the others are read."""
    edges = shape("wide", directed=False)
    graph = on_disk(edges, tmp_path / "graph.h5", both=False, chunk_edges=CHUNK)
    small_memory(monkeypatch, 4 * CHUNK, 2, 50)
    places = Places(monkeypatch)
    reads: list[int] = []
    options = {"device_edge_memory": 100 * 4 * CHUNK * 4, "partition_bytes": 1 << 20, "route": "auto"}
    with Watched(graph, device="emulated", **options) as session:
        follow(session, "sweeps", edges, lambda record: reads.append(sum(t.chunks_read for t in record.tasks)))
        pipeline = session._equipment.pipeline
        device, host = pipeline.cache, pipeline.source.host.cache
        kept = int((device.starts >= 0).sum()), int((host.starts >= 0).sum())
        assert not ((device.starts >= 0) & (host.starts >= 0)).any()
    assert places.seen >= 3
    assert places.twice == 0
    assert kept == (device.room // device.partition_edges, 50)
    assert reads[-1] == graph.out.chunks - 4 * sum(kept)


def test_resident_then_cached_then_from_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of a plan for a device that is fed from disk, and within each the largest pending value first."""
    edges = shape("wide", directed=False)
    graph = on_disk(edges, tmp_path / "graph.h5", both=False, chunk_edges=CHUNK)
    small_memory(monkeypatch, 4 * CHUNK, 2, 20)
    with Watched(graph, device="emulated", device_edge_memory=60 * 4 * CHUNK * 4, direction="push") as session:
        follow(session, "bfs", edges, lambda record: None)
        stream = session.loop.streams["push"]
        pipeline = stream.pipeline
        table = pipeline.directory("out").table
        rows = table.v1 - table.v0
        pending = np.random.default_rng(4).permutation(len(table)).astype(float)
        demand = Demand("out", rows, table.lengths, table.lengths // 4, pending)
        plan = pipeline.plan(demand, session._equipment.feedback.given)
        directory = pipeline.directory("out")
        on_device = directory.resident(False)
        on_host = directory.filled(pipeline.source.complete(directory.adjacency, False))
    ranks = [0 if on_device[t.partitions[0]] else 1 if on_host[t.partitions[0]] else 2 for t in plan.tasks]
    assert ranks == sorted(ranks)
    assert set(ranks) == {0, 1, 2}
    for rank in (1, 2):
        values = [pending[list(t.partitions)].sum() for t, of in zip(plan.tasks, ranks, strict=True) if of == rank]
        assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("decoders", [1, 2, None])
def test_seconds_of_decoding_are_those_of_the_threads_that_the_budget_has_room_for(
    decoders: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges = shape("skewed")
    dividing(monkeypatch, lambda *_: HostBudget(2 * CHUNK, 3, 0, 2, False, 4, decoders=decoders))
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=CHUNK)
    with Session(graph, device="cpu", threads=4) as session:
        result = session.run(program_of("sweeps", edges))
    tasks = [task for record in result.records for task in record.tasks if task.decode_seconds]
    assert tasks
    for task in tasks:
        assert task.measured is not None
        assert task.measured.decode == pytest.approx(task.decode_seconds / (decoders or 4))
