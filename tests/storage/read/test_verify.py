"""Verifying: a converted graph is whole; whatever is wrong is found, with its place, and does not hide the rest."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.convert.convert import convert
from penstock.storage.convert.sort.options import ConvertOptions
from penstock.storage.encoding.codec import checksum
from penstock.storage.encoding.string_array import STRINGS
from penstock.storage.format.graph import Graph
from penstock.storage.format.writer import GraphWriter
from penstock.storage.read import verify as verifying
from penstock.storage.read.checks import repeated_name, repeated_number
from penstock.storage.read.verify import VerifyResult, verify
from support.conversions import Given
from support.faults import break_disk, cut_short, flip_bit
from support.graph_files import frame_places, string_array, table_places

VERTICES = 60
DICE = np.random.default_rng(8)
ENDS = DICE.integers(0, VERTICES, (1500, 2)).tolist()
EDGES = [(5 * one, 5 * two, float(number % 7)) for number, (one, two) in enumerate(ENDS)]


def whole(path: Path, options: dict[str, Any], patch: pytest.MonkeyPatch) -> Path:
    """A converted graph of many chunks."""
    patch.setattr("penstock.storage.format.adjacency_writer.CHUNK_EDGES", 256)
    patch.setattr("penstock.storage.format.adjacency_writer.CHUNK_VERTICES", 32)
    convert(Given(EDGES, [700]), path, ConvertOptions(threads=1, **options))
    return path


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return whole(tmp_path / "web.h5", {"direction": "both", "renumber": True}, monkeypatch)


def found(verdict: VerifyResult) -> list[str]:
    return [f"{problem.place}: {problem.what}" for problem in verdict.problems]


@pytest.mark.parametrize(
    "options",
    [
        {"direction": "both"},
        {"undirected": True, "order": "hubs"},
        {"symmetrize": True, "renumber": True},
        {"direction": "both", "bipartite": True, "encoding": "plain"},
        {"direction": "both", "order": "degree", "dedupe": "sum"},
    ],
)
def test_a_converted_graph_is_whole(options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = verify(whole(tmp_path / "g.h5", options, monkeypatch), threads=2)
    assert found(verdict) == []
    assert verdict.whole
    assert verdict.chunks > 10


def test_all_bytes_are_read_and_told(path: Path) -> None:
    told: list[tuple[int, int]] = []
    verdict = verify(path, threads=2, progress=lambda array, done, total: told.append((done, total)))
    assert told == sorted(told)
    assert told[-1] == (verdict.bytes, verdict.bytes)
    assert len(told) > 15


def test_stripes_and_direct_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stripes = tuple(tmp_path / name for name in "ab")
    for stripe in stripes:
        stripe.mkdir()
    path = whole(tmp_path / "g.h5", {"stripes": stripes}, monkeypatch)
    assert verify(path, direct_io=True).whole
    (stripes[1] / "g.1.h5").rename(tmp_path / "elsewhere.h5")
    verdict = verify(path)
    assert "its shard g.1.h5 (stripe 1 of 2) was not found" in found(verdict)[0]
    assert verdict.count == 1


@pytest.mark.parametrize("name", ["neighbors", "weights", "degrees", "original_id"])
def test_a_flipped_bit_in_each_kind_of_dataset_is_placed(path: Path, name: str) -> None:
    file, offset, length = frame_places(Graph.open(path))[name]
    flip_bit(file, offset + length // 2, 3)
    verdict = verify(path)
    assert verdict.count == 1
    assert verdict.problems[0].what == "its checksum does not match"
    assert f"chunk 1 of {'' if name == 'original_id' else 'out/'}{name} in {file}" in verdict.problems[0].place


@pytest.mark.parametrize("number", range(5))
def test_a_flipped_bit_in_a_table_or_the_header_is_a_problem(path: Path, number: int) -> None:
    flip_bit(path, list(table_places(path).values())[number], 1)
    verdict = verify(path)
    assert verdict.count == 1
    assert "checksum" in found(verdict)[0]


def test_every_damaged_chunk_is_listed_up_to_a_bound(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph.open(path)
    assert graph.into is not None
    many = 0
    for frames in (graph.out.neighbors, graph.out.weights, graph.into.degrees):
        assert frames is not None
        for chunk in range(frames.spec.chunks):
            flip_bit(path, int(frames.offsets[chunk]) + 9)
            many += 1
    verdict = verify(path, threads=3)
    assert (verdict.count, len(verdict.problems)) == (many, many)
    assert len(set(found(verdict))) == many
    monkeypatch.setattr(verifying, "MOST_PROBLEMS", 4)
    verdict = verify(path)
    assert (verdict.count, len(verdict.problems)) == (many, 4)


def test_what_cannot_be_read_is_listed_and_the_rest_is_checked(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every third read fails, twice: merged reads are tried chunk by chunk."""
    whole_chunks = verify(path).chunks
    with monkeypatch.context() as patch:
        counting = break_disk(patch, "eio", lambda number: False)
        Graph.open(path)
    opening = counting.reads
    disk = break_disk(monkeypatch, "eio", lambda number: number >= opening and (number - opening) % 7 in (3, 4))
    verdict = verify(path, threads=1)
    assert disk.broken > 2
    assert verdict.count > 0
    assert verdict.chunks == whole_chunks
    assert any("cannot be read at offset" in problem and "chunk" in problem for problem in found(verdict))


