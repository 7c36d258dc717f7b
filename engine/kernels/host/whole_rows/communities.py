"""Loops of one level of Louvain or Leiden over rows that are all in memory.

`programs/local_moves.py` and `programs/leiden.py` define the answer. Rows are a tuple: offsets int64 (vertices + 1,),
neighbors, and the whole amounts of edges int64; no amounts: each is 1. `scratch` has for every thread a sum for each
group, all 0, and room for the groups of the longest row; threads take turns at `following`, whose first item is 0.
"""

from __future__ import annotations

import numpy as np
from penstock.engine.kernels.host.jit import inline, kernel, loop_kernel
from penstock.storage.base.thread_atomics import atomic_add

STEP = 64
"""Rows that a thread takes at once."""


@inline
def amount_of(amounts, e):  # type: ignore[no-untyped-def]
    """The amount of an edge."""
    return amounts[e] if len(amounts) else np.int64(1)


@inline
def expected(rate, values, v, other, is_own):  # type: ignore[no-untyped-def]
    """What the weight between v and a group must exceed; is_own: v is in it, and does not count."""
    strength, total, balance, balances = values
    found = np.int64(rate * strength[v] * (total[other] - (strength[v] if is_own else np.int64(0))))
    if len(balances):
        found -= np.int64(rate * balance[v] * (balances[other] - (balance[v] if is_own else np.int64(0))))
    return found


@loop_kernel("sum_rows", grain=4096)
def sum_rows(first_step, end_step, rows, loop, strength, loops):  # type: ignore[no-untyped-def]
    """Strengths of vertices, and what of these are self-loops, which count `loop` times."""
    offsets, neighbors, amounts = rows
    for v in range(first_step, end_step):
        found, own = np.int64(0), np.int64(0)
        for e in range(offsets[v], offsets[v + 1]):
            amount = amount_of(amounts, e)
            if neighbors[e] == v:
                own += amount * loop
            else:
                found += amount
        strength[v], loops[v] = found + own, own


@loop_kernel("best_groups", grain=1)
def best_groups(  # type: ignore[no-untyped-def]
    first_step, end_step, following, listed, rows, values, gains, scratch, found
):
    """found[i]: the group of largest gain for the vertex listed[i], of several the least."""
    offsets, neighbors, amounts = rows
    group, numbers = values
    fine, rate = gains
    sums, seen = scratch
    for slot in range(first_step, end_step):
        first = atomic_add(following, np.uint64(0), np.int64(STEP))
        while first < len(listed):
            for at in range(first, min(first + STEP, len(listed))):
                v = listed[at]
                own, count = np.int64(group[v]), 0
                for e in range(offsets[v], offsets[v + 1]):
                    u = neighbors[e]
                    other, amount = np.int64(group[u]), amount_of(amounts, e)
                    if u != v and amount > 0:
                        if sums[slot, other] == 0:
                            seen[slot, count] = other
                            count += 1
                        sums[slot, other] += amount
                best, gain = own, np.int64(0)
                stay = (sums[slot, own] << fine) - expected(rate, numbers, v, own, True)
                for number in range(count):
                    other = np.int64(seen[slot, number])
                    if other != own:
                        value = (sums[slot, other] << fine) - expected(rate, numbers, v, other, False)
                        if best == own or value > gain or (value == gain and other < best):
                            best, gain = other, value
                    sums[slot, other] = 0
                found[at] = own if gain <= stay else best
            first = atomic_add(following, np.uint64(0), np.int64(STEP))


@kernel("move_listed")
def move_listed(listed, found, group, before, strength, total, due):  # type: ignore[no-untyped-def]
    """Let the listed vertices join the groups found; they are put first in `listed`: return how many moved."""
    moved = 0
    for at in range(len(listed)):
        v = listed[at]
        due[v] = 0
        before[v] = group[v]
        if found[at] != group[v]:
            total[group[v]] -= strength[v]
            total[found[at]] += strength[v]
            group[v] = found[at]
            listed[moved] = v
            moved += 1
    return moved


@loop_kernel("mark_neighbors", grain=1)
def mark_neighbors(  # type: ignore[no-untyped-def]
    first_step, end_step, following, moved, rows, group, before, due, changes
):
    """Neighbors by weight of vertices that moved are due; changes[slot]: what amounts within groups have grown by.

    Where both ends of an edge moved, both count it, else the one that moved twice.
    """
    offsets, neighbors, amounts = rows
    for slot in range(first_step, end_step):
        change = np.int64(0)
        first = atomic_add(following, np.uint64(0), np.int64(STEP))
        while first < len(moved):
            for at in range(first, min(first + STEP, len(moved))):
                v = moved[at]
                for e in range(offsets[v], offsets[v + 1]):
                    u, amount = neighbors[e], amount_of(amounts, e)
                    if u != v:
                        times = np.int64(group[v] == group[u]) - np.int64(before[v] == before[u])
                        change += times * amount * (2 if before[u] == group[u] else 1)
                    if amount > 0:
                        due[u] = 1
            first = atomic_add(following, np.uint64(0), np.int64(STEP))
        changes[slot] = change


