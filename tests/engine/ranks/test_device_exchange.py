"""Ranks on devices exchange what ranks in host memory do, also with these, whichever the form; on simulated kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from penstock.engine.kernels.cuda import driver
from penstock.engine.kernels.cuda.launch_exchange import CudaExchangeKernels
from penstock.engine.kernels.host.launch_exchange import HostExchangeKernels
from penstock.engine.kernels.reference.vertex import ReferenceKernels, marked
from penstock.engine.program.program import Field, Program
from penstock.engine.ranks import communicator, rank_exchange
from penstock.engine.ranks.rank_devices import StagedCommunicator
from penstock.engine.ranks.rank_exchange import RankExchange
from penstock.engine.state.device_state import DeviceBitmap, DeviceState
from penstock.engine.state.state import Bitmap, State
from penstock.transfer.devices.emulated import EmulatedDevice
from support import thread_ranks
from support.covering import covering
from support.thread_ranks import ThreadRanks, on_ranks

pytestmark = pytest.mark.skipif(not driver.SIMULATED, reason="there is a device: tests/gpu")
N = 700
SHARES = {"few": 0.03, "ids": 0.1, "bitmap": 0.3, "dense": 0.9}
"""Of the vertices: how many each rank finds messages for."""
KINDS: dict[str, tuple[str, type[np.generic], bool, bool]] = {
    "sums": ("sum", np.float64, False, True),
    "least": ("min", np.uint32, False, True),
    "bits": ("or", np.uint64, False, True),
    "greatest in place": ("max", np.int64, False, False),
    "sums pulled": ("sum", np.float32, True, True),
    "least pulled in place": ("min", np.int64, True, False),
}
"""Combiner, dtype, whether each rank found messages for its own vertices only, whether they are apart."""
BOUNDS = np.array([0, 307, 307, N])
Found = tuple[np.ndarray, list[int], list[int]]


@pytest.fixture(autouse=True)
def forms_by_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small graphs have all forms, and simulated kernels their time."""
    monkeypatch.setattr(thread_ranks, "PATIENCE_SECONDS", 60)
    for name, limit in {"LISTED_SHARE": 0.2, "MARKED_SHARE": 0.9, "SLICED_SHARE": 0.5, "FEW": 70}.items():
        monkeypatch.setattr(rank_exchange, name, limit)


def _program(combiner: str, dtype: type[np.generic]) -> Program:
    members = {"value": Field(dtype), "combine": combiner, "self_combining": True, "edge": lambda value: value}
    program: Program = type("Any", (Program,), members)()
    return program


def _found(rank: int, share: float, span: tuple[int, int], dtype: type[np.generic]) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(rank)
    at = np.unique(random.integers(*span, int(share * (span[1] - span[0])))) if span[0] < span[1] else np.zeros(0, int)
    return at, (random.random(len(at)) * 100).astype(dtype)


def _shared(
    ranks: ThreadRanks, combiner: str, there: bool, share: float, *, pulled: bool, apart: bool, dtype: type[np.generic]
) -> Found:
    """Values, marks and pending vertices of a rank after an exchange; there: whether its state is on a device."""
    program = _program(combiner, dtype)
    author = ReferenceKernels(program, np.dtype(np.uint32), weighted=False).author
    device = EmulatedDevice()
    state: Any = State(program, author, 0, N, np.dtype(np.uint32))
    if there:
        state = DeviceState(program, author, (0, N), np.dtype(np.uint32), device)
    if apart:
        state.accumulate_apart()
    state.mark_apart()
    at, values = _found(ranks.rank, share, tuple(BOUNDS[ranks.rank :][:2].tolist()) if pulled else (0, N), dtype)
    state.target[at] = values
    mask = np.zeros(N + 4096, dtype=np.bool_)
    mask[at] = True
    if there:
        state.touched.words[:] = np.packbits(mask, bitorder="little").view(np.uint32)[: len(state.touched.words)]
        kernels = CudaExchangeKernels(device, combiner, {})
        exchange = RankExchange(state, kernels, ranks, StagedCommunicator(ranks, device))
    else:
        state.touched.add(at)
        exchange = RankExchange(state, HostExchangeKernels(combiner), ranks, ranks)
    exchange.share_messages(everything=False, bounds=BOUNDS if pulled else None)
    bitmaps = state.touched, state.pending
    if not there:
        return state.target.copy(), *(marked(bitmap) for bitmap in bitmaps)
    bits = [np.unpackbits(bitmap.words.view(np.uint8), bitorder="little") for bitmap in bitmaps]
    return state.target.copy(), *(np.flatnonzero(one).tolist() for one in bits)


