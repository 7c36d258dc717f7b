"""The reader: what it reads is right, little, from all stripes at once; what fails says where."""

from __future__ import annotations

import errno
import gc
import os
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from penstock.storage.base.errors import RunError
from penstock.storage.base.slot_pool import HUGE_PAGE
from penstock.storage.format.graph import Graph
from penstock.storage.format.read_plan import PAGE
from penstock.storage.read import reader
from penstock.storage.read.pending_read import PendingRead, ReadRecord
from penstock.storage.read.reader import Reader
from support.faults import break_disk, cut_short, flip_bit, open_files
from support.graph_files import CHUNK, Rows, frame_places, write_rows

ROWS = Rows(9, 20_000)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph file that no test changes."""
    return write_rows(tmp_path_factory.mktemp("reader") / "web.h5", ROWS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "web.h5", ROWS)


@pytest.fixture(scope="module")
def striped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("striped")
    for name in ("a", "b"):
        (folder / name).mkdir()
    return write_rows(folder / "web.h5", ROWS, stripes=[folder / "a", folder / "b"])


def slabs(count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    return np.full(count, 7, np.uint32), np.full(count, 7, np.uint8)


def is_direct(reader: Reader) -> bool:
    """Whether every read bypasses the page cache."""
    return all(file.direct for file in reader._files.values())


def fetch_all(graph: Graph, reader: Reader) -> ReadRecord:
    neighbors, weights = slabs(graph.edges)
    record = reader.fetch(graph.out, np.arange(graph.out.chunks), 0, neighbors, weights).result()
    assert np.array_equal(neighbors, ROWS.neighbors)
    assert ROWS.weights is not None
    assert np.array_equal(weights, ROWS.weights)
    return record


@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize("name", ["kept", "striped"])
def test_everything_comes_back(request: pytest.FixtureRequest, name: str, direct: bool) -> None:
    graph = Graph.open(request.getfixturevalue(name))
    with Reader(graph, decode_threads=2, direct_io=direct) as reader:
        assert reader.memory_bytes > 0
        record = fetch_all(graph, reader)
    assert record.chunks == 2 * graph.out.chunks
    assert record.bytes >= graph.out.chunk_bytes(True).sum()
    assert record.decode_seconds > 0


def test_direct_reading_says_whether_it_is(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph.open(kept)
    with Reader(graph, decode_threads=1) as reader:
        assert is_direct(reader) is False
    real = os.open

    def refuse(path: Any, flags: int, *rest: Any) -> int:
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "Invalid argument")
        return real(path, flags, *rest)

    monkeypatch.setattr(os, "open", refuse)
    with Reader(graph, decode_threads=1, direct_io=True) as reader:
        assert is_direct(reader) is False
        fetch_all(graph, reader)


def test_a_file_system_that_refuses_direct_reads_only_later(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph.open(kept)
    real, refused = os.preadv, [0]

    def refuse(file: int, buffers: Any, offset: int) -> int:
        if refused[0] == 0:
            refused[0] += 1
            raise OSError(errno.EINVAL, "Invalid argument")
        return real(file, buffers, offset)

    with Reader(graph, decode_threads=1, direct_io=True) as reader:
        if not is_direct(reader):
            pytest.skip("this file system has no direct reads")
        monkeypatch.setattr(os, "preadv", refuse)
        fetch_all(graph, reader)
        assert is_direct(reader) is False


@pytest.mark.parametrize("chunks", [[0], [3], [39], [2, 3, 4], [1, 9, 30, 39], []])
def test_a_sparse_fetch_reads_only_its_chunks(kept: Path, chunks: list[int]) -> None:
    graph = Graph.open(kept)
    wanted = np.array(chunks, np.int64)
    first = min(chunks, default=0) * CHUNK
    neighbors, _ = slabs(graph.edges)
    with Reader(graph, decode_threads=2) as reader:
        record = reader.fetch(graph.out, wanted, first, neighbors).result()
    mask = np.zeros(graph.edges, bool)
    for chunk in chunks:
        mask[chunk * CHUNK : (chunk + 1) * CHUNK] = True
    expected = np.where(mask, ROWS.neighbors, 7)[first:]
    assert np.array_equal(neighbors[: graph.edges - first], expected)
    assert record.chunks == len(chunks)
    least = int(graph.out.chunk_bytes(False)[wanted].sum())
    assert least <= record.bytes <= least + len(chunks) * 2 * PAGE


def test_neighbors_in_the_file_are_read_together(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph.open(kept)
    disk = break_disk(monkeypatch, "slow", lambda number: False)
    with Reader(graph, decode_threads=2) as reader:
        fetch_all(graph, reader)
    assert disk.reads <= 4


def test_many_fetches_at_once(kept: Path) -> None:
    graph = Graph.open(kept)
    with Reader(graph, decode_threads=2, reads_in_flight=3) as reader:
        pending_reads, results = [], []
        for chunk in range(graph.out.chunks):
            neighbors, weights = slabs(CHUNK)
            results.append((chunk, neighbors, weights))
            pending_reads.append(reader.fetch(graph.out, np.array([chunk]), chunk * CHUNK, neighbors, weights))
        for pending in pending_reads:
            assert pending.result().chunks == 2
    for chunk, neighbors, weights in results:
        part = slice(chunk * CHUNK, (chunk + 1) * CHUNK)
        assert np.array_equal(neighbors[: len(ROWS.neighbors[part])], ROWS.neighbors[part])
        assert ROWS.weights is not None
        assert np.array_equal(weights[: len(ROWS.weights[part])], ROWS.weights[part])


@pytest.mark.parametrize("kind", ["neighbors", "weights"])
@pytest.mark.parametrize("name", ["one", "two"])
def test_a_damaged_chunk_is_named(tmp_path: Path, kind: str, name: str) -> None:
    folders = []
    if name == "two":
        folders = [tmp_path / "a", tmp_path / "b"]
        for folder in folders:
            folder.mkdir()
    path = write_rows(tmp_path / "web.h5", ROWS, stripes=folders)
    file, offset, length = frame_places(Graph.open(path))[kind]
    flip_bit(file, offset + length - 1)
    graph = Graph.open(path)
    neighbors, weights = slabs(graph.edges)
    with Reader(graph, decode_threads=2) as reader:
        pending = reader.fetch(graph.out, np.arange(graph.out.chunks), 0, neighbors, weights)
        with pytest.raises(RunError, match=rf"chunk 1 of out/{kind} in {file} \(offset {offset}\).*checksum"):
            pending.result()
        again = reader.fetch(graph.out, np.array([5]), 5 * CHUNK, neighbors)
        assert again.result().chunks == 1


def test_a_file_cut_after_opening_is_named(path: Path) -> None:
    graph = Graph.open(path)
    neighbors, weights = slabs(graph.edges)
    with Reader(graph, decode_threads=2) as reader:
        cut_short(path, 5 * PAGE)
        with pytest.raises(RunError, match=r"web\.h5 is cut short"):
            reader.fetch(graph.out, np.arange(graph.out.chunks), 0, neighbors, weights).result()


def test_one_io_error_is_tried_again(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph.open(kept)
    disk = break_disk(monkeypatch, "eio", lambda number: number == 0)
    with Reader(graph, decode_threads=2) as reader:
        fetch_all(graph, reader)
    assert disk.broken == 1


def test_a_lasting_io_error_is_named(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph.open(kept)
    break_disk(monkeypatch, "eio")
    neighbors, _ = slabs(graph.edges)
    with (
        Reader(graph, decode_threads=2) as reader,
        pytest.raises(RunError, match=r"web\.h5 cannot be read at offset \d+: Input/output error; check"),
    ):
        reader.fetch(graph.out, np.arange(3), 0, neighbors).result()


def test_short_reads_are_continued(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph.open(kept)
    disk = break_disk(monkeypatch, "short")
    with Reader(graph, decode_threads=2) as reader:
        fetch_all(graph, reader)
    assert disk.broken > 4


def test_a_cancelled_fetch_touches_nothing_afterwards(kept: Path) -> None:
    graph = Graph.open(kept)
    neighbors, weights = slabs(graph.edges)
    with Reader(graph, decode_threads=1, reads_in_flight=1, throttle=200_000) as reader:
        waiting = [reader.fetch(graph.out, np.arange(9), 0, *slabs(graph.edges)) for _ in range(2)]
        pending = reader.fetch(graph.out, np.arange(graph.out.chunks), 0, neighbors, weights)
        begun = time.perf_counter()
        pending.cancel()
        assert pending.done
        neighbors[:] = 5
        for other in waiting:
            other.result()
        assert time.perf_counter() - begun < 30
    assert (neighbors == 5).all()
    with pytest.raises(RuntimeError, match="cancelled"):
        pending.result()


def test_two_throttled_stripes_read_nearly_twice_as_fast(tmp_path: Path) -> None:
    rows, chunk = Rows(2, 400_000), 8192
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    seconds = {"two": np.inf}
    for name, stripes in {"one": [], "two": folders}.items():
        path = write_rows(tmp_path / f"{name}.h5", rows, chunk=chunk, directions=("out",), stripes=stripes)
        graph = Graph.open(path)
        size = int(graph.out.chunk_bytes(True).sum())
        neighbors, weights = slabs(graph.edges)
        for _ in range(1 if name == "one" else 5):  # where the machine is busy with something else, the best of some
            with Reader(graph, decode_threads=2, throttle=size) as reader:
                begun = time.perf_counter()
                pieces = [
                    reader.fetch(graph.out, np.arange(first, min(first + 4, graph.out.chunks)), 0, neighbors, weights)
                    for first in range(0, graph.out.chunks, 4)
                ]
                for piece in pieces:
                    piece.result()
                seconds[name] = min(seconds.get(name, np.inf), time.perf_counter() - begun)
            if seconds["one"] / seconds["two"] >= 1.8:
                break
        assert np.array_equal(neighbors, rows.neighbors)
    assert seconds["one"] > 0.9
    assert seconds["one"] / seconds["two"] >= 1.8


def test_every_stripe_has_its_own_queue(striped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one stripe stuck, the other's reads still come."""
    graph = Graph.open(striped)
    frames = graph.out.neighbors
    assert frames is not None
    stuck = threading.Event()
    real = os.preadv
    slow = str(graph.files[1])

    def preadv(file: int, buffers: Any, offset: int) -> int:
        if os.readlink(f"/proc/self/fd/{file}") == slow:
            stuck.wait(20)
        return real(file, buffers, offset)

    monkeypatch.setattr(os, "preadv", preadv)
    here = np.flatnonzero(frames.shard == 1)
    there = np.flatnonzero(frames.shard == 2)
    neighbors, _ = slabs(graph.edges)
    with Reader(graph, decode_threads=1, reads_in_flight=1) as reader:
        blocked = [reader.fetch(graph.out, here[:1], 0, neighbors) for _ in range(5)]
        assert reader.fetch(graph.out, there, 0, neighbors).result().chunks == len(there)
        assert not any(pending.done for pending in blocked)
        stuck.set()
        for pending in blocked:
            pending.result()


