"""Triangles: rows as sets of neighbors, turned so that each triangle is met once, and intersected.

An edge is kept in the row of its end of fewer neighbors (of the smaller id where they tie), so no row is longer than
sqrt(2 m) and a triangle is in exactly one pair of rows (Chiba and Nishizeki, SIAM J. Comput. 1985; Latapy, TCS 2008).
`arcs` counts how many edges join a kept pair, 1 or 2. Rows in the buffer: the ascending neighbors of one walk, then
(from `middles` on) those of the other; parallel edges count once, self-loops not at all. Kept rows are in the order of
falling degree. `decisions/triangle_tables.md` says why rows become tables.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.engine.kernels.host.atomics import prefetch
from penstock.engine.kernels.host.device_functions import LOW, ONE, SIX
from penstock.engine.kernels.host.jit import inline, kernel, loop_kernel
from penstock.engine.program.bindings import Author
from penstock.storage.base.thread_atomics import atomic_add

SPREAD = np.uint64(0x9E3779B97F4A7C15)
WIDTH = np.uint64(64)
PLACES = np.uint64(24)
"""Bits of a place in a row, which has at most sqrt(2 m) neighbors, below the bits of a count of neighbors."""
FILTER = np.uint64(32)
"""Bits of a row's filter for each of its neighbors, at least."""
SLOT = np.uint64(2)
"""A table has a slot for 4 bits of its filter: at most an eighth of the slots are taken."""
MOST = np.iinfo(np.int64).max
AHEAD = 8
"""Rows whose neighbors are loaded before their turn, for they may be anywhere."""


@inline
def next_neighbor(buffer, one, middle, two, end, v):  # type: ignore[no-untyped-def]
    """Merge [one, middle) and [two, end), ascending, less `v`: (neighbor, edges to it, one, two); 0 edges: no more."""
    while one < middle or two < end:
        here, ways = np.uint64(0), np.int64(0)
        if one < middle and (two >= end or buffer[one] <= buffer[two]):
            here = np.uint64(buffer[one])
        else:
            here = np.uint64(buffer[two])
        if one < middle and buffer[one] == here:
            ways += 1
            while one < middle and buffer[one] == here:
                one += 1
        if two < end and buffer[two] == here:
            ways += 1
            while two < end and buffer[two] == here:
                two += 1
        if here != v:
            return here, ways, one, two
    return np.uint64(0), np.int64(0), one, two


@inline
def is_kept(neighbors, v, w):  # type: ignore[no-untyped-def]
    """Whether the edge between v and w belongs to v's row."""
    mine, other = neighbors[v], neighbors[w]
    return mine < other or (mine == other and v < w)


@loop_kernel("count_neighbors")
def count_neighbors(first_step, end_step, first, positions, middles, buffer, neighbors):  # type: ignore[no-untyped-def]
    """neighbors[v] = distinct neighbors of every row of the block."""
    for at in range(first_step, end_step):
        v = first + np.uint64(at)
        one, two = positions[at], middles[at]
        count = np.int64(-1)
        ways = np.int64(1)
        while ways > 0:
            count += 1
            _, ways, one, two = next_neighbor(buffer, one, middles[at], two, positions[at + 1], v)
        neighbors[v] = count


@loop_kernel("count_kept")
def count_kept(first_step, end_step, first, positions, middles, buffer, neighbors, kept):  # type: ignore[no-untyped-def]
    """kept[row] = neighbors whose edges belong to the row."""
    for at in range(first_step, end_step):
        v = first + np.uint64(at)
        one, two = positions[at], middles[at]
        count = np.int64(0)
        ways = np.int64(1)
        while ways > 0:
            w, ways, one, two = next_neighbor(buffer, one, middles[at], two, positions[at + 1], v)
            if ways > 0 and is_kept(neighbors, v, w):
                count += 1
        kept[at] = count


@loop_kernel("keep_rows", grain=1024, counted=True)
def keep_rows(  # type: ignore[no-untyped-def]
    first_step, end_step, first, positions, middles, buffer, neighbors, starts, longest, targets, arcs
):
    """Write each row's kept neighbors and how many edges join them, from starts[row] on.

    In the order of falling count of neighbors, where these tie of falling id.
    """
    keys, found, ways_of = np.empty(longest, np.uint64), np.empty(longest, np.uint64), np.empty(longest, np.uint8)
    for at in range(first_step, end_step):
        v = first + np.uint64(at)
        one, two = positions[at], middles[at]
        count = 0
        ways = np.int64(1)
        while ways > 0:
            w, ways, one, two = next_neighbor(buffer, one, middles[at], two, positions[at + 1], v)
            if ways > 0 and is_kept(neighbors, v, w):
                keys[count] = np.uint64(neighbors[w]) << PLACES | np.uint64(count)
                found[count], ways_of[count] = w, ways
                count += 1
        sort_falling(keys, count)
        for number in range(count):
            place = keys[number] & ((ONE << PLACES) - ONE)
            targets[starts[at] + number] = found[place]
            arcs[starts[at] + number] = ways_of[place]


