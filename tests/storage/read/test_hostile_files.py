"""Files made to do harm: bytes changed, headers and HDF5 structures forged with checksums that fit.

An error that names the file, or the same answer: never another answer, a crash, a hang, a large allocation or a look at
another file. tests/support/flips.py changes every byte by hand; here every so many.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from penstock.storage.base.errors import InputError, PenstockError, RunError
from penstock.storage.encoding.codec import checksum
from penstock.storage.format import hdf5
from penstock.storage.format.graph import Graph
from penstock.storage.format.writer import GraphWriter
from support import flips
from support.covering import covering
from support.faults import python
from support.graph_files import string_array
from support.source_code import modules

STEP = 307
TESTS = Path(flips.__file__).parents[1]


@pytest.mark.timeout(120)
def test_a_changed_byte_is_an_error_or_changes_nothing(tmp_path: Path) -> None:
    child = subprocess.run(
        [sys.executable, "-m", "support.flips", str(tmp_path), str(STEP)],
        cwd=TESTS,
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert child.returncode == 0, child.stderr[-2000:]
    facts = json.loads(child.stdout)
    assert facts["wrong"] == []
    assert facts["counts"]["refused"] > 80
    assert facts["counts"]["same"] > 30


HEAP = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from support import flips
path = flips.striped(Path(sys.argv[1]))
shard = path.parent / "a" / "striped.0.h5"
heap = shard.read_bytes().index(b"GCOL")
print({kind for kind, what in flips.changed(path, shard, iter(range(heap, heap + 48)), (0xFF,))})
"""


@pytest.mark.timeout(120)
def test_a_changed_heap_is_never_read(tmp_path: Path) -> None:
    """Where strings of any length lie HDF5 keeps no checksum, and loops for ever over one that is damaged."""
    child = python(HEAP, str(tmp_path), str(TESTS))
    assert child.returncode == 0, child.stderr[-2000:]
    assert child.stdout.strip() == "{'same'}"


def test_shards_of_before_they_had_an_identity_are_known_by_their_heap(tmp_path: Path) -> None:
    path = flips.striped(tmp_path)
    expected = flips.answer(path)
    for shard in Graph.open(path).files[1:]:
        with h5py.File(shard, "r+") as file:
            del file.attrs["penstock_identity"]
    assert flips.answer(path) == expected
    other = flips.striped(tmp_path / "a")
    with h5py.File(other.parent / "a" / "striped.0.h5", "r+") as file:
        del file.attrs["penstock_identity"]
    os.replace(other.parent / "a" / "striped.0.h5", tmp_path / "a" / "striped.0.h5")
    refused(path, "belongs to another graph")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return flips.numbered(tmp_path)


def replaced(path: Path, name: str, make: Callable[[h5py.File], None]) -> None:
    """Put something else in the place of an object of the file."""
    with h5py.File(path, "r+") as file:
        del file[name]
        make(file)


def refused(path: Path, message: str = "damaged") -> None:
    """Opening must fail, naming the file, without any large allocation."""
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=message) as caught:
            Graph.open(path)
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()
    assert path.name in str(caught.value)


HUGE = 1 << 50


def _huge(file: h5py.File, name: str, kind: str, layout: str) -> None:
    """A dataset that claims more than any file has: never allocated, so that it takes no room here."""
    settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    space = h5py.h5s.create_simple((HUGE,))
    settings.set_alloc_time(h5py.h5d.ALLOC_TIME_LATE)
    if layout == "chunked":
        settings.set_chunk((flips.CHUNK,))
    h5py.h5d.create(file.id, name.encode(), h5py.h5t.py_create(np.dtype(kind)), space, dcpl=settings)


@covering(
    "layout, name",
    ["contiguous", "chunked"],
    ["penstock_header", "out/neighbors_chunks", "out/neighbors", "original_id"],
    strength=1,
)
def test_a_dataset_that_claims_petabytes_is_refused(name: str, layout: str, path: Path) -> None:
    replaced(path, name, lambda file: _huge(file, name, "u1", layout))
    refused(path, "damaged")


