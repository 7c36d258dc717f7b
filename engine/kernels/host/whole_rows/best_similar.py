"""The K vertices of a block that are most similar to each row: counted list by list, the short lists first.

A list of x has the vertices of the block that have x as a neighbor, ascending: lists[starts[x] : starts[x + 1]], with
starts int64 (vertices + 1,). For a row of u the lists of its neighbors are
walked, and how often each vertex occurs in them is counted. A vertex that has not occurred can share the neighbors only
whose lists are left. Where K others have a larger score than that would be, no vertex is added any more: those that can
still reach the score are looked up in the lists that are left, the longest ones (prefix filtering: Chaudhuri, Ganti and
Kaushik, ICDE 2006; Bayardo, Ma and Srikant, WWW 2007).
"""

from __future__ import annotations

import numpy as np
from penstock.engine.kernels.host.jit import inline, kernel, loop_kernel
from penstock.engine.kernels.host.whole_rows.similarity import compare, score

LEFT_OUT = np.uint32(1 << 31)
"""Added to the count of a vertex that may not be taken: it is never 0, so that the vertex is not listed."""
ONCE, NONE = np.uint32(1), np.uint32(0)
LENGTHS = 65
"""Classes of lists: by the bits of their lengths."""
BUCKETS = 128
"""Classes of vertices: by how similar they seem."""
SCAN = 8
"""To look at a vertex that was counted takes about so many times as long as to count one."""
LESS = 1 - 2.0**-40
"""Times a score: below every score that rounding may have given equals of it."""
SEARCH = 16
"""A list is searched, about so many steps for each vertex, rather than walked."""


@inline
def length_class(starts, x):  # type: ignore[no-untyped-def]
    """Bits of the length of a list."""
    length, bits = starts[x + 1] - starts[x], 0
    while length > 0:
        length >>= 1
        bits += 1
    return bits


@inline
def short_first(neighbors, low, high, starts, places, turn):  # type: ignore[no-untyped-def]
    """Let `turn` have neighbors[low:high], those with short lists first."""
    places[:] = 0
    for e in range(low, high):
        places[length_class(starts, neighbors[e]) + 1] += 1
    for at in range(1, len(places)):
        places[at] += places[at - 1]
    for e in range(low, high):
        kind = length_class(starts, neighbors[e])
        turn[places[kind]] = neighbors[e]
        places[kind] += 1


