"""Which device a rank takes."""

from __future__ import annotations

import pytest
from penstock.engine.ranks.rank_devices import KINDS, chosen, devices_of_host
from penstock.engine.session import Session
from penstock.storage.base.errors import InputError
from penstock.transfer.devices import cuda
from support.graphs import in_memory, shape
from support.thread_ranks import on_ranks

CPU, CUDA, AUTO = (KINDS.index(name) for name in ("cpu", "cuda", "auto"))


@pytest.mark.parametrize(
    ("told", "devices"),
    [
        ([(CPU, 0, 0, 0), (CPU, 0, 0, 0)], ("cpu", "cpu")),
        ([(AUTO, 0, 7, 2), (AUTO, 0, 7, 2)], ("cuda:0", "cuda:1")),
        ([(AUTO, 0, 7, 1), (AUTO, 0, 8, 1)], ("cuda:0", "cuda:0")),  # a batch system shows each one GPU
        ([(AUTO, 0, 0, 0), (AUTO, 0, 0, 0)], ("cpu", "cpu")),
        ([(CUDA, 3, 0, 0), (CPU, 0, 0, 0)], ("cuda:3", "cpu")),
    ],
)
def test_ranks_of_a_host_take_its_gpus_in_turn(told: list[tuple[int, ...]], devices: tuple[str, ...]) -> None:
    assert chosen(told) == devices


def test_more_ranks_than_gpus_are_refused_with_the_way_out() -> None:
    with pytest.raises(InputError, match=r"3 ranks of this host see 2 GPUs.*mpiexec -n 2.*--devices cuda:0,cuda:1,cpu"):
        chosen([(AUTO, 0, 7, 2)] * 3)


def test_ranks_tell_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "addresses", lambda: ("0000:01", "0000:02"))
    asked = ("auto", "cuda:3", "auto")
    found = on_ranks(3, lambda ranks: devices_of_host(ranks, asked[ranks.rank]))
    assert found == [(("cuda:0", "cuda:3", "cuda:1"), own) for own in range(3)]


def test_a_session_takes_the_cores_where_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "addresses", lambda: ())

    def work(ranks: object) -> str:
        with Session(in_memory(shape("ring")), ranks=ranks, threads=1) as session:
            return session.config.device

    assert on_ranks(2, work) == ["cpu", "cpu"]


def test_a_session_refuses_more_ranks_than_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "addresses", lambda: ("0000:01",))
    with pytest.raises(InputError, match="2 ranks of this host see 1 GPU:"):
        on_ranks(2, lambda ranks: Session(in_memory(shape("ring")), ranks=ranks, threads=1))
