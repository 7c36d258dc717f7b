"""Ranks on devices exchange what ranks in host memory do, also with these, whichever the form; on simulated kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from penstock.engine.kernels.cuda import driver
from penstock.engine.kernels.cuda.launch_exchange import CudaExchangeKernels
from penstock.engine.kernels.reference.vertex import ReferenceKernels, marked
from penstock.engine.program.program import Field, Program
from penstock.engine.ranks import communicator, rank_exchange
from penstock.engine.ranks.device_exchange import DeviceExchange
from penstock.engine.ranks.rank_devices import StagedCommunicator
from penstock.engine.ranks.rank_exchange import RankExchange
from penstock.engine.state.device_state import DeviceState
from penstock.engine.state.state import State
from penstock.transfer.devices.emulated import EmulatedDevice
from support import thread_ranks
from support.thread_ranks import ThreadRanks, on_ranks

pytestmark = pytest.mark.skipif(not driver.SIMULATED, reason="there is a device: tests/gpu")
N = 700
SHARES = {"few": 0.03, "ids": 0.1, "bitmap": 0.3, "dense": 0.9}
"""Of the vertices: how many each rank finds messages for."""
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
    exchange: Any
    if there:
        state.touched.words[:] = np.packbits(mask, bitorder="little").view(np.uint32)[: len(state.touched.words)]
        kernels = CudaExchangeKernels(device, combiner, {})
        exchange = DeviceExchange(state, kernels, ranks, StagedCommunicator(ranks, device))
    else:
        state.touched.add(at)
        exchange = RankExchange(state, combiner, ranks)
    exchange.share_messages(everything=False, bounds=BOUNDS if pulled else None)
    bitmaps = state.touched, state.pending
    if not there:
        return state.target.copy(), *(marked(bitmap) for bitmap in bitmaps)
    bits = [np.unpackbits(bitmap.words.view(np.uint8), bitorder="little") for bitmap in bitmaps]
    return state.target.copy(), *(np.flatnonzero(one).tolist() for one in bits)


@pytest.mark.parametrize("where", ["devices", "mixed"])
@pytest.mark.parametrize("share", SHARES.values(), ids=SHARES)
@pytest.mark.parametrize(
    ("combiner", "dtype", "pulled", "apart"),
    [
        ("sum", np.float64, False, True),
        ("min", np.uint32, False, True),
        ("or", np.uint64, False, True),
        ("max", np.int64, False, False),
        ("sum", np.float32, True, True),
        ("min", np.int64, True, False),
    ],
)
def test_states_on_devices_become_what_those_of_the_host_do(
    where: str, share: float, combiner: str, dtype: type[np.generic], pulled: bool, apart: bool
) -> None:
    share = share / 2 if pulled else share

    def of(there: tuple[bool, bool, bool]) -> list[Found]:
        return on_ranks(
            3,
            lambda ranks: _shared(ranks, combiner, there[ranks.rank], share, pulled=pulled, apart=apart, dtype=dtype),
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
        DeviceExchange(state, kernels, ranks, StagedCommunicator(ranks, device)).share_messages(True, bounds)
        return list(state.target)

    wanted = 3 * np.arange(N) + 3 if bounds is None else np.arange(N) + 2 * (np.arange(N) >= 307)
    assert on_ranks(3, work) == [wanted.tolist()] * 3


@pytest.mark.parametrize("span", [(0, N), (5, 6), (31, 33), (40, 40), (64, 96), (333, 699)])
def test_marks_of_a_span_are_counted_and_listed(span: tuple[int, int]) -> None:
    device = EmulatedDevice()
    kernels = CudaExchangeKernels(device, "sum", {})
    bits = np.random.default_rng(4).random(N + 68) < 0.4
    words = np.packbits(bits, bitorder="little").view(np.uint32)
    wanted = np.flatnonzero(bits[span[0] : span[1]]) + span[0]
    ids, values, target = np.zeros(len(wanted), np.uint32), np.zeros(len(wanted)), np.random.default_rng(5).random(N)
    for room in {len(wanted), max(0, len(wanted) - 1), 0}:
        lists = kernels.shared_lists(f"{room}", room, ids.dtype, values.dtype)
        assert kernels.count(words, span, target, lists) == len(wanted)
        fits = room == len(wanted)
        assert lists.ids.tolist() == (wanted.tolist() if fits else [0] * room)
        assert lists.values.tolist() == (target[wanted].tolist() if fits else [0] * room)
    kernels.listed(words, span, len(wanted), target, ids, values)
    assert ids.tolist() == wanted.tolist()
    assert values.tolist() == target[wanted].tolist()
    found = np.ones_like(words)
    kernels.copy_marks(words, span, found)
    assert np.flatnonzero(np.unpackbits(found.view(np.uint8), bitorder="little")).tolist() == wanted.tolist()
