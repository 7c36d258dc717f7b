"""The gathering that is timed is the one that compaction does."""

from __future__ import annotations

import numpy as np
import pytest
from penstock.engine.calibration.probes import CHUNKS, ID_BITS, PART_ROWS, gathering, made_payload, unpack_rates
from penstock.engine.kernels.packed.unpackers import unpacker_of
from penstock.engine.kernels.probes.host_probes import ROW_EDGES
from penstock.storage.base.measurement import TimeBudget
from penstock.storage.encoding.payload import BLOCK
from penstock.storage.encoding.unpack import unpack
from penstock.transfer.devices.device import UnpackRequest
from penstock.transfer.devices.emulated import EmulatedDevice


@pytest.mark.parametrize("rows", [1, 3, PART_ROWS])
def test_gathering_takes_every_other_row(rows: int) -> None:
    source = np.random.default_rng(1).integers(0, 1 << 32, 2 * rows * ROW_EDGES, np.uint32)
    parts, target = gathering(source)
    for part in reversed(parts):
        part()
    offsets, numbers, found = np.split(target, [rows + 1, 2 * rows + 1])
    assert np.array_equal(found.reshape(rows, ROW_EDGES), source.reshape(rows, 2, ROW_EDGES)[:, 0])
    assert np.array_equal(numbers, 2 * np.arange(rows))
    assert np.array_equal(offsets, ROW_EDGES * np.arange(rows + 1))
    assert target.nbytes == 4 * (ROW_EDGES + 2) * rows + 4


def test_a_made_payload_is_sound_and_has_far_ids() -> None:
    out = np.empty(8 * BLOCK, np.uint32)
    assert 0 <= unpack(made_payload(8 * BLOCK), out) < 1 << ID_BITS
    assert len(np.unique(out)) > 7 * BLOCK


def test_every_number_of_chunks_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    device, unpacker, asked = EmulatedDevice(), unpacker_of(EmulatedDevice()), list[tuple[int, int]]()

    class Seen:
        def unpack(self, request: UnpackRequest, stream: None) -> None:
            asked.append((request.last_chunk, request.chunk_edges))
            unpacker.unpack(request, stream)

        def check(self) -> None:
            unpacker.check()

    size = 4 * 40 * BLOCK
    monkeypatch.setattr("penstock.engine.calibration.probes.CHUNK_EDGES", 2 * BLOCK)
    samples = unpack_rates(device, Seen(), size, 0.0, TimeBudget(None))
    assert [sample.amount for sample in samples] == [count * 2 * BLOCK for count in CHUNKS[:3]]
    assert set(asked) == {(count, 2 * BLOCK) for count in CHUNKS[:3]}
    assert unpack_rates(device, unpacker, 1 << 13, 0.0, TimeBudget(0.0))[0].rate > 0
