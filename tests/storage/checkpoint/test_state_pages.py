"""Pages of values: what is in memory, what comes back, and in which order pages make room."""

from __future__ import annotations

import errno
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from penstock.storage.base.errors import RunError
from penstock.storage.base.slot_pool import ReservedArray
from penstock.storage.checkpoint.page_file import PageFile
from penstock.storage.checkpoint.state_pages import PagedValues, StatePages, Unit

ROWS = 4096
VERTICES = 5 * ROWS - 10
PAGE = 4 * ROWS
"""Bytes of a page of float32."""


def made(folder: Path, room: int, *names: str) -> StatePages:
    pages = StatePages(VERTICES, ROWS, room, PageFile([folder], 5 * PAGE * max(1, len(names))))
    for name in names:
        pages.add(name, np.float32, 7)
    return pages


def test_what_was_written_comes_back_and_the_rest_is_the_first_value(tmp_path: Path) -> None:
    pages = made(tmp_path, 2 * PAGE, "value")
    for page in range(0, 5, 2):
        with pages.held([("value", page)], ["value"]):
            pages.values("value")[page * ROWS : (page + 1) * ROWS] = page
    for page in range(5):
        with pages.held([("value", page)]):
            assert set(pages.values("value")[page * ROWS : (page + 1) * ROWS]) == {page if page % 2 == 0 else 7}


def test_only_what_was_changed_is_written(tmp_path: Path) -> None:
    pages = made(tmp_path, PAGE, "value")
    for _ in range(2):
        for page in range(5):
            with pages.held([("value", page)]):
                pass
    assert (pages.file.bytes_written, pages.file.bytes_read) == (0, 0)


def test_one_value_for_all_and_numbers_from_0_are_not_written(tmp_path: Path) -> None:
    """Whatever the file, and memory, had before."""
    pages = made(tmp_path, 2 * PAGE, "value")
    values = pages.on_host("value")
    values[:] = np.zeros(VERTICES, np.float32)
    written = pages.file.bytes_moved
    for first, wanted in ((2.5, np.full(VERTICES, 2.5)), (np.arange, np.arange(VERTICES))):
        values[:] = first
        assert pages.file.bytes_moved == written
        np.testing.assert_array_equal(values[:], wanted)
        values[ROWS + 1] = -1
        assert values[ROWS : ROWS + 3].tolist() == [wanted[ROWS], -1, wanted[ROWS + 2]]
        written = pages.file.bytes_moved


