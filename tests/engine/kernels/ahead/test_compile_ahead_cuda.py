"""What a companion compiles for a GPU are the kernels that a run launches, for the types that it launches them with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine.kernels.ahead import compile_ahead_cuda
from penstock.engine.kernels.cuda import compiler, cubin_cache, driver
from penstock.engine.kernels.cuda.cubin_cache import key_of
from penstock.engine.kernels.packed.cuda_unpacker import CudaUnpacker
from penstock.engine.program.program_description import describe_program
from penstock.engine.programs.cdlp import CDLP
from penstock.engine.programs.collaborative import CollaborativeFiltering
from penstock.engine.programs.hyperball import HyperBall
from penstock.engine.programs.triangles import LCC
from penstock.engine.session import Session
from penstock.storage.companion.claims import Claims
from penstock.storage.format.index import WIDEST_SHIFT
from penstock.transfer.devices.device import UnpackRequest
from penstock.transfer.devices.emulated import EmulatedDevice
from support.graphs import in_memory, skewed
from support.oracles import EdgeList
from support.program_cases import program_of

Kernel = tuple[str, str]
EDGES = EdgeList(300, *skewed(300, 3000, 5), np.ones(3000, np.uint8), True)


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> set[Kernel]:
    """Every kernel that is launched, by name and by the key under which it is kept."""
    found: set[Kernel] = set()
    launch = driver.DeviceKernel.__call__

    def noting(kernel: Any, blocks: int, *arguments: Any) -> None:
        types = tuple(driver.type_of(argument) for argument in arguments)
        found.add((kernel.function.__qualname__, key_of(kernel.function, types, (9, 0))))
        launch(kernel, blocks, *arguments)

    monkeypatch.setattr(driver.DeviceKernel, "__call__", noting)
    return found


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Kernel]]:
    """Every kernel that is compiled; compiling is left out, and none is kept."""
    found: list[Kernel] = []

    def compile_for(function: Any, types: Any, capability: Any, block: int) -> bytes:
        found.append((function.__qualname__, key_of(function, types, capability)))
        return b""

    monkeypatch.setattr(compiler, "compile_for", compile_for)
    monkeypatch.setattr(cubin_cache._STORE, "take", lambda key: None)
    monkeypatch.setattr(cubin_cache._STORE, "keep", lambda key, content: None)
    monkeypatch.setattr(driver, "use_capability", lambda capability: None)
    yield found
    driver.launch_again()


def job_of(program: Any, weights: str | None, folder: Path, *, apart: bool) -> dict[str, Any]:
    return {
        "program": describe_program(program),
        "directions": ["push", "pull"], "apart": apart, "vertices": "uint32", "weights": weights,
        "capability": [9, 0], "packed": True, "folder": str(folder), "number": 0, "processes": 1,
        "hot_first": False, "counts": True, "both": False, "resident": False, "paged": False,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["bfs", "sssp", "sweeps", "wcc"])
def test_nearly_all_kernels_of_a_run_are_compiled_for_its_types(
    name: str, launched: set[Kernel], compiled: list[Kernel], tmp_path: Path
) -> None:
    weights = "uint8" if name == "sssp" else None
    program = program_of(name, EDGES)
    for memory in (2700, 1 << 20):
        with Session(in_memory(EDGES), device="emulated", kernels="cuda", device_edge_memory=memory) as session:
            session.run(program_of(name, EDGES))
            apart = session._asks(program).apart
    ran = set(launched)
    compile_ahead_cuda.compile_all(job_of(program, weights, tmp_path, apart=apart), Claims(tmp_path))
    assert len(compiled) == len(set(compiled))
    late = {"largest_tree", "mark_outside", "link_listed"}
    missing = {kernel for kernel in ran - set(compiled) if kernel[0] not in late}
    assert len(missing) <= 1, missing
    # Rows of unsettled vertices, and rows that follow (two): large graphs over links; four kernels decode packed edges:
    # ids and weights, two ways.
    assert len(set(compiled) - ran) <= 12, set(compiled) - ran


@pytest.mark.parametrize("program", [CDLP(max_iter=2), LCC(), HyperBall(), CollaborativeFiltering(max_iter=2)])
def test_kernels_of_whole_rows_are_compiled_for_their_types(
    program: Any, launched: set[Kernel], compiled: list[Kernel], tmp_path: Path
) -> None:
    weights = "uint8" if isinstance(program, CollaborativeFiltering) else None
    described = describe_program(program)
    with Session(in_memory(EDGES), device="emulated", kernels="cuda") as session:
        session.run(program)
        apart = session._asks(program).apart
    ran = set(launched)
    job = job_of(program, weights, tmp_path, apart=apart) | {"program": described, "packed": False, "resident": True}
    compile_ahead_cuda.compile_all(job, Claims(tmp_path))
    assert ran <= set(compiled)


def test_decoding_rows_of_pages_is_compiled(launched: set[Kernel], compiled: list[Kernel], tmp_path: Path) -> None:
    rows = np.zeros(1 << WIDEST_SHIFT, np.uint32)
    request = UnpackRequest(
        words=np.zeros(1, np.uint32), first_word=0, starts=np.zeros(2, np.int64), first_chunk=0, last_chunk=0,
        chunk_edges=256, edges=0, out=rows, first_edge=0, limit=0, values=True, marks=None, summed=len(rows),
    )  # fmt: skip
    CudaUnpacker(EmulatedDevice()).unpack(request, None)
    jobs = job_of(program_of("wcc", EDGES), None, tmp_path, apart=False)
    compile_ahead_cuda.compile_all(jobs | {"packed": False, "paged": True}, Claims(tmp_path))
    assert launched <= set(compiled)


def test_what_another_process_has_taken_is_not_compiled(compiled: list[Kernel], tmp_path: Path) -> None:
    program = program_of("wcc", EDGES)
    job = job_of(program, None, tmp_path, apart=False)
    compile_ahead_cuda.compile_all(job, Claims(tmp_path))
    first = len(compiled)
    assert Claims(tmp_path).counts() == (first, first)
    compile_ahead_cuda.compile_all(job, Claims(tmp_path))
    assert first == len(compiled) > 0


def test_processes_begin_with_different_kernels(
    compiled: list[Kernel], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last one with those of the host that read a graph."""
    program = program_of("bfs", EDGES)
    orders = []
    reading: list[tuple[int, int]] = []
    monkeypatch.setattr(
        compile_ahead_cuda, "compile_listed", lambda job, claims: reading.append((job["number"], len(compiled)))
    )
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        job = job_of(program, None, folder, apart=True) | {"number": number, "processes": 2, "listed": []}
        compiled.clear()
        compile_ahead_cuda.compile_all(job, Claims(folder))
        orders.append(list(compiled))
    assert sorted(orders[0]) == sorted(orders[1])
    assert orders[0][1] != orders[1][1]  # the first serves every row index
    assert reading == [(1, 0)]


