"""What is written is what is read, striped or not; a writer that fails leaves the disk as it was."""

import os
import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from penstock.storage.base import atomic
from penstock.storage.base.errors import InputError, RunError, UnsyncedError
from penstock.storage.convert.convert import convert
from penstock.storage.convert.sort.options import ConvertOptions
from penstock.storage.encoding import bitpack
from penstock.storage.encoding.payload import PAYLOADS, payload_words
from penstock.storage.format import file_set
from penstock.storage.format.file_set import kept_to_itself
from penstock.storage.format.graph import Adjacency, Graph
from penstock.storage.format.hdf5 import FrameFile
from penstock.storage.format.writer import GraphWriter
from support.covering import covering
from support.faults import flip_bit, python
from support.graph_files import CHUNK, VERTICES, Rows, whole, write_rows
from support.graphs import ArraySource, on_disk, shape


def check(graph: Graph, rows: Rows, directions: tuple[str, ...] = ("out", "in")) -> None:
    assert (graph.vertices, graph.edges, graph.input_edges) == (VERTICES, rows.edges, rows.edges)
    assert graph.vertex_dtype == rows.neighbors.dtype
    for direction, adjacency in (("out", graph.out), ("in", graph.into)):
        if direction not in directions:
            assert adjacency is None
            continue
        assert adjacency is not None
        assert np.array_equal(whole(adjacency.neighbors), rows.neighbors)
        if rows.weights is not None:
            assert adjacency.weight_dtype == rows.weights.dtype
            assert np.array_equal(whole(adjacency.weights), rows.weights)
        else:
            assert adjacency.weights is None
        check_payload_sizes(adjacency)
        assert np.array_equal(adjacency.index().starts(0, VERTICES + 1), rows.offsets)
        assert adjacency.chunk_bytes(True).sum() < graph.file_bytes
    original = graph.original_ids()
    assert original is not None
    assert np.array_equal(original, rows.original)


def check_payload_sizes(adjacency: Adjacency) -> None:
    """The file has the size of every payload, and of nothing else."""
    for frames, weights in ((adjacency.neighbors, False), (adjacency.weights, True)):
        words = adjacency.payload_words(weights)
        if frames is None or frames.spec.encoding not in PAYLOADS:
            assert words is None
            continue
        room = np.empty(payload_words(frames.spec.chunk_items, frames.kind.itemsize), np.uint32)
        expected = [bitpack.pack(items, room, frames.spec.encoding == "packed") for items in frames.load()]
        assert words is not None
        assert words.tolist() == expected


@covering("encoding, stripes", ["packed", "delta", "plain"], [0, 1, 2, 5], strength=1)
def test_rows_come_back(tmp_path: Path, encoding: str, stripes: int) -> None:
    folders = [tmp_path / f"disk{number}" for number in range(stripes)]
    for folder in folders:
        folder.mkdir()
    rows = Rows(stripes)
    path = write_rows(tmp_path / "web.h5", rows, encoding=encoding, stripes=folders)
    graph = Graph.open(path)
    check(graph, rows)
    assert graph.out.encoding == encoding
    assert graph.provenance == {"source": "tests"}
    shards = [folder / f"web.{number}.h5" for number, folder in enumerate(folders)]
    assert list(graph.files) == [path, *shards]
    everything = {entry for entry in tmp_path.rglob("*") if entry.is_file()}
    assert everything == {path, *shards}


@pytest.mark.parametrize("kind", ["u1", "u2", "u4", "f4", "f8", None])
def test_every_weight_comes_back(tmp_path: Path, kind: str | None) -> None:
    rows = Rows(3, weights=kind)
    check(Graph.open(write_rows(tmp_path / "g.h5", rows, directions=("out",))), rows, ("out",))


@pytest.mark.parametrize("encoding", ["packed", "delta", "plain"])
def test_wide_ids_come_back(tmp_path: Path, encoding: str) -> None:
    rows = Rows(4, kind=np.uint64)
    check(Graph.open(write_rows(tmp_path / "g.h5", rows, encoding=encoding)), rows)


