"""Every byte of a graph's files changed in turn: each time an error that names the file, or the same answer.

Owns the graphs, small and of every kind of dataset, what "the same answer" means (all that can be read from a graph),
and the changing, in a process of its own with little address space, so that a crash, a hang or a huge allocation is
found too. tests/storage/read/test_hostile_files.py changes every so many bytes; by hand, all:

    python tests/support/flips.py FOLDER [STEP [FIRST [GRAPHS]]]

where GRAPHS are numbers such as 02 (all: 012). It prints JSON: how many changes were refused, how many changed nothing,
and what went wrong.
"""

from __future__ import annotations

import faulthandler
import json
import resource
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from penstock.storage.base.errors import PenstockError
from penstock.storage.format.graph import Graph
from penstock.storage.format.writer import GraphWriter
from support.graph_files import string_array

ROOM_BYTES = 1 << 30
"""Address space that a changed file may ask for, over what the process has when it begins."""
HANG_SECONDS = 20
MASKS = (0xFF, 0x01, 0x80)
CHUNK = 128
VERTICES, EDGES = 90, 300


def numbered(folder: Path) -> Path:
    """Directed, both directions, integer weights, sparse ids: packed, bits, delta."""
    return _write(folder / "numbered.h5", np.dtype(np.uint8), {})


def named(folder: Path) -> Path:
    """Bipartite, names for ids, float weights: delta and plain."""
    return _write(folder / "named.h5", np.dtype(np.float32), {"encoding": "delta"})


def striped(folder: Path) -> Path:
    """Plain ids on two stripes."""
    stripes = [folder / "a", folder / "b"]
    for stripe in stripes:
        stripe.mkdir(exist_ok=True)
    return _write(folder / "striped.h5", None, {"encoding": "plain", "stripes": stripes})


GRAPHS = (numbered, named, striped)


def _write(path: Path, weights: np.dtype[Any] | None, options: dict[str, Any]) -> Path:
    dice = np.random.default_rng(3)
    degrees = np.bincount(dice.integers(0, VERTICES, EDGES), minlength=VERTICES)
    neighbors = np.concatenate([np.sort(dice.integers(0, VERTICES, degree)) for degree in degrees]).astype(np.uint32)
    values = None if weights is None else dice.integers(0, 200, EDGES).astype(weights)
    with (
        mock.patch("penstock.storage.format.adjacency_writer.CHUNK_EDGES", CHUNK),
        mock.patch("penstock.storage.format.adjacency_writer.CHUNK_VERTICES", CHUNK),
        GraphWriter(
            path,
            vertices=VERTICES,
            directed=True,
            vertex_dtype=np.uint32,
            weight_dtype=weights,
            provenance={"source": "flips"},
            force=True,
            **options,
        ) as writer,
    ):
        for direction in ("out", "in"):
            adjacency = writer.adjacency(direction)
            adjacency.append(neighbors, values)
            adjacency.degrees(degrees)
            adjacency.finish()
        if weights is not None and weights.kind == "f":
            writer.left = VERTICES // 2
            writer.original_ids(string_array(f"vertex {v:03}" for v in range(VERTICES)))
        else:
            writer.original_ids(np.arange(VERTICES, dtype=np.uint64) * np.uint64(2**40 // 3))
    return path


def answer(path: Path) -> bytes:
    """All that a graph says and holds, in bytes: equal for two graphs if and only if they are."""
    graph = Graph.open(path)
    original = graph.original_ids()
    parts: list[Any] = [
        (graph.vertices, graph.edges, graph.input_edges, graph.directed, graph.graph_id, graph.left),
        (graph.provenance, graph.weight_range, [str(file) for file in graph.files]),
        None if original is None else original.tolist(),
    ]
    for adjacency in (graph.out, graph.into):
        if adjacency is None:
            parts.append(None)
            continue
        parts.append((adjacency.encoding, adjacency.chunk_edges, str(adjacency.neighbor_dtype)))
        parts.append(adjacency.index().starts(0, graph.vertices + 1).tolist())
        for frames in (adjacency.neighbors, adjacency.weights):
            parts += [] if frames is None else [items.tolist() for items in frames.load()]
            parts.append(None if frames is None or frames.payload_words is None else frames.payload_words.tolist())
    return repr(parts).encode()


def changed(path: Path, file: Path, places: Iterator[int], masks: tuple[int, ...]) -> Iterator[tuple[str, str]]:
    """Change bytes of one of a graph's files; yield what came of it and, if it was wrong, what."""
    expected, whole = answer(path), file.read_bytes()
    with file.open("r+b", buffering=0) as writing:
        for place in places:
            for mask in masks:
                writing.seek(place)
                writing.write(bytes([whole[place] ^ mask]))
                faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)  # also in C, where no signal is heard
                outcome = _outcome(path, file, expected)
                faulthandler.cancel_dump_traceback_later()
                yield outcome[0], f"{file.name} byte {place} ^ {mask:#x}: {outcome[1]}"
            writing.seek(place)
            writing.write(whole[place : place + 1])
    assert answer(path) == expected


def _outcome(path: Path, file: Path, expected: bytes) -> tuple[str, str]:
    try:
        found = answer(path)
    except PenstockError as error:
        named = path.name in str(error) or file.name in str(error)
        return ("refused", "") if named else ("nameless", str(error))
    except BaseException:  # SystemExit of a library too: nothing but our own errors may come of a file
        return "crashed", traceback.format_exc()
    return ("same", "") if found == expected else ("another answer", "")


def sweep(folder: Path, step: int = 1, first: int = 0, graphs: str = "012") -> dict[str, Any]:
    """Change every `step`-th byte of all files of all graphs, in three ways each; count and list what came of it."""
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    begun = time.monotonic()
    for number in graphs:
        path = GRAPHS[int(number)](folder)
        answer(path)
        _limit()
        for file in Graph.open(path).files:
            places = iter(range(first, file.stat().st_size, step))
            masks = MASKS if step == 1 else MASKS[:1]
            for kind, what in changed(path, file, places, masks):
                counts[kind] += 1
                if kind not in ("refused", "same"):
                    wrong.append(f"{kind}: {what}")
                    print(wrong[-1], file=sys.stderr)
    return {"counts": dict(counts), "wrong": wrong[:50], "seconds": time.monotonic() - begun}


def _limit() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + ROOM_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


if __name__ == "__main__":
    folder, *numbers = sys.argv[1:]
    print(json.dumps(sweep(Path(folder), *map(int, numbers[:2]), *numbers[2:]), indent=1))