@pytest.mark.parametrize(("often", "reads"), [((), 10), (("often",), 0)])
def test_pages_that_are_read_often_stay_while_others_are_there(
    often: tuple[str, ...], reads: int, tmp_path: Path
) -> None:
    """Passes over one array behind a pass over another, where either has room."""
    pages, read = made(tmp_path, 5 * PAGE, "once", "often"), []
    for name in ("once", "often"):
        for page in range(5):
            with pages.held([(name, page)], [name]):
                pages.values(name)[page * ROWS : (page + 1) * ROWS] = page
    pages.read_often(often)
    for _ in range(3):
        before = pages.file.bytes_read
        for page in range(5):
            with pages.held([("often", page)]):
                assert set(pages.values("often")[page * ROWS : (page + 1) * ROWS]) == {page}
        read.append((pages.file.bytes_read - before) // PAGE)
    assert read[1] + read[2] == reads


def test_what_was_used_last_makes_room_so_that_a_second_pass_finds_most_pages(tmp_path: Path) -> None:
    pages, gone = made(tmp_path, 3 * PAGE, "value"), []
    give_back = pages.give_back
    pages.give_back = lambda unit: (gone.append(unit), give_back(unit))[1]  # type: ignore[method-assign]
    for _ in range(2):
        for page in range(5):
            with pages.held([("value", page)]):
                pass
    assert len(gone) == 2 + 2  # in each pass; what was used first making room, it would be 2 + 5


def test_pages_that_are_wanted_next_come_meanwhile(tmp_path: Path) -> None:
    pages = made(tmp_path, 2 * PAGE, "value")
    with pages.held([("value", 0)], then=[("value", 1), ("value", 2)]):
        assert set(pages._pages) == {("value", 0), ("value", 1)}  # there is no room for more
    with pages.held([("value", 1)]):
        assert pages.values("value")[ROWS] == 7


def test_pages_of_all_written_values_are_not_read(tmp_path: Path) -> None:
    pages = made(tmp_path, PAGE, "value")
    for _ in range(2):
        for page in range(5):
            with pages.held([("value", page)], ["value"], fresh=["value"]):
                pages.values("value")[page * ROWS : (page + 1) * ROWS] = 1
    assert pages.file.bytes_read == 0


def test_pages_that_come_wait_until_those_in_whose_place_they_come_have_given_their_memory_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where one page makes room for several."""
    taken, most, lock = 0, 0, threading.Lock()
    forget, write = ReservedArray.forget, PageFile.write

    def count(size: int) -> None:
        nonlocal taken, most
        with lock:
            taken += size
            most = max(most, taken)

    def slow(file: PageFile, *given: Any) -> None:
        time.sleep(0.02)
        write(file, *given)

    monkeypatch.setattr(ReservedArray, "back", lambda space, *of: count(space.values.itemsize))
    monkeypatch.setattr(ReservedArray, "forget", lambda space, *of: (count(-space.values.itemsize), forget(space, *of)))
    monkeypatch.setattr(PageFile, "write", slow)
    pages = made(tmp_path, 8 * ROWS)
    for kind in (np.float64, np.uint8):
        pages.add(np.dtype(kind).name, kind, 0)
    for _ in range(2):
        for units in ([("float64", 0)], [("uint8", page) for page in range(4)]):
            with pages.held(units, ["float64", "uint8"]):
                pass
    assert (taken, most) == (4, 8)


def test_more_than_there_is_room_for_is_refused_and_nothing_stays_wanted(tmp_path: Path) -> None:
    pages = made(tmp_path, 2 * PAGE, "value")
    refused = pytest.raises(MemoryError, match=f"pages of {3 * PAGE} bytes are wanted, of {2 * PAGE}")
    with refused, pages.held([("value", page) for page in range(3)]):
        pass
    with pages.held([("value", 3), ("value", 4)]):
        pass


def test_a_thread_waits_for_room_that_another_has(tmp_path: Path) -> None:
    pages, order, holds = made(tmp_path, PAGE, "value"), [], threading.Event()

    def first() -> None:
        with pages.held([("value", 0)]):
            holds.set()
            holder.wait(0.2)
            order.append("first")

    def second() -> None:
        holds.wait()
        with pages.held([("value", 1)]):
            order.append("second")

    holder = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(first), pool.submit(second)]:
            done.result()
    assert order == ["first", "second"]


def test_a_thread_waits_for_room_that_is_lent(tmp_path: Path) -> None:
    pages, holds, given_back = made(tmp_path, 2 * PAGE, "value"), threading.Event(), threading.Event()

    def want() -> None:
        holds.wait()
        with pages.held([("value", 1)]):
            assert given_back.is_set()

    with ThreadPoolExecutor(1) as pool:
        wanted = pool.submit(want)
        with pages.held([("value", 0)]):
            with pages.lent(PAGE):
                holds.set()
                time.sleep(0.1)
                given_back.set()
            wanted.result(timeout=10)  # while the first page is still held


def test_threads_that_want_several_pages_wait_until_there_is_room_for_all_of_them(tmp_path: Path) -> None:
    """None is refused because others have some of theirs."""
    pages = made(tmp_path, 3 * PAGE, "value")

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(100):
            with pages.held([("value", page) for page in random.permutation(5)[: random.integers(1, 4)].tolist()]):
                pass

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [None] * 4


@pytest.mark.parametrize("call", ["preadv", "pwritev"])
def test_a_disk_that_fails_ends_the_step_that_wants_the_page(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = made(tmp_path, PAGE, "value")

    def fail(*_: Any) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def walk() -> None:
        for page in (0, 1, 0):
            with pages.held([("value", page)], ["value"]):
                pass

    walk()
    monkeypatch.setattr(os, call, fail)
    with pytest.raises(RunError, match="Input/output error"):
        walk()


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["one", "two"]), st.integers(0, 4), st.integers(0, 99), st.booleans()), max_size=40
    ),
    st.integers(2, 6),
)
def test_any_order_of_reads_and_writes_is_that_of_arrays(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int, bool]], room: int
) -> None:
    pages = made(tmp_path_factory.mktemp("pages"), room * PAGE, "one", "two")
    wanted: dict[Unit, int] = {}
    for name, page, value, ahead in steps:
        then = [(name, (page + 1) % 5)] if ahead else []
        with pages.held([(name, page)], [name], then=then):
            here = pages.values(name)[page * ROWS : (page + 1) * ROWS]
            assert set(here) == {wanted.get((name, page), 7)}
            here[:] = wanted[name, page] = value


def test_values_are_read_and_written_by_position(tmp_path: Path) -> None:
    pages = made(tmp_path, PAGE, "value")
    values, wanted = PagedValues(pages, "value"), np.full(VERTICES, 7, np.float32)
    places = np.array([3 * ROWS, 5, -1, ROWS + 1])
    for rows, given_values in [
        (slice(10, 3 * ROWS), 2.0),
        (slice(5, 9), np.arange(4)),
        (places, 9.0),
        (places, np.arange(4)),
        (7, 1.0),
        (np.array([], np.int64), 3.0),
    ]:
        values[rows] = wanted[rows] = given_values
    for rows in (slice(None), slice(ROWS - 3, ROWS + 3), slice(None, None, 1000), places, 7, -1, [], slice(9, 3)):
        np.testing.assert_array_equal(values[rows], wanted[rows])
    assert (len(values), values.shape, values.dtype, values.ndim) == (VERTICES, (VERTICES,), np.float32, 1)
    np.testing.assert_array_equal(values == 7, wanted == 7)
    np.testing.assert_array_equal(values != 7, wanted != 7)
    np.testing.assert_array_equal(np.asarray(values), wanted)


def test_operators_are_those_of_arrays(tmp_path: Path) -> None:
    pages = made(tmp_path, 4 * PAGE, "one", "two")
    one, two = PagedValues(pages, "one"), PagedValues(pages, "two")
    first, second = np.full(VERTICES, 7, np.float32), np.full(VERTICES, 7, np.float32)
    numbers = np.arange(VERTICES, dtype=np.float32)
    one *= numbers
    first *= numbers
    two -= one
    second -= first
    two /= 3
    second /= 3
    np.maximum(two, 0, out=two)
    np.maximum(second, 0, out=second)
    np.testing.assert_array_equal(one, first)
    np.testing.assert_array_equal(two, second)
    np.testing.assert_array_equal(one + two, first + second)
    assert np.add.reduce(one) == first.sum()
    assert isinstance(one < 3, np.ndarray)
    with pytest.raises(TypeError):
        np.add(one, 1j, out=one)


def test_sums_and_masks_are_those_of_arrays_and_what_is_not_there_is_refused(tmp_path: Path) -> None:
    pages, wanted = made(tmp_path, PAGE, "value"), np.arange(VERTICES, dtype=np.float32)
    values = PagedValues(pages, "value")
    values[:] = wanted
    assert float(values.sum()) == pytest.approx(float(wanted.sum()), rel=1e-6)
    chosen = wanted % 3 == 0
    np.testing.assert_array_equal(values[chosen], wanted[chosen])
    values[chosen] = -1
    wanted[chosen] = -1
    np.testing.assert_array_equal(values[:], wanted)
    with pytest.raises(IndexError, match="float64"):
        values[np.array([1.0])]
    with pytest.raises(TypeError):
        np.add.at(values, [1, 1], 1)  # a copy would be added to


def test_arrays_that_are_not_kept_leave_nothing_to_others_of_their_names(tmp_path: Path) -> None:
    pages = made(tmp_path, 3 * PAGE, "kept", "other")
    for name in ("kept", "other"):
        PagedValues(pages, name)[:] = np.arange(VERTICES)
    written = pages.file._ends
    for dtype in (np.float32, np.float64, np.float32):
        pages.keep({"kept"})
        pages.add("other", dtype, 3)
        other = PagedValues(pages, "other")
        assert set(other[:].tolist()) == {3.0}
        other[:] = np.arange(VERTICES)
        np.testing.assert_array_equal(other[:], np.arange(VERTICES))
    np.testing.assert_array_equal(PagedValues(pages, "kept")[:], np.arange(VERTICES))
    assert sum(written) <= sum(-(-VERTICES * size // 4096) for size in (4, 4, 8)) * 4096  # places are used again