@settings(max_examples=12)
@given(st.sampled_from([0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 16 * CHUNK]), st.integers(1, 1500))
def test_any_number_of_edges_in_any_pieces(tmp_path_factory: Any, edges: int, pieces: int) -> None:
    rows = Rows(5, edges)
    path = tmp_path_factory.mktemp("write") / "g.h5"
    graph = Graph.open(write_rows(path, rows, pieces=pieces))
    check(graph, rows)
    assert graph.out.chunks == -(-edges // CHUNK)


def test_a_graph_without_vertices(tmp_path: Path) -> None:
    path = tmp_path / "g.h5"
    with GraphWriter(path, vertices=0, directed=False, vertex_dtype="u4", weight_dtype=None) as writer:
        writer.adjacency("out").finish()
    graph = Graph.open(path)
    assert (graph.vertices, graph.edges, graph.out.chunks) == (0, 0, 0)
    assert graph.into is graph.out
    assert graph.out.index().edges == 0
    assert graph.original_ids() is None


def test_an_existing_graph_is_refused_without_force(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "g.h5", Rows(1))
    with pytest.raises(InputError, match="--force"):
        write_rows(path, Rows(2))
    check(Graph.open(path), Rows(1))
    check(Graph.open(write_rows(path, Rows(2), force=True)), Rows(2))
    assert list(tmp_path.iterdir()) == [path]


def striped(path: Path, seed: int, stripes: int, **options: Any) -> Path:
    """A graph whose shards lie in folders beside it."""
    folders = [path.parent / str(number) for number in range(stripes)]
    for folder in folders:
        folder.mkdir(exist_ok=True)
    return write_rows(path, Rows(seed), stripes=folders, **options)


def files_of(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("before", "after"), [(2, 0), (0, 2)])
def test_a_graph_that_is_replaced_takes_its_shards_along(tmp_path: Path, before: int, after: int) -> None:
    path = tmp_path / "g.h5"
    for seed, stripes in enumerate((before, after, after)):
        old = None if seed == 0 else Graph.open(path)
        graph = Graph.open(striped(path, seed, stripes, force=seed > 0))
        check(graph, Rows(seed))
        assert files_of(tmp_path) == set(graph.files)
        if old is not None:
            check(old, Rows(seed - 1))  # who has it open reads on


@covering("stripes, stop", [0, 2], [UnsyncedError("cannot be synced"), KeyboardInterrupt()], strength=1)
def test_once_the_manifest_has_its_name_the_new_graph_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stripes: int, stop: BaseException
) -> None:
    """An error or a signal between the rename and the return: the new graph stands, whole.

    A power failure may bring the old one back where the folder could not be synced: its shards stay.
    """
    path = striped(tmp_path / "g.h5", 1, stripes)
    stops = [stop]

    def stopped(target: Path) -> None:
        if stops:
            raise stops.pop()

    before = files_of(tmp_path)
    monkeypatch.setattr(file_set, "sync_folder", stopped)
    with pytest.raises(type(stop)):
        striped(path, 2, stripes, force=True)
    check(Graph.open(path), Rows(2))
    kept = before if isinstance(stop, UnsyncedError) else set()
    assert files_of(tmp_path) == set(Graph.open(path).files) | kept


@pytest.mark.parametrize("name", ["g.h5", ".0.h5", ".1.h5"])
def test_until_the_manifest_has_its_name_the_old_graph_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = striped(tmp_path / "g.h5", 1, 2)
    before, real = files_of(tmp_path), atomic._rename

    def rename(partial: Path, target: Path, *, force: bool) -> None:
        if target.name.endswith(name):
            raise OSError(5, "Input/output error")
        real(partial, target, force=force)

    monkeypatch.setattr(atomic, "_rename", rename)
    with pytest.raises(RunError, match="could not be written"):
        striped(path, 2, 2, force=True)
    check(Graph.open(path), Rows(1))
    assert files_of(tmp_path) == before


