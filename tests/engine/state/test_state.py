"""State: bitmaps, and the bytes announced beforehand."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from penstock.engine.kernels.reference.vertex import ReferenceKernels, marked
from penstock.engine.program.program import Field, Program
from penstock.engine.programs.bfs import BFS, BFSLevels
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.sssp import SSSP
from penstock.engine.state import state as state_module
from penstock.engine.state.state import ADDED, Bitmap, State, fill_ranges, state_bytes

KIND = np.dtype(np.uint32)


def _state(program: Program, first: int = 0, last: int = 100) -> State:
    return State(program, ReferenceKernels(program, KIND, weighted=False).author, first, last, KIND)


def test_a_vector_field_has_a_row_a_vertex() -> None:
    class Factors(Program):
        factors = Field(np.float32, fill=0.5, shape=(8,))

        def edge(factors):
            return factors[0]

        def vertex(factors):
            return factors

    state = _state(Factors())
    assert state.fields["factors"].shape == (100, 8)
    assert state_bytes(Factors(), 1 << 20, KIND, apart=False) > 32 << 20


def test_bits_are_marked_with_their_summary() -> None:
    bitmap = Bitmap.empty(10_000)
    bitmap.add(np.array([0, 63, 64, 9_999]))
    assert marked(bitmap) == [0, 63, 64, 9_999]
    bitmap.clear()
    assert marked(bitmap) == []


@pytest.mark.parametrize("share", [1.0, 0.3, 0.04, 0.001])
@pytest.mark.parametrize("dtype", [np.int64, np.uint32])
def test_bits_are_the_same_however_dense_and_in_whatever_order(share: float, dtype: Any) -> None:
    random = np.random.default_rng(3)
    count = 3 * ADDED + 5
    chosen = np.flatnonzero(random.random(count) < share).astype(dtype)
    expected, rising, mixed, masked, asked = (Bitmap.empty(count) for _ in range(5))
    for position in chosen.tolist():
        expected.words[position >> 6] |= np.uint64(1 << (position & 63))
        expected.summary[position >> 12] |= np.uint64(1 << (position >> 6 & 63))
    rising.add(chosen)
    for part in np.array_split(random.permutation(chosen), 3):
        mixed.add(part)
    mask = np.zeros(count, np.bool_)
    mask[chosen] = True
    masked.add(mask)
    asked.add_where(lambda first, last: mask[first:last], count)
    for bitmap in (rising, mixed, masked, asked):
        assert np.array_equal(bitmap.words, expected.words)
        assert np.array_equal(bitmap.summary, expected.summary)


@pytest.mark.parametrize("program", [BFS(source=0), BFSLevels(source=0), SSSP(source=0), PageRank()])
@pytest.mark.parametrize("apart", [True, False])
def test_the_bytes_announced_are_the_bytes_taken(program: Program, apart: bool) -> None:
    vertices = 200_000
    state = _state(program, 0, vertices)
    if apart:
        state.accumulate_apart()
    arrays = [*state.arrays, state.sent, state.vertices, state.work, state.partial]
    if not program.everywhere:  # else nothing is marked
        marks = {id(one): one for one in (state.pending, state.active, state.touched)}.values()
        arrays += [state.lists, *(array for one in marks for array in (one.words, one.summary))]
    arrays += [] if state.incoming is None or program.accumulator else [state.incoming]
    taken = sum(array.nbytes for array in arrays)
    announced = state_bytes(program, vertices, KIND, apart=apart)
    assert taken <= announced <= taken * 1.05


def test_fields_are_filled_by_several_threads_as_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_module, "FILLED", 16)
    author = ReferenceKernels(SSSP(source=0), KIND, weighted=False).author
    one, several = (State(SSSP(source=0), author, 0, 100, KIND, fill=partial(fill_ranges, threads=n)) for n in (1, 3))
    for state in (one, several):
        state.accumulate_apart()
        assert np.array_equal(state.fields["distance"], one.fields["distance"])
        assert (state.fields["distance"] == state.fields["distance"][0]).all()
        assert np.array_equal(state.target, one.target)
        assert (state.target == state.identity).all()