def test_pushes_that_keep_sums_are_compiled_where_they_may_run(compiled: list[Kernel], tmp_path: Path) -> None:
    """On graphs whose first vertices have the most edges, for programs that sum."""
    counts = {}
    for name, hot_first in (("sweeps", True), ("sweeps", False), ("wcc", True)):
        folder = tmp_path / f"{name}{hot_first}"
        folder.mkdir()
        compiled.clear()
        job = job_of(program_of(name, EDGES), None, folder, apart=True) | {"hot_first": hot_first}
        compile_ahead_cuda.compile_all(job, Claims(folder))
        counts[name, hot_first] = sum("replicas" in kernel[0] for kernel in compiled)
    assert counts == {("sweeps", True): 1, ("sweeps", False): 0, ("wcc", True): 0}


def test_what_crosses_a_link_is_not_compiled_where_all_edges_are_resident(
    compiled: list[Kernel], tmp_path: Path, launched: set[Kernel]
) -> None:
    program = program_of("bfs", EDGES)
    with Session(in_memory(EDGES), device="emulated", kernels="cuda") as session:
        session.run(program_of("bfs", EDGES))
        apart = session._asks(program).apart
    ran = set(launched)
    job = job_of(program, None, tmp_path, apart=apart) | {"resident": True, "packed": False, "counts": False}
    compile_ahead_cuda.compile_all(job, Claims(tmp_path))
    assert ran <= set(compiled)
    assert {name for name, _ in set(compiled) - ran} <= {
        "make_push_list.<locals>.push_list", "make_push_rows.<locals>.push_rows",
    }  # fmt: skip
