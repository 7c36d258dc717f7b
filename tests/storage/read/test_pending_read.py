"""Payloads fetched as they are stored: every word where the sizes say, and nothing that is not sound."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from penstock.storage.base.errors import RunError
from penstock.storage.encoding import unpack
from penstock.storage.encoding.codec import LEVELS, Decoder, checksum, compress
from penstock.storage.encoding.payload import payload_words
from penstock.storage.format.graph import Adjacency, Graph
from penstock.storage.read.pending_read import PayloadTarget, SlabTarget
from penstock.storage.read.reader import Reader
from support.faults import flip_bit
from support.graph_files import CHUNK, Rows, as_version_1, forge_tables, frame_places, write_rows

ROWS = Rows(9, 20_000)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph file that no test changes."""
    return write_rows(tmp_path_factory.mktemp("targets") / "web.h5", ROWS)


def starts_of(adjacency: Adjacency, weights: bool = False) -> NDArray[np.int64]:
    words = adjacency.payload_words(weights)
    assert words is not None
    return np.concatenate([[0], np.cumsum(words)])


def store(adjacency: Adjacency, first: int, last: int, weights: bool = False) -> PayloadTarget:
    """Words for the payloads of chunks first..last-1, filled with something else."""
    starts = starts_of(adjacency, weights)
    return PayloadTarget(np.full(starts[last] - starts[first], 0xABCD, np.uint32), int(starts[first]), starts)


def decoded(target: PayloadTarget, chunk: int, items: int, kind: Any, decode: Any = unpack.unpack) -> NDArray[Any]:
    first, last = (target.starts[chunk : chunk + 2] - target.first_word).tolist()
    out = np.empty(items, kind)
    assert decode(target.words[first:last], out) != -2
    return out


@pytest.mark.parametrize("stripes", [0, 2])
@pytest.mark.parametrize(("kind", "weight"), [(np.uint32, np.uint8), (np.uint64, np.uint16), (np.uint32, None)])
def test_all_payloads_come_as_they_are_stored(tmp_path: Path, kind: Any, weight: Any, stripes: int) -> None:
    folders = [tmp_path / name for name in "ab"[:stripes]]
    for folder in folders:
        folder.mkdir()
    rows = Rows(4, 7_000, kind, weight)
    graph = Graph.open(write_rows(tmp_path / "web.h5", rows, stripes=folders))
    chunks, last = graph.out.chunks, graph.out.edges - (graph.out.chunks - 1) * CHUNK
    neighbors = store(graph.out, 0, chunks)
    weights = None if weight is None else store(graph.out, 0, chunks, weights=True)
    with Reader(graph, decode_threads=2) as reader:
        record = reader.fetch_payloads(graph.out, np.arange(chunks), neighbors, weights).result()
    assert record.chunks == chunks * (1 if weight is None else 2)
    for chunk in range(chunks):
        items = CHUNK if chunk < chunks - 1 else last
        part = slice(chunk * CHUNK, chunk * CHUNK + items)
        assert np.array_equal(decoded(neighbors, chunk, items, kind), rows.neighbors[part])
        if weights is not None:
            assert rows.weights is not None
            found = decoded(weights, chunk, items, weight, unpack.unpack_values)
            assert np.array_equal(found, rows.weights[part])


def test_a_sparse_fetch_touches_only_its_words(kept: Path) -> None:
    graph = Graph.open(kept)
    target = store(graph.out, 3, 12)
    with Reader(graph, decode_threads=2) as reader:
        reader.fetch_payloads(graph.out, np.array([3, 4, 11]), target).result()
    for chunk in (3, 4, 11):
        part = slice(chunk * CHUNK, (chunk + 1) * CHUNK)
        assert np.array_equal(decoded(target, chunk, CHUNK, np.uint32), ROWS.neighbors[part])
    between = slice(*(target.starts[[5, 11]] - target.first_word).tolist())
    assert (target.words[between] == 0xABCD).all()


def test_floating_weights_come_decoded(tmp_path: Path) -> None:
    rows = Rows(5, 5_000, weights=np.float32)
    graph = Graph.open(write_rows(tmp_path / "web.h5", rows))
    slab = SlabTarget(np.empty(3 * CHUNK, np.float32), 2 * CHUNK)
    with Reader(graph, decode_threads=2) as reader:
        reader.fetch_payloads(graph.out, np.arange(2, 5), store(graph.out, 2, 5), slab).result()
    assert rows.weights is not None
    assert np.array_equal(slab.items, rows.weights[2 * CHUNK : 5 * CHUNK])
    assert graph.out.payload_words(weights=True) is None


