"""String ids during a conversion: numbers at once, the order of bytes at the end, in memory or on disk."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.storage.base.errors import InputError
from penstock.storage.convert.renumber import name_table as convert_names
from penstock.storage.convert.renumber.name_table import NameRuns, NameTable, merged, sorted_order
from penstock.storage.convert.sort.spill_room import ArrayStore, SpillRoom
from penstock.storage.ingest.core.edges import LocalNames
from support.graph_files import string_array

ALIKE = st.text(st.sampled_from("ab/é中"), min_size=1, max_size=40)


@given(texts=st.lists(ALIKE, unique=True, max_size=120))
def test_order_is_that_of_bytes(texts: list[str]) -> None:
    names = string_array(texts)
    assert [texts[i] for i in sorted_order(names.text, names.ends)] == sorted(texts, key=str.encode)


@pytest.mark.parametrize("room", [0, 1 << 30])
@pytest.mark.parametrize("count", [0, 1, 3000])
def test_runs_are_merged_in_order(room: int, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert_names, "SMALLEST_RUN", 1000)
    random = np.random.default_rng(count)
    texts = [f"{'x' * int(random.integers(0, 20))}{i * 7919 % 10007}" for i in range(count)]
    with closing(SpillRoom(room, tmp_path, lambda: None)) as kept_in, ThreadPoolExecutor(2) as pool:
        runs = NameRuns(ArrayStore(kept_in), pool, 1000)
        for first in range(0, count, 37):
            part = string_array(texts[first : first + 37])
            new = np.arange(len(part))
            runs.add(LocalNames(np.empty((len(part), 2), np.uint64), new, part), new)
        kept = runs.finish()
        assert len(kept) >= count // 100
        found, numbers = [], []
        for names, given_numbers in merged(kept, 1000):
            found += names.strings().tolist()
            numbers += given_numbers.tolist()
    assert found == sorted(texts, key=str.encode)
    assert [texts[number] for number in numbers] == found


def test_numbers_follow_the_first_occurrence() -> None:
    table = NameTable(1 << 30)
    random = np.random.default_rng(0)
    known: dict[tuple[int, int], int] = {}
    for _ in range(200):
        keys = np.unique(random.integers(0, 90, (60, 2), dtype=np.uint64), axis=0)
        expected = [known.setdefault(key, len(known)) for key in map(tuple, keys.tolist())]
        numbers, new = table.numbers(keys)
        assert numbers.tolist() == expected
        assert numbers[new].tolist() == list(range(table.count - len(new), table.count))
    assert table.count == len(known) > 1 << 10


def test_more_names_than_memory_are_refused() -> None:
    table = NameTable(1 << 16)
    with pytest.raises(InputError, match=r"different names.*raise --host-memory"):
        table.numbers(np.arange(20_000, dtype=np.uint64).reshape(-1, 2))
