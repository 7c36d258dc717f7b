"""Chunks spread evenly over stripes, keep their neighbors, and shards are looked for in order."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.storage.format import stripe
from penstock.storage.format.schema import Header, Place, ShardEntry


@given(st.integers(0, 500), st.integers(1, 7), st.integers(1, 9))
def test_every_chunk_has_one_place_and_shares_are_equal(chunks: int, stripes: int, run: int) -> None:
    where, local = stripe.place(chunks, stripes, run)
    assert len(set(zip(where.tolist(), local.tolist(), strict=True))) == chunks
    shares = np.bincount(where, minlength=stripes)
    assert len(shares) == stripes
    assert shares.max(initial=0) - shares.min(initial=chunks) <= 1
    for number in range(stripes):
        assert np.array_equal(local[where == number], np.arange(shares[number]))


def test_neighbors_stay_together_in_runs() -> None:
    where, local = stripe.place(10 * 4 * 8, 4, 8)
    runs = where.reshape(-1, 8)
    assert (runs == runs[:, :1]).all()
    assert (np.diff(local.reshape(-1, 8)) == 1).all()


def test_a_stride_in_the_graph_does_not_fall_on_one_stripe() -> None:
    where, _ = stripe.place(8 * 4 * 200, 4, 8)
    every_group = np.bincount(where[:: 8 * 4], minlength=4)
    assert every_group.min() > 20


def test_the_writer_and_the_reader_agree_on_groups() -> None:
    """The writer places group by group, not knowing how many follow."""
    chunks, stripes, run = 77, 3, 4
    size = stripes * run
    where, _ = stripe.place(chunks, stripes, run)
    for group, first in enumerate(range(0, chunks, size)):
        count = min(size, chunks - first)
        assert np.array_equal(stripe.group_stripes(group, count, stripes), where[first : first + count])


@pytest.mark.parametrize(
    ("directory", "found"),
    [("/old", ["/new", "/g", "/old"]), ("a", ["/new", "/g", "/g/a", "/o/a"]), (".", ["/new", "/g", "/o"])],
)
def test_shards_are_sought_where_told_then_where_recorded_then_beside_then_at_the_original(
    directory: str, found: list[str]
) -> None:
    entry = ShardEntry("web.0.h5", directory)
    header = Header("0" * 32, 0, 0, 0, True, 8, (entry,), (), place=Place("/o/web.h5", 1))
    sought = list(stripe.candidates(Path("/g/web.h5"), header, entry, [Path("/new"), Path("/g")]))
    assert sought == [Path(folder, "web.0.h5") for folder in found]


def test_a_folder_inside_that_of_the_manifest_is_recorded_relative_to_it(tmp_path: Path) -> None:
    manifest = tmp_path / "o" / "g.h5"
    (tmp_path / "o" / "a").mkdir(parents=True)
    (tmp_path / "disk").mkdir()
    (tmp_path / "way").symlink_to(tmp_path / "o")
    (tmp_path / "o" / "link").symlink_to(tmp_path / "disk")
    recorded = {
        "o": ".",
        "o/a": "a",
        "way/a": "a",
        "o/a/../a": "a",
        "o/link": str(tmp_path / "disk"),
        "o/../disk": str(tmp_path / "disk"),
    }
    for folder, wanted in recorded.items():
        assert stripe.recorded_folder(manifest, tmp_path / folder) == wanted
        assert stripe.recorded_folder(tmp_path / "way" / "g.h5", tmp_path / folder) == wanted


@pytest.mark.parametrize("directory", ["../s", "a/../../s", "/s", "link"])
def test_no_shard_outside_its_folder_is_a_copy_s_own(directory: str, tmp_path: Path) -> None:
    manifest = tmp_path / "g.h5"
    manifest.touch()
    (tmp_path / "link").symlink_to("/")
    entry = ShardEntry("g.0.h5", directory)
    header = Header("0" * 32, 0, 0, 0, True, 8, (entry,), (), place=Place("/o/g.h5", 0))
    assert stripe.own_places(manifest, header) == set()
