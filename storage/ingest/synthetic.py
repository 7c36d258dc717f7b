"""Owns graphs made from a seed: R-MAT, uniform, grid and a web-like copying model, as sources.

Every edge is a pure function of (seed, edge number), after Salmon et al.'s counter-based random numbers: threads and
batch sizes cannot change a graph, and any part of it can be made alone. R-MAT is Chakrabarti, Zhan and Faloutsos', with
the Graph500's parameters and its scrambled vertex numbers, four levels drawn at once from Walker's alias table. The web
model is Kumar et al.'s copying model with its copies resolved by recomputation, as Sanders and Schulz do. Refuses to
remove duplicates or self-loops: conversion does that, when asked.

The arithmetic is compiled, without state or checks: several kernels run at once, each without Python's lock. Random
numbers are splitmix64 (Steele, Lea and Flood) read at any position. All arithmetic is in uint64; Numba would turn a mix
with signed integers into floats.
"""

from collections.abc import Callable, Generator
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.budget import cores
from penstock.storage.base.errors import InputError
from penstock.storage.base.jit import jit
from penstock.storage.base.threads import pooled_map
from penstock.storage.ingest.core.edges import EdgeBatch

BATCH_EDGES = 1 << 18
"""Edges made at a time by each thread: 2 MiB of 32-bit pairs."""

Ends = tuple[NDArray[Any], NDArray[Any]]
Fill = Callable[[int, Ends], None]
"""fill(first edge number, (sources, targets)) writes consecutive edges into two arrays."""

_WORD = (1 << 64) - 1


class SyntheticSource:
    """Edges of a generated graph in bounded batches; the same edges for any number of threads.

    Attributes:
        name: what made it, with its parameters.
        known_vertices: vertices, numbered from 0; isolated ones exist.
        edges: edges it will give.
        undirected: True if every edge stands for both directions.
        threads: how many make edges at once; every core unless set otherwise.
        weight_range: smallest and largest weight (both possible), or None.
        total_bytes, bytes_done: size as pairs of ids plus weights, and how much was given so far.
    """

    def __init__(
        self,
        name: str,
        size: tuple[int, int],
        fill: Fill,
        *,
        seed: int,
        weights: tuple[int, int] | None = None,
        undirected: bool = False,
    ) -> None:
        self.name = name
        self.known_vertices, self.edges = size
        self.undirected = undirected
        self.weight_range = weights
        self._fill = fill
        self._weight_key = np.uint64(_key(seed, 99))
        self.vertex_dtype = np.dtype(np.uint32 if self.known_vertices <= 1 << 32 else np.uint64)
        self.weight_dtype = None if weights is None else np.min_scalar_type(weights[1])
        edge_bytes = 2 * self.vertex_dtype.itemsize
        self._edge_bytes = edge_bytes + (self.weight_dtype.itemsize if self.weight_dtype else 0)
        self.total_bytes = self.edges * self._edge_bytes
        self.bytes_done = 0
        self.threads = cores()

    def batches(self) -> Generator[EdgeBatch]:
        """Yield all edges in order of their numbers, about threads + 2 batches in memory."""
        self.bytes_done = 0
        firsts = range(0, self.edges, BATCH_EDGES)
        with closing(pooled_map(self.batch, firsts, self.threads, "generate")) as batches:
            for batch in batches:
                self.bytes_done += len(batch) * self._edge_bytes
                yield batch

    def batch(self, first: int, count: int = BATCH_EDGES) -> EdgeBatch:
        """Make edges first .. first + count - 1 (fewer at the end)."""
        count = max(0, min(count, self.edges - first))
        sources = np.empty(count, self.vertex_dtype)
        targets = np.empty(count, self.vertex_dtype)
        self._fill(first, (sources, targets))
        weights = None
        if self.weight_range is not None:
            low, high = self.weight_range
            weights = np.empty(count, self.weight_dtype)
            span = np.uint64(high - low + 1)
            fill_weights(np.uint64(first), weights, np.uint64(low), span, self._weight_key)
        return EdgeBatch(sources, targets, weights)


