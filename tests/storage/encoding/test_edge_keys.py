"""Keys of edges: what they hold, their bounds, counts of their ends, and frames of them."""

import numpy as np
import pytest
from penstock.storage.encoding.codec import Coding, Decoder, Encoder, FrameError
from penstock.storage.encoding.edge_keys import count_ends, edge_keys, sources_of_keys, spans_of, targets_of_keys

SOURCES = np.array([3, 0, 0xFFFFFFFF, 7, 7], np.uint32)
TARGETS = np.array([1, 0, 2, 0xFFFFFFFF, 7], np.uint32)


def test_keys_hold_both_ends() -> None:
    keys = edge_keys(SOURCES, TARGETS)
    assert keys.tolist() == [one << 32 | two for one, two in zip(SOURCES.tolist(), TARGETS.tolist(), strict=True)]
    assert sources_of_keys(keys).tolist() == SOURCES.tolist()
    assert targets_of_keys(keys).tolist() == TARGETS.tolist()


def test_spans_bound_every_block_and_self_loops_are_counted() -> None:
    spans, loops = spans_of(edge_keys(SOURCES, TARGETS), 2)
    assert spans.tolist() == [[0, 3, 0, 1], [7, 0xFFFFFFFF, 2, 0xFFFFFFFF], [7, 7, 7, 7]]
    assert loops == 2


def test_ends_are_counted_apart_or_together() -> None:
    sources, targets = np.array([0, 1, 1], np.uint32), np.array([1, 1, 2], np.uint32)
    low, counts = np.zeros((3, 3), np.uint8), np.zeros((3, 3), np.uint32)
    for _ in range(300):
        count_ends(sources, targets, low[:2], counts[:2])
        count_ends(sources, targets, low[2:], counts[2:])
    assert ((counts + low) // 300).tolist() == [[1, 2, 0], [0, 2, 1], [1, 3, 1]]
    assert not (counts % 256).any()


@pytest.mark.parametrize("items", [0, 1, 5, 8])
def test_frames_of_keys_come_back(items: int) -> None:
    keys = edge_keys(np.resize(SOURCES, items), np.resize(TARGETS, items))
    frame = Encoder(Coding("shuffled", keys.dtype, 8, 1)).encode(keys)
    found = np.empty(items, np.uint64)
    Decoder().decode(frame, "shuffled", found, 8, 1 << 32)
    assert found.tolist() == keys.tolist()
    if items:
        with pytest.raises(FrameError, match="the largest allowed"):
            Decoder().decode(frame, "shuffled", found, 8, int(max(keys.view(np.uint32))))