@pytest.mark.parametrize("name", ["penstock_header", "out", "out/neighbors", "out/degrees_chunks"])
@pytest.mark.parametrize("link", [h5py.ExternalLink, h5py.SoftLink])
def test_links_are_not_followed(name: str, link: Any, path: Path, tmp_path: Path) -> None:
    """Not to another file, where opening a pipe would hang for ever, and not inside either."""
    os.mkfifo(tmp_path / "pipe")
    target = link(str(tmp_path / "pipe"), "/x") if link is h5py.ExternalLink else link("/in/neighbors")

    def make(file: h5py.File) -> None:
        file[name] = target

    replaced(path, name, make)
    refused(path, "link")


def test_bytes_in_other_files_are_not_read(path: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(bytes(64))

    def outside(file: h5py.File) -> None:
        file.create_dataset("out/degrees_chunks", (1, 3), "u8", external=[(str(tmp_path / "secret"), 0, 24)])

    replaced(path, "out/degrees_chunks", outside)
    refused(path, "not a dataset of its own")


def test_virtual_datasets_are_refused(path: Path) -> None:
    layout = h5py.VirtualLayout((1, 3), "u8")
    layout[:] = h5py.VirtualSource(str(path), "in/degrees_chunks", (1, 3))
    replaced(path, "out/degrees_chunks", lambda file: file.create_virtual_dataset("out/degrees_chunks", layout))
    refused(path, "not a dataset of its own")


@pytest.mark.parametrize("value", [np.int64(1 << 40), "text", [b"x"], np.arange(3), 1.5])
def test_a_header_of_another_type_is_refused(value: Any, path: Path) -> None:
    replaced(path, "penstock_header", lambda file: file.create_dataset("penstock_header", data=value))
    refused(path)


def test_a_group_or_a_named_type_in_the_place_of_a_dataset_is_refused(path: Path) -> None:
    replaced(path, "out/neighbors", lambda file: file.create_group("out/neighbors"))
    refused(path, "not a dataset")
    replaced(path, "penstock_header", lambda file: file.__setitem__("penstock_header", np.dtype("u1")))
    refused(path, "not a dataset")


@pytest.mark.parametrize("name", ["penstock_format", "penstock_complete", "penstock_header_checksum"])
@pytest.mark.parametrize("value", [np.ones(500, np.int64), "text of any length", 1.5])
def test_an_attribute_that_is_not_one_value_is_refused(name: str, value: Any, path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file.attrs[name] = value
    refused(path, "not one value")


def test_an_array_of_another_shape_than_its_header_says_is_refused(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        kind = file["out/degrees"].dtype
        del file["out/degrees"]
        file.create_dataset("out/degrees", (4, 4), kind, chunks=(1, 4))
    refused(path, "not the array that its header describes")


def test_a_recorded_folder_may_hold_a_pipe(tmp_path: Path) -> None:
    path = flips.striped(tmp_path)
    (tmp_path / "a" / "striped.0.h5").unlink()
    os.mkfifo(tmp_path / "a" / "striped.0.h5")
    refused(path, "not a regular file")


def headed(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Forge the header, its checksum included."""
    with h5py.File(path, "r+") as file:
        header = json.loads(bytes(file["penstock_header"][()]))
        change(header)
        text = json.dumps(header).encode()
        del file["penstock_header"]
        file.create_dataset("penstock_header", data=np.bytes_(text))
        file.attrs["penstock_header_checksum"] = np.uint64(checksum(text))


def _spec(header: dict[str, Any], path: str) -> dict[str, Any]:
    found: dict[str, Any] = next(spec for spec in header["arrays"] if spec["path"] == path)
    return found


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header.update(vertices=1 << 60),
        lambda header: header.update(graph_id="../" * 10 + "xx"),
        lambda header: header.update(directed=False),
        lambda header: header.update(weight_range=[float("nan"), 0.0, 1.0]),
        lambda header: header.update(weight_range=[3.0, 2.0, 1.0]),
        lambda header: _spec(header, "in/neighbors").update(dtype="uint64"),
        lambda header: _spec(header, "out/weights").update(chunk_items=64),
        lambda header: _spec(header, "in/weights").update(dtype="uint16"),
        lambda header: header["arrays"].remove(_spec(header, "in/weights")),
        lambda header: header.update(vertices=1 << 33),
        lambda header: _spec(header, "out/neighbors").update(encoding="plain"),
    ],
)
def test_a_header_that_does_not_fit_its_arrays_is_refused(change: Any, path: Path) -> None:
    headed(path, change)
    refused(path)


def written(path: Path, degrees: Any, kind: str, edges: int = 4) -> Graph:
    """A graph whose degrees are not those of its edges, though every checksum fits."""
    with GraphWriter(path, vertices=len(degrees), directed=True, vertex_dtype="u4", weight_dtype=None) as writer:
        rows = writer.adjacency("out")
        rows.append(np.zeros(edges, np.uint32))
        rows._rows, rows._total = len(degrees), edges
        rows._degrees.kind = lambda: np.dtype(kind)  # type: ignore[method-assign]
        rows._degrees.release = lambda: iter([np.array(degrees, kind)])  # type: ignore[method-assign]
        rows.finish()
    return Graph.open(path)


@pytest.mark.parametrize(
    ("degrees", "kind"),
    [
        ([1 << 63, 1 << 63, 4], "u8"),
        ([(1 << 64) - 1, 5], "u8"),
        ([1 << 62, 1 << 62, 1 << 62, 1 << 62, 4], "u8"),
        ([4, 4], "u1"),
        ([5], "u2"),
        ([1 << 31, 1 << 31], "u4"),
    ],
)
def test_degrees_whose_sum_wraps_round_are_refused(degrees: list[int], kind: str, tmp_path: Path) -> None:
    graph = written(tmp_path / "g.h5", degrees, kind)
    with pytest.raises(RunError, match=r"g\.h5.*damaged"):
        graph.out.index()


def named(path: Path, ends: list[int], text: bytes) -> Graph:
    with GraphWriter(path, vertices=len(ends), directed=True, vertex_dtype="u4", weight_dtype=None) as writer:
        rows = writer.adjacency("out")
        rows.append(np.zeros(1, np.uint32))
        rows.degrees(np.array([1] + [0] * (len(ends) - 1)))
        rows.finish()
        names = string_array([text.decode("latin-1")])
        writer.original_ids(type(names)(np.frombuffer(text, np.uint8), np.array(ends, np.uint64).view(np.int64)))
    return Graph.open(path)


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ([1, 2, 4], b"abc"),
        ([2, 1, 3], b"abc"),
        ([(1 << 63) - 1, 1 << 63, 3], b"abc"),
        ([1 << 62, (1 << 64) - (1 << 62), 3], b"abc"),
        ([1, 2, 3], b"a\xffc"),
        ([1, 2, 3], "aé".encode()),
    ],
)
def test_names_that_end_nowhere_or_are_no_text_are_refused(ends: list[int], text: bytes, tmp_path: Path) -> None:
    graph = named(tmp_path / "g.h5", ends, text)
    with pytest.raises(RunError, match=r"g\.h5.*damaged"):
        graph.original_ids()


def test_nothing_is_unpickled() -> None:
    """No module can load pickled objects: neither NumPy's loader, nor pickle itself, nor Numba's kernels."""
    names = "pickle|marshal|shelve|dill|cloudpickle|numba.core.serialize|numba.core.caching import .*(Index|Unpickl)"
    written = r"marshal import dumps$"  # which loads nothing
    loader = re.compile(
        rf"^\s*(import|from) (?!{written})({names})|allow_pickle=True|\.loads\(|_rebuild\(", re.MULTILINE
    )
    plain = re.compile(r"(json|tomllib)\.loads\(")
    assert loader.search("import pickle")
    for module in modules().values():
        assert not loader.search(plain.sub("", module.text)), module.path


def test_an_error_of_the_library_names_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> Any:
        raise OverflowError("too large")

    monkeypatch.setattr(hdf5, "_read_manifest", fail)
    with pytest.raises(PenstockError, match=rf"{path.name}.*too large"):
        Graph.open(path)