def rmat(
    scale: int,
    edge_factor: int = 16,
    seed: int = 1,
    *,
    weights: tuple[int, int] | None = None,
    quadrants: tuple[float, float, float] = (0.57, 0.19, 0.19),
    scramble: bool = True,
) -> SyntheticSource:
    """R-MAT: 2^scale vertices, edge_factor * 2^scale directed edges, duplicates and loops kept.

    ``quadrants`` are Graph500's a, b, c (d is the rest). ``scramble`` renumbers the vertices by a
    seeded bijection, as Graph500 asks, so that degree says nothing about the number.

    Raises:
        InputError: scale outside 0..40, a negative size, probabilities that are none.
    """
    _require(0 <= scale <= 40, "scale", scale, "0 to 40")
    _require(edge_factor >= 0, "edge factor", edge_factor, "0 or more")
    a, b, c = quadrants
    _require(min(a, b, c, 1 - a - b - c) >= -1e-12, "quadrants", quadrants, "a + b + c <= 1")
    table = _alias_table(a, b, c)
    keys = np.array([_key(seed, stream) for stream in range(5)], np.uint64)

    def fill(first: int, ends: Ends) -> None:
        fill_rmat(np.uint64(first), ends, scale, table, keys, scramble)

    name = f"rmat scale={scale} edge_factor={edge_factor} seed={seed}" + _note(weights, scramble)
    return SyntheticSource(name, (1 << scale, edge_factor << scale), fill, seed=seed, weights=_range(weights))


def uniform(vertices: int, edges: int, seed: int = 1, *, weights: tuple[int, int] | None = None) -> SyntheticSource:
    """Edges whose two ends are drawn evenly and independently (Erdos-Renyi with repetition)."""
    _require(0 <= vertices <= 1 << 40, "vertices", vertices, "0 to 2^40")
    _require(edges >= 0, "edges", edges, "0 or more")
    _require(vertices > 0 or edges == 0, "vertices", vertices, "at least 1 to have edges")
    key = np.uint64(_key(seed, 10))

    def fill(first: int, ends: Ends) -> None:
        fill_uniform(np.uint64(first), ends, np.uint64(vertices), key)

    name = f"uniform vertices={vertices} edges={edges} seed={seed}" + _note(weights)
    return SyntheticSource(name, (vertices, edges), fill, seed=seed, weights=_range(weights))


def grid(rows: int, columns: int, seed: int = 1, *, weights: tuple[int, int] | None = (1, 255)) -> SyntheticSource:
    """Road-like: vertex r * columns + c is joined to its right and lower neighbor; undirected.

    Low degree, long diameter and, by default, weights 1..255.
    """
    _require(rows >= 0, "rows", rows, "0 or more")
    _require(columns >= 0, "columns", columns, "0 or more")
    _require(rows * columns <= 1 << 40, "rows * columns", rows * columns, "up to 2^40")
    across = rows * max(0, columns - 1)
    edges = across + max(0, rows - 1) * columns

    def fill(first: int, ends: Ends) -> None:
        fill_grid(first, ends, columns, across)

    name = f"grid rows={rows} columns={columns} seed={seed}" + _note(weights)
    return SyntheticSource(name, (rows * columns, edges), fill, seed=seed, weights=_range(weights), undirected=True)


def web(
    vertices: int, edge_factor: int = 16, seed: int = 1, *, weights: tuple[int, int] | None = None
) -> SyntheticSource:
    """Web-like: pages copy links of nearby earlier pages; else they link near, seldom far.

    Skewed in- and out-degrees, pages without links, similar lists on neighboring pages (so it
    compresses well), mean out-degree ``edge_factor``.
    """
    _require(0 <= vertices <= 1 << 40, "vertices", vertices, "0 to 2^40")
    _require(edge_factor >= 0, "edge factor", edge_factor, "0 or more")
    key = np.uint64(_key(seed, 20))
    profile = _degree_profile(edge_factor)

    def fill(first: int, ends: Ends) -> None:
        fill_web(first, ends, vertices, edge_factor, profile, key)

    name = f"web vertices={vertices} edge_factor={edge_factor} seed={seed}" + _note(weights)
    size = (vertices, vertices * edge_factor)
    return SyntheticSource(name, size, fill, seed=seed, weights=_range(weights))


def _require(allowed: bool, what: str, value: object, way_out: str) -> None:
    if not allowed:
        raise InputError(f"{what} {value} cannot be generated; give {way_out}")


def _range(weights: tuple[int, int] | None) -> tuple[int, int] | None:
    if weights is not None:
        low, high = weights
        _require(0 <= low <= high < 1 << 32, "weights", f"{low}..{high}", "for instance 1..63")
    return weights


def _note(weights: tuple[int, int] | None, scramble: bool = True) -> str:
    weighed = "" if weights is None else f" weights={weights[0]}..{weights[1]}"
    return weighed + ("" if scramble else " scramble=no")


def _key(seed: int, stream: int) -> int:
    """One 64-bit word for each (seed, stream), by splitmix64's finish applied twice."""
    word = (seed & _WORD) ^ (seed >> 64 & _WORD)
    for step in (stream + 1, 0x5851F42D4C957F2D):
        word = (word + step * 0x9E3779B97F4A7C15) & _WORD
        word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _WORD
        word ^= word >> 31
    return word