@loop_kernel("best_parts", grain=1)
def best_parts(  # type: ignore[no-untyped-def]
    first_step, end_step, following, listed, rows, values, gains, scratch, found
):
    """found[i]: the joinable part of largest gain within its group for the vertex listed[i], of several the least."""
    offsets, neighbors, amounts = rows
    part, group, opened, numbers = values
    fine, rate = gains
    sums, seen = scratch
    for slot in range(first_step, end_step):
        first = atomic_add(following, np.uint64(0), np.int64(STEP))
        while first < len(listed):
            for at in range(first, min(first + STEP, len(listed))):
                v = listed[at]
                count = 0
                for e in range(offsets[v], offsets[v + 1]):
                    u = neighbors[e]
                    amount = amount_of(amounts, e)
                    if u != v and amount > 0 and group[u] == group[v]:
                        other = np.int64(part[u])
                        if opened[other]:
                            if sums[slot, other] == 0:
                                seen[slot, count] = other
                                count += 1
                            sums[slot, other] += amount
                best, gain = np.int64(part[v]), np.int64(0)
                for number in range(count):
                    other = np.int64(seen[slot, number])
                    value = (sums[slot, other] << fine) - expected(rate, numbers, v, other, False)
                    if value > gain or (value == gain and gain > 0 and other < best):
                        best, gain = other, value
                    sums[slot, other] = 0
                found[at] = best
            first = atomic_add(following, np.uint64(0), np.int64(STEP))


@kernel("list_members")
def list_members(group, groups, offsets, begins, members, bounds):  # type: ignore[no-untyped-def]
    """Members of every group, those of group g from begins[g] on; bounds: the lengths of their rows, and 1, added up.

    Vertices of group `groups` and above are in none; `begins` and `bounds`, int64 (groups + 1,), are 0 before.
    """
    for v in range(len(group)):
        if group[v] < groups:
            begins[group[v] + 1] += 1
            bounds[group[v] + 1] += offsets[v + 1] - offsets[v]
    for g in range(groups):
        begins[g + 1] += begins[g]
        bounds[g + 1] += bounds[g] + 1
    for v in range(len(group) - 1, -1, -1):
        if group[v] < groups:
            begins[group[v] + 1] -= 1
            members[begins[group[v] + 1]] = v
    for g in range(groups):
        begins[g] = begins[g + 1]
    begins[groups] = len(members)


@loop_kernel("contract_rows", grain=1, counted=True)
def contract_rows(  # type: ignore[no-untyped-def]
    first_step, end_step, following, rows, loop, grouping, scratch, made, counts
):
    """The rows of groups, from `bounds` on, as long as `counts` says. Edges within a group are its self-loop."""
    offsets, neighbors, amounts = rows
    group, begins, members, bounds = grouping
    sums, seen = scratch
    ends, weights = made
    groups = len(counts)
    for slot in range(first_step, end_step):
        first = atomic_add(following, np.uint64(0), np.int64(STEP))
        while first < groups:
            for g in range(first, min(first + STEP, groups)):
                count, loops = 0, np.int64(0)
                for at in range(begins[g], begins[g + 1]):
                    v = members[at]
                    for e in range(offsets[v], offsets[v + 1]):
                        u = neighbors[e]
                        other, amount = np.int64(group[u]), amount_of(amounts, e)
                        if other < groups and amount > 0:
                            if u == v:
                                loops += amount * (loop - 1)
                            if sums[slot, other] == 0:
                                seen[slot, count] = other
                                count += 1
                            sums[slot, other] += amount
                seen[slot, :count].sort()
                at = bounds[g]
                for number in range(count):
                    other = np.int64(seen[slot, number])
                    ends[at] = other
                    weights[at] = (sums[slot, other] + loops) // 2 if other == g else sums[slot, other]
                    sums[slot, other] = 0
                    at += 1
                counts[g] = count
            first = atomic_add(following, np.uint64(0), np.int64(STEP))


@loop_kernel("copy_rows_together", grain=1024)
def copy_rows_together(first_step, end_step, bounds, offsets, made, kept):  # type: ignore[no-untyped-def]
    """Copy rows, from `bounds` on, to where `offsets` says."""
    ends, weights = made
    kept_ends, kept_weights = kept
    for g in range(first_step, end_step):
        move = bounds[g] - offsets[g]
        for e in range(offsets[g], offsets[g + 1]):
            kept_ends[e], kept_weights[e] = ends[e + move], weights[e + move]


@loop_kernel("join_rows", grain=1024)
def join_rows(first_step, end_step, rows, others, offsets, joined):  # type: ignore[no-untyped-def]
    """Rows of two adjacencies as one, those of the first before those of the second."""
    starts, neighbors, amounts = rows
    other_starts, other_neighbors, other_amounts = others
    ends, weights = joined
    for v in range(first_step, end_step):
        at = offsets[v]
        for e in range(starts[v], starts[v + 1]):
            ends[at] = neighbors[e]
            if len(weights):
                weights[at] = amounts[e]
            at += 1
        for e in range(other_starts[v], other_starts[v + 1]):
            ends[at] = other_neighbors[e]
            if len(weights):
                weights[at] = other_amounts[e]
            at += 1
