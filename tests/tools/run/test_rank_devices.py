"""Which device a rank computes on, and its part of threads and memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from penstock.storage.base.errors import InputError
from penstock.tools.base.joined_ranks import LAUNCHED
from penstock.tools.run import rank_devices
from penstock.tools.run.rank_devices import host_ranks, options_of_rank, threads_of
from penstock.tools.run.run_options import Execution, names_of
from penstock.transfer.devices import cuda
from support.thread_ranks import ThreadRanks, on_ranks


def given(devices: str | None, **options: Any) -> Execution:
    return Execution.of((), None, None, None, False, devices, **options)


def test_names_of_devices() -> None:
    assert names_of("cuda:0, cuda:1") == ("cuda:0", "cuda:1")
    assert names_of("cuda,cpu") == ("cuda:0", "cpu")
    assert names_of("all") == ("all",)
    for text, words in (("all,cpu", "all stands alone"), ("cuda:x", "'cuda:x' is no device"), ("", "'' is no device")):
        with pytest.raises(InputError, match=words):
            names_of(text)


@pytest.mark.parametrize(
    ("threads", "devices", "each"),
    [
        (16, ("cpu", "cpu"), [8, 8]),
        (32, ("cuda:0", "cuda:1"), [16, 16]),
        (16, ("cuda:0", "cpu"), [4, 12]),
        (32, ("cuda:0", "cuda:1", "cpu"), [4, 4, 24]),
        (2, ("cuda:0", "cpu"), [1, 1]),
        (1, ("cpu", "cpu", "cpu"), [1, 1, 1]),
    ],
)
def test_threads_of_a_host_are_divided(threads: int, devices: tuple[str, ...], each: list[int]) -> None:
    assert threads_of(threads, devices) == each


def _on(size: int, execution: Execution) -> list[tuple[tuple[str, ...], int]]:
    def work(ranks: ThreadRanks) -> tuple[tuple[str, ...], int]:
        joined: Any = SimpleNamespace(communicator=ranks, mates=tuple(range(size)))
        return host_ranks(joined, execution.devices, execution.options.get("device", "auto"))

    return on_ranks(size, work)


def test_each_rank_finds_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LAUNCHED, raising=False)
    assert [own for _, own in _on(2, given(None, device="cpu"))] == [0, 1]
    assert _on(2, given("cuda:1,cpu"))[1] == (("cuda:1", "cpu"), 1)
    monkeypatch.setattr(cuda, "addresses", lambda: ("0000:01", "0000:02"))
    for devices in (None, "auto"):
        assert _on(2, given(devices))[0][0] == ("cuda:0", "cuda:1")
    with pytest.raises(InputError, match="--devices names 3 devices, and there are 2 ranks, 2 of them on this host"):
        _on(2, given("cpu,cpu,cpu"))
    monkeypatch.setenv(LAUNCHED, "cuda:1,cuda:0")
    assert _on(2, given("all"))[0][0] == ("cuda:1", "cuda:0")


def test_a_rank_has_its_part_of_memory_and_threads() -> None:
    execution = given("cuda:0,cpu", threads=16, host_memory=8 << 30, device_memory=4 << 30)
    parts = [options_of_rank(execution.options, ("cuda:0", "cpu"), own) for own in (0, 1)]
    assert [(one["device"], one["threads"], one["host_memory"]) for one in parts] == [
        ("cuda:0", 4, 4 << 30),
        ("cpu", 12, 4 << 30),
    ]
    assert np.unique([one["device_memory"] for one in parts]).tolist() == [4 << 30]


def test_all_are_the_gpus_of_this_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "count", lambda: 3)
    assert rank_devices.all_gpus() == ("cuda:0", "cuda:1", "cuda:2")
    assert given("all").on(("cuda:0",)).options["device"] == "cuda:0"
    assert given("all").on(("cuda:0",)).devices == ()
    monkeypatch.setattr(cuda, "count", lambda: 0)
    with pytest.raises(InputError, match="CUDA sees no device here"):
        rank_devices.all_gpus()
