"""Opening a graph: what is not a whole, undamaged graph of this version is refused with the way out."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError, RunError
from penstock.storage.encoding.codec import checksum
from penstock.storage.format import frames, hdf5
from penstock.storage.format.graph import Graph
from support.covering import covering
from support.faults import break_disk, cut_short, flip_bit
from support.graph_files import Rows, as_version_1, forge_tables, frame_places, table_places, whole, write_rows


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph file that no test changes."""
    return write_rows(tmp_path_factory.mktemp("graph") / "web.h5", Rows())


@pytest.fixture
def path(kept: Path, tmp_path: Path) -> Path:
    """A copy of it to damage."""
    return Path(shutil.copy(kept, tmp_path / "web.h5"))


def everything(path: Path) -> list[Any]:
    """All that a graph says, so that any difference shows."""
    graph = Graph.open(path)
    assert graph.into is not None
    found: list[Any] = [graph.vertices, graph.edges, graph.input_edges, graph.directed, graph.original_ids()]
    for adjacency in (graph.out, graph.into):
        found += [whole(adjacency.neighbors), whole(adjacency.weights)]
        found.append(adjacency.index().starts(0, graph.vertices + 1))
    return found


def same(one: list[Any], other: list[Any]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_a_missing_file_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing\.h5 does not exist; 'penstock convert"):
        Graph.open(tmp_path / "nothing.h5")
    with pytest.raises(InputError, match="is a folder"):
        Graph.open(tmp_path)


def test_a_text_file_is_not_a_graph(tmp_path: Path) -> None:
    for text in ("", "1 2\n2 3\n"):
        (tmp_path / "edges.txt").write_text(text)
        with pytest.raises(InputError, match=r"edges\.txt .*not a Penstock graph.*penstock convert"):
            Graph.open(tmp_path / "edges.txt")


def test_another_hdf5_file_is_not_a_graph(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["neighbors"] = np.arange(5)
    with pytest.raises(InputError, match=r"other\.h5 .*not a Penstock graph.*penstock convert"):
        Graph.open(tmp_path / "other.h5")


def test_a_newer_version_is_refused(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file.attrs["penstock_format"] = 8
    with pytest.raises(InputError, match=r"web\.h5 .*format version 8.*upgrade Penstock"):
        Graph.open(path)


def test_version_1_is_read_and_knows_no_sizes_of_payloads(path: Path) -> None:
    expected = whole(Graph.open(path).out.neighbors)
    as_version_1(path)
    graph = Graph.open(path)
    assert graph.out.payload_words(weights=False) is None
    assert graph.out.payload_words(weights=True) is None
    assert np.array_equal(whole(graph.out.neighbors), expected)
    assert graph.out.index().vertices == graph.vertices


def test_a_version_1_table_in_a_file_of_version_2_is_refused(path: Path) -> None:
    forge_tables(path, lambda name, table: table[:, :2], 2)
    with pytest.raises(InputError, match=r"web\.h5 .*chunk table of \S+ has shape"):
        Graph.open(path)


@pytest.mark.parametrize("words", [0, 1 << 20, 1 << 63])
@pytest.mark.parametrize("name", ["out/neighbors", "in/weights", "out/degrees"])
def test_an_impossible_size_of_a_payload_is_refused(path: Path, name: str, words: int) -> None:
    forge_tables(path, resized(name, words), 2)
    with pytest.raises(InputError, match=rf"web\.h5 .*chunk 1 of {name} cannot have a payload of {words} words"):
        Graph.open(path)


@pytest.mark.parametrize("name", ["out/neighbors", "out/weights"])
def test_a_wrong_size_of_a_payload_is_refused_when_it_is_decoded(path: Path, name: str) -> None:
    forge_tables(path, resized(name, 77), 2)
    adjacency = Graph.open(path).out
    with pytest.raises(RunError, match=rf"chunk 1 of {name} in .*payload has \d+ words, and its chunk table says 77"):
        whole(getattr(adjacency, name[4:]))


def resized(name: str, words: int) -> Callable[[str, NDArray[np.uint64]], NDArray[np.uint64]]:
    """Give the second payload of an array another size in the table."""

    def change(path: str, table: NDArray[np.uint64]) -> NDArray[np.uint64]:
        if path == name:
            table[1, 2] = words
        return table

    return change


def test_a_half_written_file_is_refused(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        del file.attrs["penstock_complete"]
    with pytest.raises(InputError, match=r"web\.h5 .*never finished; convert the input again"):
        Graph.open(path)


@pytest.mark.parametrize("share", [0.0005, 0.01, 0.3, 0.9, 0.9999])
def test_a_truncated_file_is_refused(path: Path, share: float) -> None:
    cut_short(path, int(path.stat().st_size * share))
    with pytest.raises(InputError, match=r"web\.h5 "):
        Graph.open(path)


@pytest.mark.parametrize("name", ["neighbors", "weights", "degrees", "original_id"])
def test_a_flipped_bit_in_a_chunk_names_chunk_and_file(path: Path, name: str) -> None:
    file, offset, length = frame_places(Graph.open(path))[name]
    flip_bit(file, offset + length // 2, 3)
    graph = Graph.open(path)
    reads = {
        "neighbors": lambda: whole(graph.out.neighbors),
        "weights": lambda: whole(graph.out.weights),
        "degrees": graph.out.index,
        "original_id": graph.original_ids,
    }
    with pytest.raises(RunError, match=rf"chunk 1 of (out/)?{name} in .*web\.h5 .*checksum"):
        reads[name]()


@pytest.mark.parametrize("number", range(8))
def test_a_flipped_bit_in_a_table_or_the_header_is_refused(path: Path, number: int) -> None:
    places = table_places(path)
    assert len(places) == 8
    name, offset = list(places.items())[number]
    flip_bit(path, offset, 1)
    with pytest.raises(InputError, match=r"web\.h5 .*checksum of (its header|the chunk table)"):
        Graph.open(path)
    assert name


def rewritten(path: Path, change: dict[str, Any]) -> None:
    """Forge the header, checksum included, as someone with bad intent would."""
    with h5py.File(path, "r+") as file:
        header = json.loads(bytes(file["penstock_header"][()]))
        for key, value in change.items():
            target: Any = header
            *way, last = key.split("/")
            for step in way:
                target = target[int(step) if step.isdigit() else step]
            target[last] = value
        text = json.dumps(header).encode()
        del file["penstock_header"]
        file.create_dataset("penstock_header", data=np.bytes_(text))
        file.attrs["penstock_header_checksum"] = np.uint64(checksum(text))


@pytest.mark.parametrize(
    "change",
    [
        {"vertices": 2**50},
        {"vertices": -1},
        {"edges": 2**61},
        {"edges": "many"},
        {"vertices": True},
        {"directed": 1},
        {"stripe_run": 0},
        {"graph_id": "short"},
        {"arrays": []},
        {"arrays/0/items": 2**40},
        {"arrays/0/items": 10**30},
        {"arrays/0/chunk_items": 2**31},
        {"arrays/0/chunk_items": 0},
        {"arrays/0/encoding": "rot13"},
        {"arrays/0/dtype": "object"},
        {"arrays/0/dtype": "float64"},
        {"arrays/0/path": "../out/neighbors"},
        {"arrays/0/extra": 1},
        {"surprise": 1},
        {"shards": [{"name": "../../etc/passwd", "directory": "/"}]},
        {"shards": [{"name": "/etc/passwd", "directory": "/"}]},
        {"shards": [{"name": "..", "directory": "/"}]},
        {"shards": [{"name": "a\x00b", "directory": "/"}]},
        {"shards": [{"name": "x.h5", "directory": 3}]},
        {"shards": [{"name": "x.0.h5", "directory": "/nowhere"}]},
        {"place": "/g.h5"},
        {"place": {"path": "/g.h5"}},
        {"place": {"path": "/g\x00.h5", "inode": 1}},
        {"place": {"path": 1, "inode": 1}},
        {"place": {"path": "/g.h5", "inode": "1"}},
    ],
)
def test_a_forged_header_is_refused_before_anything_is_allocated(path: Path, change: dict[str, Any]) -> None:
    rewritten(path, change)
    with pytest.raises(InputError, match=r"web\.h5"):
        Graph.open(path)


def test_frames_beyond_the_file_are_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = hdf5._places

    def beyond(file: Any, spec: Any) -> hdf5.FrameLocations:
        places = real(file, spec)
        places.offsets[-1] = 1 << 40
        return places

    monkeypatch.setattr(hdf5, "_places", beyond)
    with pytest.raises(InputError, match=r"web\.h5 .*is not inside it"):
        Graph.open(path)


def test_degrees_that_do_not_sum_up_are_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph.open(path)
    assert graph.out.degrees is not None
    monkeypatch.setattr(type(graph.out.degrees), "decode", lambda *arguments: arguments[-1].fill(0))
    with pytest.raises(RunError, match=r"out-degrees sum up to 0 and not to its 6000 edges"):
        graph.out.index()


@pytest.fixture
def striped(tmp_path: Path) -> Path:
    for name in ("a", "b", "moved"):
        (tmp_path / name).mkdir()
    return write_rows(tmp_path / "web.h5", Rows(), stripes=[tmp_path / "a", tmp_path / "b"])


def test_a_missing_shard_says_where_it_was_sought(striped: Path) -> None:
    expected = everything(striped)
    folder = striped.parent
    shutil.move(folder / "b" / "web.1.h5", folder / "moved" / "web.1.h5")
    with pytest.raises(InputError, match=r"web\.1\.h5 .*stripe 1 of 2.* was not found") as caught:
        Graph.open(striped)
    for part in (str(folder / "b"), str(folder), "--stripe DIR"):
        assert part in str(caught.value)
    graph = Graph.open(striped, stripes=[folder / "moved"])
    assert np.array_equal(whole(graph.out.neighbors), expected[5])
    shutil.move(folder / "moved" / "web.1.h5", folder / "web.1.h5")
    assert same(everything(striped), expected)


def test_a_graph_that_is_replaced_while_it_is_opened_is_the_new_one(
    striped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find, times = frames._find_shard, []

    def replacing(*arguments: Any) -> Any:
        times.append(arguments)
        if len(times) < 3:
            write_rows(striped, Rows(len(times)), stripes=[striped.parent / "a"], force=True)
        return find(*arguments)

    monkeypatch.setattr(frames, "_find_shard", replacing)
    found = everything(striped)
    monkeypatch.undo()
    assert len(times) == 3
    assert same(found, everything(write_rows(striped.with_name("new.h5"), Rows(2))))


def test_a_shard_of_another_graph_is_not_used(striped: Path, tmp_path: Path) -> None:
    folder = striped.parent
    other = tmp_path / "other"
    other.mkdir()
    write_rows(other / "web.h5", Rows(2), stripes=[other, other])
    shutil.copy(other / "web.0.h5", folder / "a" / "web.0.h5")
    with pytest.raises(InputError, match="belongs to another graph"):
        Graph.open(striped)
    with pytest.raises(InputError, match=r"is a shard of a striped graph; open the graph's manifest"):
        Graph.open(folder / "b" / "web.1.h5")


def test_two_graphs_whose_shards_were_swapped_are_refused(striped: Path) -> None:
    a, b = striped.parent / "a" / "web.0.h5", striped.parent / "b" / "web.1.h5"
    data = a.read_bytes()
    a.write_bytes(b.read_bytes())
    b.write_bytes(data)
    with pytest.raises(InputError, match="damaged"):
        Graph.open(striped)


def test_an_index_can_be_dropped_and_read_again(path: Path) -> None:
    graph = Graph.open(path)
    first = graph.out.index()
    assert graph.out.index() is first
    graph.out.drop_index()
    again = graph.out.index()
    assert again is not first
    assert np.array_equal(again.offsets, first.offsets)


@covering("kind, where", ("eio", "hiccup", "short"), ("striped", "path"), strength=1)
def test_opening_reads_again_after_one_error_and_names_a_lasting_one(
    kind: str, where: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every read of the opening fails in turn: once, as far as half of it, or with all that follow."""
    monkeypatch.setattr(hdf5, "HEAD_BYTES", 4096)  # else one read brings all of so small a file
    place: Path = request.getfixturevalue(where)
    right = everything(place)
    number = 0
    while True:
        with monkeypatch.context() as patch:
            disk = break_disk(patch, kind, lambda n, first=number: n >= first if kind == "eio" else n == first)
            try:
                Graph.open(place)
                said = ""
            except RunError as error:
                said = str(error)
        if not disk.broken:
            break
        assert bool(said) == (kind == "eio")
        assert not said or re.search(r"\.h5\S* cannot be read at offset \d+: Input/output error", said), said
        number += 1
    assert same(everything(place), right)
    assert number > 5
