"""Owns the arithmetic of generated graphs: compiled kernels from (key, edge number) to edges.

Random numbers are splitmix64 (Steele, Lea and Flood) read at any position. Refuses state, checks
and threads: callers run several kernels at once, each without Python's lock. All arithmetic is in
uint64; Numba would turn a mix with signed integers into floats.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.jit import jit

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
