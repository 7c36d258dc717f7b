"""Groups counted in blocks of counters, or in classes of a hash, are those that sorting all labels counts."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from penstock.storage.encoding.string_array import STRINGS
from penstock.storage.results import column_statistics, group_counts
from penstock.storage.results.group_counts import count_groups
from support.covering import covering

KINDS = ("u1", "u4", "u8", "i4", "i8")


def by_sorting(labels: NDArray[Any], top: int) -> tuple[int, int, list[tuple[Any, int]]]:
    names, sizes = np.unique(labels, return_counts=True)
    order = np.argsort(-sizes, kind="stable")[:top]
    return len(names), int(sizes.max(initial=0)), list(zip(names[order].tolist(), sizes[order].tolist(), strict=True))


def labels_of(shape: str, kind: str, count: int) -> NDArray[Any]:
    random = np.random.default_rng(count)
    if shape == "one":
        return np.full(count, 3, kind)
    if shape == "own":
        return np.arange(count).astype(kind)
    if shape == "full":  # groups that fill a byte just so, nearly, by one more, and often
        return np.repeat(np.arange(8), [255, 256, 257, 512, 767, 1, 25_600, 3]).astype(kind)
    if shape == "few":
        return random.integers(0, max(1, min(count // 3, 127)), count).astype(kind)
    limits = np.iinfo(kind)
    found: NDArray[Any] = random.integers(limits.min, limits.max, count, dtype=kind, endpoint=True)
    found[random.random(count) < 0.4] = found[0]
    return found


@covering("kind, shape, count", KINDS, ["one", "own", "few", "far", "full"], [1, 7, 3000])
def test_groups_are_those_of_a_sort(kind: str, shape: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = labels_of(shape, kind, count)
    monkeypatch.setattr(group_counts, "SMALL", 0)
    monkeypatch.setattr(group_counts, "COMPARED", 64)
    for room in (5000, 1 << 20):
        for top in (0, 1, 10):
            found = count_groups(labels, top, room, threads=3)
            assert (found.groups, found.largest, found.top) == by_sorting(labels, top)
            if shape in ("one", "own", "few"):
                assert count_groups(labels, top, room, threads=3, among=range(max(128, count))) == found


@pytest.mark.parametrize("count", [3000, 3005, 4099])
def test_labels_in_ranges_of_any_length_are_counted_in_one_pass(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ranges of as many rows begin within a byte of bits."""
    monkeypatch.setattr(group_counts, "SMALL", 0)
    monkeypatch.setattr(group_counts, "_scattered", None)
    monkeypatch.setattr(group_counts, "_dense", None)
    monkeypatch.setattr(column_statistics, "ROWS", 64)
    monkeypatch.setattr(column_statistics, "TURNS", 16)
    random = np.random.default_rng(count)
    labels = np.arange(count, dtype=np.uint32)
    labels[random.integers(0, count, count // 3)] = 5
    some = random.integers(0, count, 60)
    labels[some] = random.integers(0, count, 60)
    found = count_groups(labels, 3, 1 << 20, threads=3)
    assert (found.groups, found.largest, found.top) == by_sorting(labels, 3)


@covering("absent, apart, small", [0, 3, 255, 70_000, 2**32 - 1], [1, 30_000], [0, 1 << 20])
def test_vertices_without_a_label_are_left_out(
    absent: int, apart: int, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it lies among the labels or not; with every label absent there are no groups."""
    monkeypatch.setattr(group_counts, "SMALL", small)
    monkeypatch.setattr(group_counts, "COUNTED", 1000)
    labels = np.random.default_rng(5).integers(1, 300, 20_000).astype(np.uint32) * np.uint32(apart)
    labels[::3] = absent
    wanted = by_sorting(labels[labels != absent], 5)
    for room in (5000, 1 << 20):
        found = count_groups(labels, 5, room, absent=absent, threads=3)
        assert (found.groups, found.largest, found.top) == wanted
        found = count_groups(np.full(10, absent, np.uint32), 5, room, absent=absent)
        assert (found.groups, found.largest, found.top) == (0, 0, [])


def test_blocks_and_classes_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """More labels than counters: a pass for each block; far apart ones: a class after another."""
    monkeypatch.setattr(group_counts, "SMALL", 0)
    near = np.random.default_rng(2).integers(10, 200_000, 300_000).astype(np.uint32)
    far = near.astype(np.uint64) * np.uint64(1 << 40)
    for labels in (near, far):
        found = count_groups(labels, 5, 1 << 18, threads=2)
        assert (found.groups, found.largest, found.top) == by_sorting(labels, 5)


@pytest.mark.parametrize("apart", [1, 100])
def test_equal_groups_are_in_the_order_of_ties(apart: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels near each other, and far apart, in one piece and in many."""
    labels = np.random.default_rng(3).permutation(3000).astype(np.uint32) // 2 * apart
    ties = np.random.default_rng(4).permutation(int(labels.max()) + 1)
    wanted = sorted(np.unique(labels).tolist(), key=lambda label: ties[label])[:10]
    monkeypatch.setattr(group_counts, "COMPARED", 64)
    for small in (0, 1 << 20):
        monkeypatch.setattr(group_counts, "SMALL", small)
        for room in (5000, 1 << 20):
            assert count_groups(labels, 10, room, threads=3, ties=ties.__getitem__).top == [
                (label, 2) for label in wanted
            ]


def test_strings_are_sorted_and_no_labels_are_no_groups() -> None:
    found = count_groups(np.array(["b", "a", "b"], STRINGS), 2, 1)
    assert (found.groups, found.largest, found.top) == (2, 2, [("b", 2), ("a", 1)])
    found = count_groups(np.empty(0, np.uint32), 2, 1)
    assert (found.groups, found.largest, found.top) == (0, 0, [])


def test_counters_stay_in_their_room() -> None:
    labels = np.arange(3 << 20, dtype=np.uint32)
    count_groups(labels[: group_counts.SMALL + 1], 1, 1 << 20)  # the kernel is loaded
    tracemalloc.start()
    try:
        found = count_groups(labels, 10, 1 << 20, threads=2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.groups == len(labels)
    assert peak < (1 << 20) + (6 << 20)  # sorting takes 100 MiB