@pytest.mark.parametrize(
    ("count", "kind", "chunks", "first"),
    [
        (10, np.uint32, [0], 0),
        (CHUNK, np.uint64, [0], 0),
        (CHUNK, np.uint32, [40], 0),
        (CHUNK, np.uint32, [-1], 0),
        (CHUNK, np.uint32, [0], 1),
    ],
)
def test_a_slab_that_does_not_fit_is_refused(kept: Path, count: int, kind: Any, chunks: list[int], first: int) -> None:
    graph = Graph.open(kept)
    with Reader(graph, decode_threads=1) as reader, pytest.raises(ValueError, match=r"slab|chunks"):
        reader.fetch(graph.out, np.array(chunks), first, np.zeros(count, kind))


def test_a_reader_leaves_no_thread_and_no_file_behind(kept: Path) -> None:
    graph = Graph.open(kept)
    gc.collect()  # files of graphs that earlier tests opened
    threads, files = set(threading.enumerate()), open_files(kept)
    with Reader(graph, decode_threads=2) as reader:
        fetch_all(graph, reader)
        assert set(threading.enumerate()) - threads
        assert len(open_files(kept)) > len(files)
    assert not set(threading.enumerate()) - threads
    assert open_files(kept) == files


@pytest.mark.timeout(30)
@pytest.mark.parametrize("begun", [False, True])
def test_a_signal_while_threads_are_started_leaves_none_and_waits_for_none(
    begun: bool, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, before, calls = Graph.open(kept), threading.active_count(), [0]

    def interrupted(thread: threading.Thread) -> None:
        calls[0] += 1
        if calls[0] < 3 or begun:
            thread.start()
        if calls[0] == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(reader, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Reader(graph, decode_threads=4)
    assert threading.active_count() == before


def test_a_file_whose_name_is_gone_is_read_on(path: Path) -> None:
    graph = Graph.open(path)
    path.unlink()
    with Reader(graph, decode_threads=1) as reader:
        fetch_all(graph, reader)


def test_a_file_that_cannot_be_opened_again_is_named(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph.open(kept)

    def refuse(handle: int) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "dup", refuse)
    with pytest.raises(RunError, match=r"web\.h5 cannot be opened: Too many open files"):
        Reader(graph, decode_threads=1)


def test_a_pending_read_adds_up_and_reports_the_first_error() -> None:
    pending = PendingRead(2)
    assert not pending.done
    assert pending.begin()
    pending.end(ReadRecord(1, 2, 0.5, 0.25))
    assert not pending.done
    assert pending.begin()
    pending.end(ReadRecord(10, 20, 0.5, 0.25))
    assert pending.result() == ReadRecord(11, 22, 1.0, 0.5)
    failed = PendingRead(3)
    assert failed.begin()
    assert failed.begin()
    failed.end(RunError("first"))
    assert not failed.done, "a job still runs"
    failed.end(RunError("second"))
    assert not failed.begin()
    with pytest.raises(RunError, match="first"):
        failed.result()
    assert PendingRead(0).result() == ReadRecord()


def test_a_graph_in_memory_takes_no_threads() -> None:
    with Reader(Graph.from_arrays([0, 1], np.array([0], np.uint32)), decode_threads=2) as reader:
        assert reader.threads == 0


def test_the_buffers_of_all_threads_are_one_array(kept: Path) -> None:
    with Reader(Graph.open(kept), decode_threads=2) as reader:
        buffers = reader._buffers(3)
        assert [len(buffer) % PAGE for buffer in buffers] == [0, 0, 0]
        assert buffers[0].ctypes.data % HUGE_PAGE == 0
        assert buffers[2].ctypes.data == buffers[0].ctypes.data + 2 * len(buffers[0])