@inline
def is_listed(lists, low, high, wanted):  # type: ignore[no-untyped-def]
    """Whether `wanted` is in ascending lists[low:high]."""
    end = high
    while low < high:
        middle = (low + high) >> 1
        if lists[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low < end and lists[low] == wanted


@inline
def walk_list(lists, low, high, common, met, count):  # type: ignore[no-untyped-def]
    """Count the vertices of lists[low:high]; the new ones are added to `met`, which has `count` of them."""
    for at in range(low, high):
        w = lists[at]
        before = common[w]
        if before == NONE:
            met[count] = w
            count += 1
        common[w] = np.uint32(before + ONCE)
    return count


@inline
def likeness(measure, expected, size, other_size, scale):  # type: ignore[no-untyped-def]
    """Class of a vertex that is expected to share so many neighbors: the larger its score were, the higher."""
    return np.int64(score(measure, min(expected, np.float64(other_size)), size, other_size) * scale)


@inline
def reached_score(bound, measure, k, sizes, row, counted, lists, classes):  # type: ignore[no-untyped-def]
    """A score that k vertices have at least, or one that is not above `bound`.

    sizes: of the block's vertices. row: its neighbors in their turn, how many, the first that was not walked. counted:
    common, met, number. lists: starts, lists.
    """
    turn, size, walked = row
    common, met, count = counted
    if count < k:
        return bound
    classes[:] = 0
    more, scale = np.float64(size) / walked, (BUCKETS - 1) / score(measure, size, size, size)
    for i in range(count):
        w = met[i]
        classes[likeness(measure, common[w] * more, size, sizes[w], scale)] += 1
    least, enough = BUCKETS - 1, classes[BUCKETS - 1]
    while enough < k:
        least -= 1
        enough += classes[least]
    lowest, taken = np.inf, 0
    for i in range(count):
        w = met[i]
        if likeness(measure, common[w] * more, size, sizes[w], scale) >= least:
            shared = np.int64(common[w])
            for at in range(walked, size):
                x = turn[at]
                if is_listed(lists[1], lists[0][x], lists[0][x + 1], w):
                    shared += 1
            lowest = min(lowest, LESS * score(measure, shared, size, sizes[w]))
            taken += 1
            if taken == k or lowest <= bound:
                break
    return lowest


@inline
def comes_before(measure, size, one, other, order):  # type: ignore[no-untyped-def]
    """Whether a vertex is better: the larger score, of equals the lower. Given: score, vertex, common, size of its set.

    Scores that rounding may have brought together, or taken apart, are compared exactly.
    """
    if one[0] < LESS * other[0] or other[0] < LESS * one[0]:
        return one[0] > other[0]
    found = compare(measure, size, (one[2], one[3]), (other[2], other[3]))
    if found != 0:
        return found > 0
    return one[1] < other[1] if len(order) == 0 else order[one[1]] < order[other[1]]


@inline
def member(best, place):  # type: ignore[no-untyped-def]
    """One of the best, as `comes_before` takes it."""
    scores, others, common, widths = best
    return scores[place], np.int64(others[place]), common[place], widths[place]


@inline
def insert(measure, size, one, taken, order, best):  # type: ignore[no-untyped-def]
    """Put a vertex to its place among the best, if it has one; how many there are."""
    scores, others, common, widths = best
    place = taken
    while place > 0 and comes_before(measure, size, one, member(best, place - 1), order):
        place -= 1
    if place == len(others):
        return taken
    taken = min(taken + 1, len(others))
    for late in range(taken - 1, place, -1):
        scores[late], others[late], common[late] = scores[late - 1], others[late - 1], common[late - 1]
        widths[late] = widths[late - 1]
    scores[place], others[place], common[place], widths[place] = one
    return taken


@inline
def count_row(floor, measure, k, sizes, row, counted, lists, classes):  # type: ignore[no-untyped-def]
    """Count the vertices that share a neighbor with a row, list by list, until no other one can be among the best.

    Returns how many there are, how many lists were walked, and a score that the best have at least.
    """
    turn, size, _ = row
    common, met, _ = counted
    starts, members = lists
    count, walked = 0, 0
    for at in range(size):
        low, high = starts[turn[at]], starts[turn[at] + 1]
        bound = score(measure, size - at, size, size - at)
        limit = floor
        cost = SCAN * count + k * (size - at) * SEARCH
        if floor <= bound and walked + high - low > cost and bound < score(measure, size, size, size):
            now = (turn, size, at)
            limit = max(floor, reached_score(bound, measure, k, sizes, now, (common, met, count), lists, classes))
            walked = 0
        if limit > bound:
            return count, at, limit
        count = walk_list(members, low, high, common, met, count)
        walked += high - low
    return count, size, floor


@inline
def drop_lower(limit, measure, sizes, row, counted, lists):  # type: ignore[no-untyped-def]
    """Keep the vertices that can reach the score `limit`: how many they are, and how many lists were walked for them.

    The lists that are left are walked if that is faster than to look so many vertices up in them.
    """
    turn, size, walked = row
    common, met, count = counted
    starts, members = lists
    kept, length = 0, 0
    for i in range(count):
        w = met[i]
        if score(measure, min(np.int64(common[w]) + size - walked, sizes[w]), size, sizes[w]) >= limit:
            met[kept] = w
            kept += 1
        else:
            common[w] = NONE
    for at in range(walked, size):
        length += starts[turn[at] + 1] - starts[turn[at]]
    if length > kept * (size - walked) * SEARCH // 2:
        return kept, walked
    for at in range(walked, size):
        for place in range(starts[turn[at]], starts[turn[at] + 1]):
            before = common[members[place]]
            if before != NONE:
                common[members[place]] = np.uint32(before + ONCE)
    return kept, size


@inline
def take_best(base, taken, measure, sizes, row, counted, lists, order, best):  # type: ignore[no-untyped-def]
    """Put the vertices that were counted among the best, and count no more; how many the best are.

    A vertex is looked up in the lists that are left for as long as it can be among the best.
    """
    turn, size, walked = row
    common, met, count = counted
    scores = best[0]
    last = len(scores) - 1
    least = LESS * scores[last] if taken > last else -1.0
    for i in range(count):
        w, shared, at = met[i], np.int64(common[met[i]]), walked
        common[w] = NONE
        vertex, width = np.int64(w) + base, sizes[w]
        most = min(shared + size - at, width)
        value = score(measure, most, size, width)
        while at < size and value >= least:
            one = value, vertex, most, width
            if taken > last and not comes_before(measure, size, one, member(best, last), order):
                break
            low, high = lists[0][turn[at]], lists[0][turn[at] + 1]
            shared += 1 if is_listed(lists[1], low, high, w) else 0
            at += 1
            most = min(shared + size - at, width)
            value = score(measure, most, size, width)
        if at == size and value >= least:
            taken = insert(measure, size, (value, vertex, most, width), taken, order, best)
            least = LESS * scores[last] if taken > last else -1.0
    return taken


@inline
def leave_out(common, base, w, add):  # type: ignore[no-untyped-def]
    """Mark a vertex, if it is of the block, so that it is not listed; add False: count it from 0 again."""
    place = np.int64(w) - base
    if 0 <= place < len(common):
        common[place] = LEFT_OUT if add else NONE


@loop_kernel("take_similar", grain=1, counted=True)
def take_similar(first_step, end_step, cuts, ones, block, sizes, order, asked, found):  # type: ignore[no-untyped-def]
    """Add to the best of each row those of a block.

    cuts: first rows of every step. ones: vertices, offsets, neighbors. block: its first vertex, starts, lists (of
    vertices less the first). sizes: of all vertices' sets, those of the block and of blocks before at least. order: of
    equals the lowest comes first; no items: the lowest id. asked: measure, whether neighbors are left out, how many
    vertices the block has, and neighbors the longest row. found: numbers (rows,), vertices and common neighbors
    (rows, k).
    """
    vertices, offsets, neighbors = ones
    base, starts, members = block
    lists = (starts, members)
    measure, without_neighbors, width, longest = asked
    numbers, best, best_common = found
    common, met = np.zeros(width, np.uint32), np.empty(width, members.dtype)
    turn, widths = np.empty(longest, neighbors.dtype), np.empty(best.shape[1], np.int64)
    scores = np.empty(best.shape[1], np.float64)
    places, classes = np.zeros(LENGTHS + 1, np.int64), np.zeros(BUCKETS, np.int64)
    here, k = sizes[base : base + width], best.shape[1]
    for step in range(first_step, end_step):
        for row in range(cuts[step], cuts[step + 1]):
            u, low, high = vertices[row], offsets[row], offsets[row + 1]
            size, taken = high - low, numbers[row]
            for at in range(taken):
                widths[at] = sizes[best[row, at]]
                scores[at] = score(measure, best_common[row, at], size, widths[at])
            floor = LESS * scores[k - 1] if taken == k else -1.0
            short_first(neighbors, low, high, starts, places, turn)
            leave_out(common, base, u, True)
            if without_neighbors:
                for e in range(low, high):
                    leave_out(common, base, neighbors[e], True)
            now = (common, met, 0)
            count, walked, limit = count_row(floor, measure, k, here, (turn, size, 0), now, lists, classes)
            if walked < size:
                now = (common, met, count)
                count, walked = drop_lower(limit, measure, here, (turn, size, walked), now, lists)
            leave_out(common, base, u, False)
            if without_neighbors:
                for e in range(low, high):
                    leave_out(common, base, neighbors[e], False)
            numbers[row] = take_best(
                base, taken, measure, here, (turn, size, walked), (common, met, count), lists, order,
                (scores, best[row], best_common[row], widths),
            )  # fmt: skip


@kernel("count_lists")
def count_lists(neighbors, starts):  # type: ignore[no-untyped-def]
    """starts[x + 1] += how often x is a neighbor."""
    for e in range(len(neighbors)):
        starts[neighbors[e] + 1] += 1


@kernel("fill_lists")
def fill_lists(first, offsets, neighbors, ends, lists):  # type: ignore[no-untyped-def]
    """Append each row, numbered from `first` on, to the lists of its neighbors; ends: of the lists so far."""
    for row in range(len(offsets) - 1):
        for e in range(offsets[row], offsets[row + 1]):
            x = neighbors[e]
            lists[ends[x]] = first + row
            ends[x] += 1


@kernel("shift_starts")
def shift_starts(starts):  # type: ignore[no-untyped-def]
    """Make the ends of lists, which follow each other, their starts."""
    for x in range(len(starts) - 1, 0, -1):
        starts[x] = starts[x - 1]
    starts[0] = 0


@loop_kernel("sum_lists", grain=1024)
def sum_lists(first_step, end_step, offsets, neighbors, starts, sums):  # type: ignore[no-untyped-def]
    """sums[row] = the lengths of its neighbors' lists together."""
    for row in range(first_step, end_step):
        total = 0
        for e in range(offsets[row], offsets[row + 1]):
            x = neighbors[e]
            total += starts[x + 1] - starts[x]
        sums[row] = total