@covering("where, share, kind", ("devices", "mixed"), SHARES, KINDS)
def test_states_on_devices_become_what_those_of_the_host_do(
    where: str, share: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside ranks on cores, devices exchange the messages of as few vertices at once as these."""
    combiner, dtype, pulled, apart = KINDS[kind]
    if where == "mixed":
        monkeypatch.setattr(HostExchangeKernels, "exchanged_at_once", 256)
    part = SHARES[share] / 2 if pulled else SHARES[share]

    def of(there: tuple[bool, bool, bool]) -> list[Found]:
        return on_ranks(
            3,
            lambda ranks: _shared(ranks, combiner, there[ranks.rank], part, pulled=pulled, apart=apart, dtype=dtype),
        )

    wanted = of((False, False, False))[0]
    for values, *marks in of((True, True, True) if where == "devices" else (True, False, True)):
        np.testing.assert_array_equal(values, wanted[0])
        assert marks == list(wanted[1:])


@pytest.mark.parametrize(("more", "at_once"), [(-1, 128), (0, 5), (1, 128), (1, 5)])
@pytest.mark.parametrize(("combiner", "pulled", "apart"), [("sum", False, True), ("min", True, False)])
def test_few_messages_go_by_way_of_the_hosts(
    more: int, at_once: int, combiner: str, pulled: bool, apart: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    spans = [tuple(BOUNDS[rank:][:2].tolist()) if pulled else (0, N) for rank in range(3)]
    limit = sum(len(_found(rank, 0.04, span, np.float32)[0]) for rank, span in enumerate(spans)) - more
    monkeypatch.setattr(rank_exchange, "FEW", limit)
    monkeypatch.setattr(communicator, "AT_ONCE", at_once)
    gathered: list[str] = []
    gather = ThreadRanks.gather_slices

    def noted(self: ThreadRanks, whole: np.ndarray, bounds: np.ndarray) -> None:
        gathered.append(whole.dtype.name)
        gather(self, whole, bounds)

    def of(there: tuple[bool, bool, bool]) -> list[Found]:
        options: dict[str, Any] = {"pulled": pulled, "apart": apart, "dtype": np.float32}
        return on_ranks(3, lambda ranks: _shared(ranks, combiner, there[ranks.rank], 0.04, **options))

    monkeypatch.setattr(ThreadRanks, "gather_slices", noted)
    found = [*of((False, False, False)), *of((True, True, True)), *of((False, True, False))]
    for values, *marks in found:
        np.testing.assert_array_equal(values.view(np.uint32), found[0][0].view(np.uint32))
        assert marks == list(found[0][1:])
    each = ["float32", "uint32"] if more > 0 else ["uint8"] if at_once == 5 else []
    assert sorted(gathered) == sorted(each * 9)


@pytest.mark.parametrize("bounds", [None, BOUNDS])
def test_a_sweep_shares_every_vertex(bounds: np.ndarray | None) -> None:
    def work(ranks: ThreadRanks) -> list[int]:
        program, device = _program("sum", np.int64), EmulatedDevice()
        author = ReferenceKernels(program, np.dtype(np.uint32), weighted=False).author
        state = DeviceState(program, author, (0, N), np.dtype(np.uint32), device)
        state.accumulate_apart()
        state.target[:] = np.arange(N) + ranks.rank
        kernels = CudaExchangeKernels(device, "sum", {})
        RankExchange(state, kernels, ranks, StagedCommunicator(ranks, device)).share_messages(True, bounds)
        return list(state.target)

    wanted = 3 * np.arange(N) + 3 if bounds is None else np.arange(N) + 2 * (np.arange(N) >= 307)
    assert on_ranks(3, work) == [wanted.tolist()] * 3


def test_slices_of_a_range_leave_what_is_outside() -> None:
    def work(ranks: ThreadRanks) -> list[int]:
        device = EmulatedDevice()
        whole = device.array(9, np.int64)
        whole[:] = ranks.rank
        StagedCommunicator(ranks, device).gather_slices(whole, np.array([2, 3, 5, 5]))
        return list(whole)

    assert on_ranks(3, work) == [[rank, rank, 0, 1, 1, *4 * [rank]] for rank in range(3)]


SPANS = ((0, N), (5, 6), (31, 33), (40, 40), (64, 96), (333, 699), (4090, 8200), (0, 9000))


@covering("share, span, there", (0.0, 0.001, 0.4, 1.0), SPANS, (True, False))
def test_marks_of_a_span_are_counted_and_listed(share: float, span: tuple[int, int], there: bool) -> None:
    device, count = EmulatedDevice(), 9000
    bits = np.random.default_rng(4).random(count) < share
    bitmap: Any = DeviceBitmap(device, count) if there else Bitmap.empty(count)
    kernels: Any = CudaExchangeKernels(device, "sum", {}) if there else HostExchangeKernels("sum")
    bitmap.words.view(np.uint8)[: count // 8] = np.packbits(bits, bitorder="little")
    bitmap.summarize()
    wanted = np.flatnonzero(bits[span[0] : span[1]]) + span[0]
    ids, values = np.zeros(len(wanted), np.uint32), np.zeros(len(wanted))
    target = np.random.default_rng(5).random(count)
    for room in {len(wanted), max(0, len(wanted) - 1), 0}:
        lists = kernels.shared_lists(f"{room}", room, ids.dtype, values.dtype)
        assert kernels.count(bitmap, span, target, lists) == len(wanted)
        if room == len(wanted):
            assert lists.ids.tolist() == wanted.tolist()
            assert lists.values.tolist() == target[wanted].tolist()
    kernels.listed(bitmap, span, len(wanted), target, ids, values)
    assert ids.tolist() == wanted.tolist()
    assert values.tolist() == target[wanted].tolist()
    found = np.ones(len(bitmap.words.view(np.uint32)), np.uint32)
    kernels.copy_marks(bitmap, span, found)
    assert np.flatnonzero(np.unpackbits(found.view(np.uint8), bitorder="little")).tolist() == wanted.tolist()
    again = np.zeros(len(wanted), np.uint32)
    kernels.enumerated(found, (0, count), again)
    assert again.tolist() == wanted.tolist()


@pytest.mark.parametrize(("instead", "merge"), [(True, None), (False, np.minimum)])
def test_listed_values_are_merged_and_their_vertices_marked(instead: bool, merge: np.ufunc | None) -> None:
    random, bitmap, count = np.random.default_rng(3), Bitmap.empty(3 * 4096), 3 * 4096
    bitmap.add(np.array([5, 4096]))
    ids, target = np.unique(random.integers(0, count, 50)).astype(np.uint32), random.random(count)
    values, wanted = random.random(len(ids)), target.copy()
    part = slice(10, len(ids) - 3)
    wanted[ids[part]] = values[part] if merge is None else merge(wanted[ids[part]], values[part])
    HostExchangeKernels("min").merge(ids, values, (part.start, part.stop), target, bitmap, instead=instead)
    np.testing.assert_array_equal(target, wanted)
    assert marked(bitmap) == sorted({5, 4096, *ids[part].tolist()})