@pytest.mark.parametrize("kind", ["neighbors", "weights"])
def test_a_damaged_frame_is_named(tmp_path: Path, kind: str) -> None:
    path = write_rows(tmp_path / "web.h5", ROWS)
    file, offset, length = frame_places(Graph.open(path))[kind]
    flip_bit(file, offset + length - 1)
    graph = Graph.open(path)
    targets = store(graph.out, 0, graph.out.chunks), store(graph.out, 0, graph.out.chunks, weights=True)
    with Reader(graph, decode_threads=2) as reader:
        pending = reader.fetch_payloads(graph.out, np.arange(graph.out.chunks), *targets)
        with pytest.raises(RunError, match=rf"chunk 1 of out/{kind} in {file} \(offset {offset}\).*checksum"):
            pending.result()


def test_another_size_than_the_tables_is_refused(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "web.h5", ROWS)

    def change(name: str, table: NDArray[np.uint64]) -> NDArray[np.uint64]:
        if name == "out/neighbors":
            table[1, 2] -= 1
        return table

    forge_tables(path, change, 2)
    graph = Graph.open(path)
    with Reader(graph, decode_threads=1) as reader:
        pending = reader.fetch_payloads(graph.out, np.arange(3), store(graph.out, 0, 3))
        with pytest.raises(RunError, match=r"chunk 1 of out/neighbors .*words, and its chunk table says"):
            pending.result()


@pytest.mark.parametrize("word", ["items", "bits", "block", "end"])
def test_blocks_that_do_not_fit_their_payload_are_refused(kept: Path, word: str) -> None:
    """Though checksum and size fit: as a file written with bad intent would have it."""
    graph = Graph.open(kept)
    frames, target = graph.out.neighbors, store(graph.out, 1, 2)
    assert frames is not None
    with Reader(graph, decode_threads=1) as reader:
        reader.fetch_payloads(graph.out, np.array([1]), target).result()
    payload = np.zeros(payload_words(CHUNK, 4), np.uint32)
    payload[: len(target.words)] = target.words
    place = {"items": 0, "bits": 1, "block": 4 + 2 * 2, "end": 3}[word]
    payload[place] += 1 if word != "bits" else 256
    forged = compress(payload, LEVELS["packed"])
    frames.checksums[1] = checksum(forged)
    out = np.full_like(target.words, 7)
    with pytest.raises(RunError, match=r"chunk 1 of out/neighbors .*(malformed|chunk table says)"):
        frames.copy_payload(1, forged, Decoder(), out)


def refused(graph: Graph, chunks: list[int], target: PayloadTarget) -> None:
    with Reader(graph, decode_threads=1) as reader, pytest.raises(ValueError, match=r"payload|words|chunks"):
        reader.fetch_payloads(graph.out, np.array(chunks), target)


def test_words_that_do_not_fit_are_refused(kept: Path) -> None:
    graph = Graph.open(kept)
    whole = store(graph.out, 0, 3)
    words, starts = whole.words, whole.starts
    refused(graph, [0, 3], whole)
    refused(graph, [-1], whole)
    refused(graph, [40], whole)
    refused(graph, [0], PayloadTarget(words, 1, starts))
    refused(graph, [0], PayloadTarget(words.view(np.int32), 0, starts))  # type: ignore[arg-type]
    refused(graph, [0], PayloadTarget(words[::2], 0, starts))
    refused(graph, [0], PayloadTarget(words, 0, starts[:-1]))
    refused(graph, [0], PayloadTarget(words, 0, starts * 2))


@pytest.mark.parametrize("encoding", ["packed", "delta", "plain"])
def test_payloads_of_unknown_size_are_refused(tmp_path: Path, encoding: str) -> None:
    path = write_rows(tmp_path / "web.h5", ROWS, encoding=encoding)
    as_version_1(path)
    graph = Graph.open(path)
    refused(graph, [0], PayloadTarget(np.empty(9, np.uint32), 0, np.zeros(graph.out.chunks + 1, np.int64)))
