"""The read plan covers every frame once, merges neighbors, and reads nothing that was not asked for."""

from random import Random
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from penstock.storage.format.read_plan import LEAST_SPLIT, MOST_BYTES, PAGE, plan_reads, read_threads, split_bytes

FRAMES = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9000), st.integers(0, 3)), max_size=40)


def laid_out(frames: list[tuple[int, int, int]]) -> tuple[Any, Any, Any]:
    """Frames at page boundaries, in order, with some pages of other data between them."""
    shard = np.array([file for file, _, _ in frames], np.int64)
    lengths = np.array([length for _, length, _ in frames], np.int64)
    offsets = np.zeros(len(frames), np.int64)
    at = [PAGE] * 3
    for i, (file, length, pages) in enumerate(frames):
        offsets[i] = at[file] + pages * PAGE
        at[file] = -(-(int(offsets[i]) + length) // PAGE) * PAGE
    return shard, offsets, lengths


@given(FRAMES, st.sampled_from([PAGE, 20_000, MOST_BYTES]), st.randoms(use_true_random=False))
def test_every_frame_is_read_once_and_little_else(
    frames: list[tuple[int, int, int]], most: int, random: Random
) -> None:
    random.shuffle(frames)
    shard, offsets, lengths = laid_out(frames)
    reads = plan_reads(shard, offsets, lengths, most)
    members = [i for read in reads for i in read.members]
    assert sorted(members) == list(range(len(frames)))
    for read in reads:
        assert read.start % PAGE == read.length % PAGE == 0
        inside = list(read.members)
        assert (shard[inside] == read.shard).all()
        assert (offsets[inside] >= read.start).all()
        assert (offsets[inside] + lengths[inside] <= read.start + read.needed).all()
        assert read.needed <= read.length < read.needed + PAGE
        assert len(inside) == 1 or read.needed <= most
        wanted = (-(-lengths[inside] // PAGE) * PAGE).sum()
        assert read.length <= wanted


def test_neighbors_merge_up_to_the_limit() -> None:
    size = 600_000
    step = -(-size // PAGE) * PAGE
    offsets = np.arange(20, dtype=np.int64) * step + PAGE
    shard = np.zeros(20, np.int64)
    reads = plan_reads(shard, offsets, np.full(20, size, np.int64))
    assert [len(read.members) for read in reads] == [3, 3, 3, 3, 3, 3, 2]
    apart = plan_reads(shard[::2], offsets[::2], np.full(10, size, np.int64))
    assert [len(read.members) for read in apart] == [1] * 10


def test_short_frames_in_one_page_share_a_read() -> None:
    offsets = np.array([100, 300, 5000], np.int64)
    reads = plan_reads(np.zeros(3, np.int64), offsets, np.array([200, 80, 10], np.int64))
    assert [(read.start, read.length, read.needed) for read in reads] == [(0, PAGE, 380), (PAGE, PAGE, 914)]


def test_a_fetch_is_split_so_that_all_threads_decode() -> None:
    assert split_bytes(16 << 20, 2) == MOST_BYTES
    assert split_bytes(32 << 20, 16) == 2 << 20
    assert split_bytes(1000, 4) == LEAST_SPLIT


def test_every_stripe_has_its_reads_and_its_share_of_decoding_threads() -> None:
    assert read_threads(1, 16) == 24
    assert read_threads(3, 4, 2) == 3 * (2 + 2)
    assert read_threads(0, 2) == 0
