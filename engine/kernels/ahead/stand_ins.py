"""What stands for a run whose kernels are compiled ahead: a row index, edges, scalars, and what the run calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.kernels.hot_vertices import sums_numbers
from penstock.engine.program.bindings import scalar_values
from penstock.engine.program.program import author_function, needs_rows
from penstock.engine.state.fused_iterations import FusedLimits
from penstock.engine.state.row_blocks import RowBlock
from penstock.engine.state.row_prefix_cache import RowPrefixCache
from penstock.engine.state.state import Frontier
from penstock.engine.state.unmatched_rows import UnmatchedRows
from penstock.storage.encoding.payload import BLOCK
from penstock.storage.format.index import WIDEST_SHIFT, Index, from_degrees
from penstock.transfer.values.task import TaskRecord
from penstock.transfer.values.view import Payloads, View

if TYPE_CHECKING:
    from penstock.engine.program.bindings import Author

VERTICES = 4096
LONG = 1 << 13
"""Messages of a row that no block of a GPU sorts alone."""


def row_index() -> Index:
    """An index of rows without edges."""
    return Index(np.zeros(2, np.int64), np.zeros(VERTICES + 1, np.uint32), WIDEST_SHIFT)


def long_row_index() -> Index:
    """An index of which one row is so long that a GPU sorts its messages in several steps."""
    degrees = np.zeros(VERTICES, np.int64)
    degrees[0] = LONG
    return from_degrees(VERTICES, lambda: iter((degrees,)))


def view_of(job: dict[str, Any], route: str) -> View:
    """One edge, of the job's dtypes, that has come by a route."""
    weights = None if job["weights"] is None else np.zeros(1, job["weights"])
    return View(0, 1, 0, VERTICES, np.zeros(1, job["vertices"]), weights, TaskRecord(route, "out", (0,)))


def packed_view_of() -> View:
    """Packed edges of no block, for kernels that decode them."""
    payloads = Payloads(np.zeros(1, np.int64), BLOCK)
    words, record = np.zeros(1, np.uint32), TaskRecord("filter", "out", (0,))
    return View(0, 0, 0, VERTICES, words, None, record, payloads=payloads)


def scalars_of(program: Any, author: Author) -> tuple[Any, ...]:
    """What the author's functions read besides fields."""
    facts = {"iteration": 0, "vertices": VERTICES, "due": np.inf, "settled": -np.inf}
    facts.update(dict.fromkeys(author.totals, 0.0))
    return scalar_values(program, author, facts)