def test_what_cannot_be_read_back_gets_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = striped(tmp_path / "g.h5", 1, 1)
    before, finish = files_of(tmp_path), FrameFile.finish

    def lying_disk(file: FrameFile, *arguments: Any) -> None:
        finish(file, *arguments)
        flip_bit(file.path, file.path.stat().st_size // 2)

    monkeypatch.setattr(FrameFile, "finish", lying_disk)
    with pytest.raises(RunError, match=r"g\.h5 could not be written: it cannot be read back"):
        striped(path, 2, 1, force=True)
    check(Graph.open(path), Rows(1))
    assert files_of(tmp_path) == before


@pytest.mark.parametrize("stop", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_interrupted_writer_leaves_nothing(tmp_path: Path, stop: type[BaseException]) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()

    def write() -> None:
        options: dict[str, Any] = {"vertices": 3, "directed": True, "vertex_dtype": "u4", "weight_dtype": "u1"}
        with GraphWriter(tmp_path / "g.h5", stripes=[tmp_path / "a", tmp_path / "b"], **options) as writer:
            adjacency = writer.adjacency("out")
            adjacency.append(np.arange(3, dtype=np.uint32), np.ones(3, np.uint8))
            raise stop

    with pytest.raises(stop):
        write()
    assert [entry for entry in tmp_path.rglob("*") if entry.is_file()] == []


def test_shards_go_again_when_the_manifest_cannot_get_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    real = atomic._rename

    def rename(partial: Path, target: Path, *, force: bool) -> None:
        if target.name == "g.h5":
            raise OSError(5, "Input/output error")
        real(partial, target, force=force)

    monkeypatch.setattr(atomic, "_rename", rename)
    with pytest.raises(RunError, match=r"g\.h5"):
        write_rows(tmp_path / "g.h5", Rows(), stripes=[tmp_path / "a"])
    assert [entry for entry in tmp_path.rglob("*") if entry.is_file()] == []


@pytest.mark.parametrize(
    ("degrees", "edges", "finish", "message"),
    [([1, 1], 2, True, "degrees"), ([1, 1, 1], 2, True, "degrees"), ([1, 1, 1], 3, False, "unfinished")],
)
def test_what_is_not_a_graph_is_refused(
    tmp_path: Path, degrees: list[int], edges: int, finish: bool, message: str
) -> None:
    def write() -> None:
        options: dict[str, Any] = {"vertices": 3, "directed": True, "vertex_dtype": "u4", "weight_dtype": None}
        with GraphWriter(tmp_path / "g.h5", **options) as writer:
            adjacency = writer.adjacency("out")
            adjacency.append(np.zeros(edges, np.uint32))
            adjacency.degrees(np.array(degrees))
            if finish:
                adjacency.finish()

    with pytest.raises(ValueError, match=message):
        write()
    assert list(tmp_path.iterdir()) == []


def test_unknown_encodings_and_weights_are_refused(tmp_path: Path) -> None:
    options: dict[str, Any] = {"vertices": 3, "directed": True, "vertex_dtype": "u4"}
    with pytest.raises(InputError, match="'zip'; the encodings are packed"):
        GraphWriter(tmp_path / "g.h5", weight_dtype=None, encoding="zip", **options)
    with pytest.raises(InputError, match="int64 cannot be stored"):
        GraphWriter(tmp_path / "g.h5", weight_dtype="i8", **options)


FULL = """
import sys
from pathlib import Path
import numpy as np
from penstock.storage.base.errors import RunError
from penstock.storage.format.writer import GraphWriter
ids = np.random.default_rng(0).integers(0, 1 << 32, 3 << 18, dtype=np.uint32)
folder = Path(sys.argv[1])
stripes = [folder / name for name in sys.argv[2:]]
n = 1 << 32
try:
    with GraphWriter(folder / "g.h5", vertices=n, directed=True, vertex_dtype="u4", weight_dtype=None,
                     stripes=stripes) as writer:
        adjacency = writer.adjacency("out")
        for _ in range(8):
            adjacency.append(ids)
        adjacency.finish()
except RunError as error:
    print(error)
"""


@covering("stripes, room", [(), ("a", "b")], [4000, 1 << 20], strength=1)
def test_a_full_disk_is_one_error_and_leaves_nothing(tmp_path: Path, stripes: tuple[str, ...], room: int) -> None:
    for name in stripes:
        (tmp_path / name).mkdir()
    child = python(FULL, str(tmp_path), *stripes, file_bytes=room)
    assert child.stderr == ""
    assert re.search(r"h5 could not be written: File too large; free space", child.stdout), child.stdout
    assert child.returncode == 0
    assert [entry for entry in tmp_path.rglob("*") if entry.is_file()] == []


def test_files_are_flushed_before_they_get_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, atomic._rename

    def flush(handle: int) -> None:
        steps.append("fsync")
        fsync(handle)

    monkeypatch.setattr(os, "fsync", flush)

    def rename(partial: Path, target: Path, *, force: bool) -> None:
        steps.append(target.name)
        replace(partial, target, force=force)

    monkeypatch.setattr(atomic, "_rename", rename)
    (tmp_path / "a").mkdir()
    write_rows(tmp_path / "g.h5", Rows(), stripes=[tmp_path / "a"])
    assert steps == ["fsync", "g.0.h5", "fsync", "fsync", "g.h5", "fsync"]


def test_a_graph_that_another_command_replaces_or_appends_to_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "g.h5"
    on_disk(shape("ring"), path)
    began, ended = threading.Event(), threading.Event()

    def hold() -> None:
        with kept_to_itself(path):
            began.set()
            ended.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    assert began.wait(60)
    try:
        for refused in (
            lambda: on_disk(shape("path"), path, force=True),
            lambda: convert(ArraySource("edges", shape("path")), path, ConvertOptions(force=True)),
        ):
            with pytest.raises(InputError, match="is in use by another run"):
                refused()
    finally:
        ended.set()
        holder.join()
    with kept_to_itself(path):
        assert on_disk(shape("path"), path, force=True).vertices == 400
    assert list(tmp_path.iterdir()) == [path]