@inline
def sort_falling(keys, count):  # type: ignore[no-untyped-def]
    """Sort the first `count` keys, falling (Shell's sort, gaps near 4/9 of the one before, as Tokuda's)."""
    gap = 1
    while gap * 9 < count * 4:
        gap = gap * 9 // 4 + 1
    while gap > 0:
        for i in range(gap, count):
            key, j = keys[i], i
            while j >= gap and keys[j - gap] < key:
                keys[j] = keys[j - gap]
                j -= gap
            keys[j] = key
        gap = gap * 4 // 9


@inline
def hash_of(x):  # type: ignore[no-untyped-def]
    """Spread a vertex over 64 bits; tables use the upper ones (Knuth's multiplicative hash)."""
    return np.uint64(x) * SPREAD


@inline
def table_bits(length):  # type: ignore[no-untyped-def]
    """Logarithm of the size of the filter of a row of so many neighbors; it has a bit for 1/FILTER of a neighbor."""
    bits = SIX
    while (ONE << bits) < np.uint64(length) * FILTER:
        bits += ONE
    return bits


@inline
def fill_table(row, ways, w, bits, present, slots, slot_ways):  # type: ignore[no-untyped-def]
    """Make the table of the row of `w`: a bit for each neighbor in `present`, and the neighbor itself in `slots`.

    An empty slot holds `w`. slot_ways: how many edges join the neighbor.
    """
    filtered, placed = WIDTH - bits, WIDTH - bits + SLOT
    last = (ONE << (bits - SLOT)) - ONE
    for word in range(np.int64(ONE << (bits - SIX))):
        present[word] = 0
    for slot in range(np.int64(last + ONE)):
        slots[slot] = w
    for i in range(len(row)):
        spread = hash_of(row[i])
        bit = spread >> filtered
        present[bit >> SIX] |= ONE << (bit & LOW)
        slot = spread >> placed
        while slots[slot] != w:
            slot = (slot + ONE) & last
        slots[slot], slot_ways[slot] = row[i], ways[i]


@inline
def candidates_of(targets, start, w, bits, present, candidates):  # type: ignore[no-untyped-def]
    """Write which of targets[start:] before `w` have their bit in a row's filter: how many, and where `w` is.

    Without a branch on them: hits are too irregular to be predicted.
    """
    shift = WIDTH - bits
    at, count = np.uint64(start), np.uint64(0)
    x = np.uint64(targets[at])
    while x != w:
        bit = hash_of(x) >> shift
        candidates[count] = at
        count += present[bit >> SIX] >> (bit & LOW) & ONE
        at += ONE
        x = np.uint64(targets[at])
    return count, at


@inline
def slot_of(w, bits, slots, x):  # type: ignore[no-untyped-def]
    """The slot of `x` in the table of the row of `w`, or an empty one where it is not there."""
    last = (ONE << (bits - SLOT)) - ONE
    slot = hash_of(x) >> (WIDTH - bits + SLOT)
    while slots[slot] != x and slots[slot] != w:
        slot = (slot + ONE) & last
    return slot


@loop_kernel("count_users", grain=1024)
def count_users(first_step, end_step, ones, low, high, counts):  # type: ignore[no-untyped-def]
    """counts[w - low] += rows of `ones` in which w in [low, high) is one of several neighbors."""
    _, starts, targets, _ = ones
    for at in range(first_step, end_step):
        if starts[at + 1] - starts[at] > 1:
            for p in range(starts[at], starts[at + 1]):
                w = np.uint64(targets[p])
                if low <= w < high:
                    atomic_add(counts, w - low, np.int64(1))


@loop_kernel("list_users", grain=1024)
def list_users(first_step, end_step, ones, low, high, ends, users):  # type: ignore[no-untyped-def]
    """Write the rows that `count_users` counts, for each w before ends[w - low], which becomes where its rows begin."""
    first, starts, targets, _ = ones
    for at in range(first_step, end_step):
        if starts[at + 1] - starts[at] > 1:
            for p in range(starts[at], starts[at + 1]):
                w = np.uint64(targets[p])
                if low <= w < high:
                    place = atomic_add(ends, w - low, np.int64(-1)) - 1
                    users[place] = first + np.uint64(at)