def calls(kernels: Any, state: Any, program: Any, job: dict[str, Any]) -> Iterator[Callable[[], Any]]:
    """What a run of the job calls, those kernels first that it needs late; each compiles a kernel or two."""
    author, index, on_gpu, sparse = kernels.author, row_index(), job["capability"] is not None, not program.everywhere
    view, linked = view_of(job, "resident"), view_of(job, "zero-copy")
    if program.combine == "union":
        yield lambda: kernels.link_rows(view, state, index, 1, np.uint64(0), True)
        yield lambda: kernels.link_first_neighbors(view, state, index, 1)
        yield lambda: kernels.compress(state)
        return
    if job["apart"]:
        state.accumulate_apart()
    if needs_rows(program):
        yield from _row_calls(kernels, state, program, job)
        return
    scalars, pushes, pulls = scalars_of(program, author), "push" in job["directions"], "pull" in job["directions"]
    state.work[:2] = 0, 1
    listed, many = Frontier(1, 1, listed=True), Frontier(1, 1, everything=program.everywhere and not on_gpu)
    table, chunks, sizes = np.zeros(3, np.int64), np.zeros(1, np.uint8), (1, 1, 1)
    fuses = pushes and sparse and kernels.can_fuse(listed)
    limits, against = FusedLimits(1, 1, 0, 1, 1, np.inf, 0.0, 1, 0.0), (view, index) if job["both"] else None
    if fuses and not on_gpu and job["fused"]:
        yield lambda: kernels.fused_iterations(view, state, listed, index, scalars, limits, against)
        yield lambda: kernels.select(state, index, scalars, np.inf)
        return
    if job["apart"]:
        yield lambda: kernels.apply(state, many, index, scalars)
    if on_gpu and fuses:
        yield lambda: kernels.fused_iterations(view, state, listed, index, scalars, limits)
    if pushes and sparse:
        yield lambda: kernels.push(linked, state, listed, index, scalars)
    if fuses and not on_gpu and not author.early_exit:  # which mostly ends before
        yield lambda: kernels.fused_iterations(view, state, listed, index, scalars, limits, against)
    if pulls:
        pulled = packed_view_of() if job["packed"] and author.sweeps and not on_gpu else view
        yield lambda: kernels.pull(pulled, state, many, (index, index), scalars)
    if on_gpu and pulls and author.early_exit and not job["resident"]:
        heads = RowPrefixCache(1, index, np.zeros(1, job["vertices"]), (0, index.vertices))
        yield lambda: kernels.pull(linked, state, many, (index, index), scalars, 1)
        yield lambda: kernels.cache_row_prefixes(view, index, heads)
    if pulls and program.visits_once and not on_gpu:
        state.unmatched = UnmatchedRows.with_room(1 << 20, state.last - state.first, state.vertices.dtype)
        yield lambda: kernels.pull_unmatched(state, index, scalars)
    if pushes:
        yield lambda: kernels.push(view, state, many, index, scalars)
    if on_gpu and pushes and program.self_combining and not (author.has_send or job["resident"]):
        yield lambda: kernels.unmark_sent(view, state, many, index)
        yield lambda: kernels.push_resend(view, state, listed, index, scalars, (np.inf, 1), view.record)
    if pushes and job["hot_first"] and job["apart"] and sums_numbers(author):
        yield lambda: kernels.push_replicas(view, state, many, index, scalars)
    if author.has_send:
        yield lambda: kernels.send(state, many, index, scalars)
    if author.totals:
        yield lambda: kernels.reduce(state, index, scalars)
    if sparse:
        yield lambda: kernels.select(state, index, scalars, np.inf)
    if pulls and sparse and job["counts"]:
        yield lambda: kernels.count_cond(state, index, scalars, sizes, table, chunks)
    if on_gpu and author.settles and len(job["directions"]) > 1 and not job["resident"]:
        yield lambda: kernels.relax_unsettled(view, state, index, scalars)
        yield lambda: kernels.count_cond(state, index, scalars, sizes, table, chunks, function="unsettled")
    if pushes and sparse and job["counts"]:
        yield lambda: kernels.count_active(state, index, sizes, table, chunks)
    if on_gpu and sparse:
        yield lambda: kernels.mark(state, np.zeros(1, np.int64))


def _row_calls(kernels: Any, state: Any, program: Any, job: dict[str, Any]) -> Iterator[Callable[[], Any]]:
    """What a run on whole rows calls, as in `calls`."""
    on_gpu = job["capability"] is not None
    author, index, view = kernels.author, long_row_index() if on_gpu else row_index(), view_of(job, "resident")
    scalars, block, buffer = scalars_of(program, author), RowBlock(0, VERTICES, (index,)), np.zeros(1, author.message)
    whole = Frontier(VERTICES, 1, everything=True)
    if program.combine == "all":
        if on_gpu:
            yield lambda: kernels.clear_partial(state)
        yield lambda: kernels.apply_rows(state, state.arrays, block, index, scalars, buffer)
        yield lambda: kernels.collect(view, state, block, 0, index, scalars, buffer)
    else:
        yield lambda: kernels.apply(state, whole, index, scalars)
    if program.message_shape:
        yield lambda: kernels.pull(view, state, whole, (index, index), scalars)
    if author_function(program, "corner") is not None:
        rows, found = state.oriented_rows(VERTICES, 1), np.zeros(VERTICES, np.int64)
        ids = np.zeros(1, job["vertices"])
        if program.peels:
            sides = state.empty(1, np.int32)
            yield lambda: kernels.count_sides(rows, rows, sides, sides)
        else:
            yield lambda: kernels.intersect(rows, rows, 1, state, scalars)
        yield lambda: kernels.keep(block, ids, found, rows)
        yield lambda: kernels.count_neighbors(block, ids, found)
        yield lambda: kernels.copy_rows(view, block, 0, ids)
    if author.totals:
        yield lambda: kernels.reduce(state, index, scalars)
