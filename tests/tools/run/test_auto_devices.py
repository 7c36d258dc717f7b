"""`--devices auto` on a machine with GPUs that are not there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from penstock.engine.resources.config import Config
from penstock.storage.format.graph import Graph
from penstock.tools.run import rank_devices
from penstock.tools.run.job import Job, JobStep
from penstock.tools.run.rank_devices import auto_devices as chosen
from penstock.tools.run.run_options import Execution
from penstock.transfer.devices import cuda
from penstock.transfer.values.rates import Rates
from support.graphs import on_disk, skewed
from support.oracles import EdgeList


class _Gpu(cuda.CudaDevice):
    memory_bytes = 0

    def __init__(self, number: int, memory_bytes: int | None) -> None: ...

    def close(self) -> None: ...


def job(path: Path, **options: Any) -> Job:
    execution = Execution.of((), None, None, None, False, "auto", **options)
    steps = (JobStep("pagerank", {"weight": False}), JobStep("wcc"))
    return SimpleNamespace(graph=path, steps=steps, execution=execution, opened=lambda: Graph.open(path))  # type: ignore[return-value]


def test_without_a_gpu_it_is_the_cores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cuda, "count", lambda: 0)
    assert chosen(job(tmp_path / "any.h5"), print) == ("cpu",)


@pytest.mark.parametrize(("link", "devices"), [(1e6, ("cuda:0", "cuda:1", "cpu")), (50e9, ("cuda:0", "cuda:1"))])
def test_cores_join_where_the_link_is_slow(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, link: float, devices: tuple[str, ...]
) -> None:
    graph = on_disk(EdgeList(200, *skewed(200, 20_000, 5), None, directed=True), tmp_path / "g.h5", chunk_edges=1024)
    asked: list[Config] = []

    def rates(graph: Any, config: Config, note: Any, path: Any, *, measure: bool) -> Any:
        asked.append(config)
        threads = config.thread_count
        gpu = replace(Rates.pcie5(threads), copy_bytes=link)
        return SimpleNamespace(rates=Rates.host(threads) if config.device == "cpu" else gpu)

    monkeypatch.setattr(cuda, "count", lambda: 2)
    monkeypatch.setattr(cuda, "CudaDevice", _Gpu)
    monkeypatch.setattr(rank_devices, "rates_for", rates)
    said: list[str] = []
    assert chosen(job(graph.path, threads=16), said.append) == devices
    assert [(one.device, one.threads) for one in asked] == [("cuda:0", 4), ("cpu", 8)]
    assert len(said) == 1
    assert said[0].startswith("penstock: --devices auto takes cuda:0, cuda:1")