def make_intersect(author: Author) -> Any:
    """Kernel: for every triangle v, w, x (v a row of `ones`, w a row of `others`) give each corner its message.

    ones, others: (first vertex, starts int64 (rows + 1,), targets, arcs). users: the rows of `ones` that have w, from
    begins[row of w] on. longest: neighbors of the longest row of either. each: what one stored edge counts as.

    The row of w becomes a table, in which what stands before w in each row v is looked up: there are the vertices that
    have more neighbors than w. Messages to v and w are added up on the way, those to x by its slot: so
    a message takes no atomic operation, and an edge takes two.
    """
    corner = author.calls["corner"]

    @loop_kernel(author.key, grain=64, counted=True)
    def intersect(  # type: ignore[no-untyped-def]
        first_step, end_step, ones, others, begins, users, longest, each, scalars, incoming, base
    ):
        first, starts, targets, arcs = ones
        low, other_starts, other_targets, other_arcs = others
        bits = table_bits(longest)
        size = np.int64(ONE << (bits - SLOT))
        present = np.empty(np.int64(ONE << (bits - SIX)), np.uint64)
        slots, slot_ways = np.empty(size, targets.dtype), np.empty(size, np.uint8)
        candidates = np.empty(longest + 1, np.uint64)
        gathered = np.zeros(size, incoming.dtype)
        kind = incoming.dtype
        zero = kind.type(0)
        for at in range(first_step, end_step):
            w = low + np.uint64(at)
            start, end = other_starts[at], other_starts[at + 1]
            if start == end or begins[at] == begins[at + 1]:
                continue
            bits = table_bits(end - start)
            fill_table(other_targets[start:end], other_arcs[start:end], w, bits, present, slots, slot_ways)
            for_w = zero
            for user in range(begins[at], begins[at + 1]):
                v = np.uint64(users[user])
                if user + 2 * AHEAD < begins[at + 1]:
                    far = np.uint64(users[user + 2 * AHEAD])
                    prefetch(starts, far - first)
                    prefetch(incoming, far - base)
                    prefetch(targets, np.uint64(starts[np.uint64(users[user + AHEAD]) - first]))
                count, here = candidates_of(targets, starts[v - first], w, bits, present, candidates)
                for_v, for_x = zero, kind.type(corner(scalars, np.int64(arcs[here]) * each))
                for hit in range(count):
                    i = candidates[hit]
                    slot = slot_of(w, bits, slots, targets[i])
                    if slots[slot] != w:
                        for_v += kind.type(corner(scalars, np.int64(slot_ways[slot]) * each))
                        for_w += kind.type(corner(scalars, np.int64(arcs[i]) * each))
                        gathered[slot] += for_x
                if for_v != zero:
                    atomic_add(incoming, v - base, for_v)
            if for_w != zero:
                atomic_add(incoming, w - base, for_w)
            for slot in range(np.int64(ONE << (bits - SLOT))):
                if gathered[slot] != zero:
                    atomic_add(incoming, np.uint64(slots[slot]) - base, gathered[slot])
                    gathered[slot] = zero

    return intersect


@loop_kernel("count_sides", grain=64, counted=True)
def count_sides(  # type: ignore[no-untyped-def]
    first_step, end_step, ones, others, begins, users, longest, sides, other_sides
):
    """Add 1 to each of the three edges of every triangle as `make_intersect` meets them; sides: of edges, int32.

    ones, others, begins, users, longest: as there. So sides[p] grows by the triangles of the edge to targets[p].
    """
    first, starts, targets, _ = ones
    low, other_starts, other_targets, _ = others
    bits = table_bits(longest)
    size = np.int64(ONE << (bits - SLOT))
    present = np.empty(np.int64(ONE << (bits - SIX)), np.uint64)
    slots, places, numbers = np.empty(size, targets.dtype), np.empty(size, np.int32), np.arange(longest)
    candidates, gathered = np.empty(longest + 1, np.uint64), np.zeros(longest, np.int32)
    for at in range(first_step, end_step):
        w = low + np.uint64(at)
        start, end = other_starts[at], other_starts[at + 1]
        if start == end or begins[at] == begins[at + 1]:
            continue
        bits = table_bits(end - start)
        fill_table(other_targets[start:end], numbers, w, bits, present, slots, places)
        for user in range(begins[at], begins[at + 1]):
            v = np.uint64(users[user])
            count, here = candidates_of(targets, starts[v - first], w, bits, present, candidates)
            hits = np.int32(0)
            for hit in range(count):
                slot = slot_of(w, bits, slots, targets[candidates[hit]])
                if slots[slot] != w:
                    hits += np.int32(1)
                    atomic_add(sides, candidates[hit], np.int32(1))
                    gathered[places[slot]] += np.int32(1)
            if hits:
                atomic_add(sides, here, hits)
        for i in range(end - start):
            if gathered[i]:
                atomic_add(other_sides, np.uint64(start + i), gathered[i])
                gathered[i] = 0


@kernel("drop_sides")
def drop_sides(starts, targets, sides, least):  # type: ignore[no-untyped-def]
    """Leave out edges of fewer than `least` triangles, in place; return the fewest that one that stays has."""
    at, begin, fewest = np.int64(0), starts[0], np.int64(MOST)
    for row in range(len(starts) - 1):
        end = starts[row + 1]
        for e in range(begin, end):
            if sides[e] >= least:
                targets[at] = targets[e]
                fewest = min(fewest, np.int64(sides[e]))
                at += 1
        begin, starts[row + 1] = end, at
    return fewest


@loop_kernel("sort_rows", grain=1024, counted=True)
def sort_rows(first_step, end_step, starts, targets):  # type: ignore[no-untyped-def]
    """Sort the targets of each row, ascending."""
    for row in range(first_step, end_step):
        targets[starts[row] : starts[row + 1]].sort()