@pytest.mark.parametrize("share", [0.01, 0.5, 0.97])
def test_a_truncated_graph_is_damaged(path: Path, share: float) -> None:
    cut_short(path, int(path.stat().st_size * share))
    verdict = verify(path)
    assert verdict.count >= 1
    assert str(path) in found(verdict)[0]


def test_what_is_no_graph_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("1 2\n")
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = 1
    for name, message in {"text": "not a Penstock graph", "other.h5": "not a Penstock graph", "no": "exist"}.items():
        with pytest.raises(InputError, match=message):
            verify(tmp_path / name)


def forged(path: Path, *, left: int | None = None, original: Any = None, **parts: Any) -> list[str]:
    """What is found in a graph of rows [1, 2], [0, 2], [0, 1] whose parts are as given: checksums all fit."""
    degrees = np.full(3, 2)
    given = {"out": [1, 2, 0, 2, 0, 1], "in": [1, 2, 0, 2, 0, 1], **parts}
    weights: NDArray[Any] | None = given.get("weights")
    with GraphWriter(
        path,
        vertices=3,
        directed=given.get("directed", True),
        vertex_dtype="u4",
        weight_dtype=None if weights is None else weights.dtype,
        provenance={"options": given.get("options", {})},
    ) as writer:
        writer.left = left
        for direction in ("out", "in") if given.get("directed", True) else ("out",):
            rows = writer.adjacency(direction)
            values = weights if direction == "out" else given.get("in_weights", weights)
            rows.append(np.array(given[direction], np.uint32), values)
            rows.degrees(degrees)
            rows.finish()
        if original is not None and original.dtype == STRINGS:
            writer.original_ids(string_array(original.tolist()))
        elif original is not None:
            writer.original_ids(original)
    return found(verify(path, threads=1))


ONES = np.ones(6, np.uint8)