def _alias_table(a: float, b: float, c: float) -> NDArray[np.uint32]:
    """Walker's alias table of four R-MAT levels at once, uint32[256].

    Entry i: threshold (24 bits) << 8 | alias. Outcome: source bits << 4 | target bits.
    """
    quadrants = np.array([[a, b], [c, 1 - a - b - c]])
    chance = np.ones((1, 1))
    for _ in range(4):
        chance = np.kron(chance, quadrants)
    share = np.maximum(chance.ravel(), 0) * 256
    small = [i for i in range(256) if share[i] < 1]
    large = [i for i in range(256) if share[i] >= 1]
    alias = np.arange(256, dtype=np.uint32)
    threshold = np.full(256, (1 << 24) - 1, np.uint32)
    while small and large:
        low, high = small.pop(), large[-1]
        threshold[low] = min(int(share[low] * (1 << 24)), (1 << 24) - 1)
        alias[low] = high
        share[high] -= 1 - share[low]
        if share[high] < 1:
            small.append(large.pop())
    return threshold << np.uint32(8) | alias


def _degree_profile(edge_factor: int) -> NDArray[np.int64]:
    """Prefix sums int64[65] of the out-degrees in a block of 64 pages: skewed, some of them zero."""
    wish = np.arange(1, PAGES + 1, dtype=np.float64) ** -0.75
    wish[-PAGES // 8 :] = 0
    ends = np.round(np.cumsum(wish) / wish.sum() * PAGES * edge_factor)
    return np.concatenate([[0], ends]).astype(np.int64)


PAGES = 64
"""Web vertices whose out-degrees add up to the same number, so that edge numbers find vertices."""

_0, _1, _4, _8, _15 = (np.uint64(number) for number in (0, 1, 4, 8, 15))
_27, _30, _31, _32 = (np.uint64(number) for number in (27, 30, 31, 32))
_BYTE = np.uint64(0xFF)
_LOW = np.uint64(0xFFFFFFFF)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_COPIED = np.uint64(180)
"""Out of 256 links of a web page, how many are copied."""
_SITE_BITS = np.uint64(10)
_SITE = _1 << _SITE_BITS
"""Consecutive pages that mostly link, and copy links from, one another."""
CHAIN = 48
"""How many pages a web link may have been copied through (0.7^48 of them would be cut short)."""


@jit
def draw(key: Any, counter: Any) -> Any:
    """Word number ``counter`` (uint64) of the stream ``key`` (uint64), a uniform uint64."""
    word = key + (counter + _1) * _GOLDEN
    word = (word ^ (word >> _30)) * _MIX_1
    word = (word ^ (word >> _27)) * _MIX_2
    return word ^ (word >> _31)


@jit
def below(word: Any, bound: Any) -> Any:
    """Scale a random word to 0 .. bound - 1 (uint64): the upper half of the 128-bit product."""
    low, high = word & _LOW, word >> _32
    bound_low, bound_high = bound & _LOW, bound >> _32
    middle = high * bound_low + (low * bound_low >> _32)
    carried = low * bound_high + (middle & _LOW)
    return high * bound_high + (middle >> _32) + (carried >> _32)


@jit
def scrambled(vertex: Any, scale: Any, keys: NDArray[np.uint64]) -> Any:
    """A bijection of 0 .. 2^scale - 1 chosen by keys uint64[5] (the first is not used)."""
    mask = (_1 << scale) - _1
    half = (scale >> _1) + _1
    word = (vertex + keys[1]) & mask
    word = (word * (keys[2] | _1)) & mask
    word ^= word >> half
    word = (word * (keys[3] | _1)) & mask
    word ^= word >> half
    return (word * (keys[4] | _1)) & mask


@jit
def fill_weights(first: Any, weights: NDArray[Any], low: Any, span: Any, key: Any) -> None:
    """Weights low .. low + span - 1 of edges ``first`` .., any integer dtype of shape (m,)."""
    for i in range(weights.size):
        weights[i] = low + below(draw(key, first + np.uint64(i)), span)


@jit
def fill_rmat(
    first: Any,
    ends: tuple[NDArray[Any], NDArray[Any]],
    scale: int,
    table: NDArray[np.uint32],
    keys: NDArray[np.uint64],
    scramble: bool,
) -> None:
    """R-MAT edges: each random word walks eight levels by two draws from the alias table.

    Levels beyond ``scale`` are drawn and dropped.
    """
    sources, targets = ends
    words = (scale + 7) // 8
    bits = np.uint64(scale)
    excess = np.uint64(8 * words) - bits
    step = np.uint64(words)
    for i in range(sources.size):
        counter = (first + np.uint64(i)) * step
        source, target = _0, _0
        for _ in range(words):
            word = draw(keys[0], counter)
            counter += _1
            for half in (word & _LOW, word >> _32):
                slot = half & _BYTE
                entry = np.uint64(table[slot])
                outcome = slot if (half >> _8) < (entry >> _8) else entry & _BYTE
                source = (source << _4) | (outcome >> _4)
                target = (target << _4) | (outcome & _15)
        source >>= excess
        target >>= excess
        if scramble:
            source = scrambled(source, bits, keys)
            target = scrambled(target, bits, keys)
        sources[i] = source
        targets[i] = target


@jit
def fill_uniform(first: Any, ends: tuple[NDArray[Any], NDArray[Any]], vertices: Any, key: Any) -> None:
    """Both ends of each edge drawn evenly from 0 .. vertices - 1."""
    sources, targets = ends
    for i in range(sources.size):
        counter = (first + np.uint64(i)) << _1
        sources[i] = below(draw(key, counter), vertices)
        targets[i] = below(draw(key, counter | _1), vertices)


@jit
def fill_grid(first: int, ends: tuple[NDArray[Any], NDArray[Any]], columns: int, across: int) -> None:
    """Edges of a grid: the ``across`` ones from left to right row by row, then those downward."""
    sources, targets = ends
    for i in range(sources.size):
        edge = first + i
        if edge < across:
            vertex = edge // (columns - 1) * columns + edge % (columns - 1)
            sources[i] = vertex
            targets[i] = vertex + 1
        else:
            sources[i] = edge - across
            targets[i] = edge - across + columns


@jit
def fill_web(
    first: int,
    ends: tuple[NDArray[Any], NDArray[Any]],
    vertices: int,
    edge_factor: int,
    profile: NDArray[np.int64],
    key: Any,
) -> None:
    """Links of web pages in order of their blocks of 64 pages.

    ``profile`` int64[65] holds the prefix sums of the out-degrees in a block; a word of the block
    decides which page has which. The last, partial block gives every page ``edge_factor`` links.
    """
    sources, targets = ends
    whole = vertices // PAGES * PAGES
    chain = np.empty(CHAIN, np.uint64)
    known = 0
    for i in range(sources.size):
        edge = first + i
        page = edge // edge_factor
        link = edge % edge_factor
        if page < whole:
            block = page // PAGES
            link = edge - block * PAGES * edge_factor
            rank = int(np.searchsorted(profile, link, side="right")) - 1
            link -= int(profile[rank])
            turn = draw(key, np.uint64(block))
            stride = int(turn >> _32 & _31) * 2 + 1
            page = block * PAGES + (rank * stride + int(turn & _31)) % PAGES
        if known == 0 or chain[0] != np.uint64(page):
            chain[0] = page
            known = 1
        link_key = key ^ (np.uint64(link) + _1) * _MIX_1
        known, writer = _writer(chain, known, link_key, key)
        sources[i] = page
        targets[i] = _written(chain[writer], draw(link_key, ~chain[writer]), np.uint64(vertices))


@jit
def _writer(chain: NDArray[np.uint64], known: int, link_key: Any, key: Any) -> tuple[int, int]:
    """Follow the pages that copied from one another back to the one that wrote the link itself.

    ``chain`` uint64[CHAIN] lists the page, whom it copies, whom that one copies ...; its first
    ``known`` entries are filled, and more as they are needed. Returns (known, index of the writer).
    """
    at = 0
    while chain[at] > _0 and at + 1 < CHAIN:
        if (draw(link_key, chain[at]) & _BYTE) >= _COPIED:
            break
        if at + 1 == known:
            chain[known] = _copied_from(chain[at], draw(key ^ _MIX_2, chain[at]))
            known += 1
        at += 1
    return known, at


@jit
def _copied_from(page: Any, word: Any) -> Any:
    """The earlier page that ``page`` (above 0) takes links from: mostly one of the same site."""
    reach = page if (word & _15) == _0 else min(page, _SITE)
    return page - _1 - below(draw(word, _0), reach)


@jit
def _written(page: Any, word: Any, vertices: Any) -> Any:
    """A page's own link: to its site or, seldom, anywhere; to a front page as often as not.

    Front pages are the numbers that end in k zero bits; a link rounds down to one with probability
    about 2^(-k/4), so that in-degrees fall as a power law of exponent 2.3.
    """
    site = page - page % _SITE
    near = (word & _15) != _0
    target = below(draw(word, _0), _SITE if near else vertices) + (site if near else _0)
    zeros = (word >> _4) & np.uint64(3)
    coins = word >> _8
    while coins & _1:
        zeros += _4
        coins >>= _1
    zeros = min(zeros, _SITE_BITS if near else _31)
    target = target >> zeros << zeros
    return target if target < vertices else page