@pytest.mark.parametrize(
    ("parts", "messages"),
    [
        ({}, []),
        ({"directed": False}, []),
        ({"weights": ONES, "in_weights": ONES}, []),
        ({"original": np.array([5, 9, 7], np.uint64)}, []),
        ({"original": np.array(["b", "a", "bb"], STRINGS)}, []),
        ({"out": [2, 1, 0, 2, 0, 1]}, ["chunk 0 of out/neighbors .*: edge 1 belongs before"]),
        ({"in": [1, 2, 0, 2, 1, 0]}, ["chunk 0 of in/neighbors .*: edge 5 belongs before"]),
        ({"in": [1, 2, 0, 2, 1, 1]}, ["do not hold the same edges"]),
        ({"out": [1, 2, 0, 0, 0, 1], "directed": False}, ["not every edge is in the rows of both its ends"]),
        ({"weights": ONES, "in_weights": 2 * ONES}, ["in/weights: .* from 2 to 2.* from 1 to 1", "the same edges"]),
        (
            {"out": [1, 1, 0, 2, 0, 1], "in": [1, 2, 0, 0, 1, 2], "weights": ONES[:] - np.uint8([0, 1, 0, 0, 0, 0])},
            ["out.*edge 1 belongs before", "the same edges"],
        ),
        ({"left": 1}, ["edge 3 does not lead from a source"] * 2),
        ({"original": np.array([7, 9, 7], np.uint64)}, ["original_id: the id 7 occurs twice"]),
        ({"original": np.array(["b", "a", "b"], STRINGS)}, ["original_id: the id 'b' occurs twice"]),
        ({"original": np.array([0, 3, 1], np.uint64), "options": {"order": "degree"}}, ["the id 3 is no vertex"]),
        ({"original": np.array([0, 2, 1], np.uint64), "options": {"hub_sort": True}}, []),
    ],
)
def test_what_breaks_a_promise_is_found_though_checksums_fit(
    parts: dict[str, Any], messages: list[str], tmp_path: Path
) -> None:
    problems = forged(tmp_path / "g.h5", **parts)
    assert len(problems) == len(messages), problems
    for problem, message in zip(problems, messages, strict=True):
        assert re.search(message, problem)


@pytest.mark.parametrize("weight", [np.nan, np.inf])
def test_weights_that_are_no_numbers_are_found(weight: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.storage.format.adjacency_writer.WeightStats.value", (1.0, 1.0, 1.0))
    values = np.ones(6, np.float32)
    values[3] = weight
    problems = forged(tmp_path / "g.h5", weights=values, in_weights=values)
    assert sum("a weight is not finite" in problem for problem in problems) == 2


def test_a_row_that_falls_from_one_chunk_to_the_next_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.storage.format.adjacency_writer.CHUNK_EDGES", 1)
    assert len(forged(tmp_path / "a.h5")) == 0
    problems = forged(tmp_path / "b.h5", out=[2, 1, 0, 2, 0, 1])
    assert len(problems) == 1
    assert "chunk 1 of out/neighbors" in problems[0]


def test_degrees_that_are_not_those_of_the_edges_are_found(path: Path) -> None:
    """Degrees and their checksums are exchanged for others: sums do not agree any more."""
    graph = Graph.open(path)
    assert graph.out.degrees is not None
    assert graph.into is not None
    assert graph.into.degrees is not None
    with h5py.File(path, "r+") as file:
        header = json.loads(bytes(file["penstock_header"][()]))
        header["edges"] -= 1
        for spec in header["arrays"]:
            spec["items"] -= spec["path"].endswith(("neighbors", "weights"))
        text = json.dumps(header).encode()
        del file["penstock_header"]
        file.create_dataset("penstock_header", data=np.bytes_(text))
        file.attrs["penstock_header_checksum"] = np.uint64(checksum(text))
    problems = found(verify(path))
    assert len([problem for problem in problems if "degrees sum up to" in problem]) == 2


def test_verifying_changes_nothing_and_leaves_nothing_open(path: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(path, tmp_path / "copy.h5"))
    assert verify(path).whole
    assert path.read_bytes() == copy.read_bytes()


def test_names_are_told_apart_by_their_bytes_where_hashes_are_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.storage.read.checks._hash_names", lambda text, ends, first, out: out.fill(1))
    assert repeated_name(string_array(["a", "b", "ab"]), 0, 3) is None
    assert repeated_name(string_array(["a", "b", "ab", "b"]), 0, 4) == "b"
    assert repeated_number(np.array([3, 1, 2])) is None
    assert repeated_number(np.array([3, 1, 3])) == 3
    assert repeated_number(np.array([1, 2, 2])) == 2
