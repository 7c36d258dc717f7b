"""The page of `penstock doctor`: what is there is told, what is missing has a way out, only what is needed fails."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from penstock.tools import cli
from penstock.tools.doctor import finding, machine, packages
from penstock.tools.doctor.finding import IMPORTS, Child, Finding, Section, verdict
from support.json_page import check_documented

WORKS = {
    "cupy": "14.1.0", "runtime": 13000, "driver": 13010, "devices": 1, "free_bytes": 60 << 30, "total_bytes": 80 << 30,
    "kernel": True,
}  # fmt: skip
H100 = {"name": "NVIDIA H100", "memory.total": "81559 MiB", "driver_version": "580.1", "compute_cap": "9.0"}


def test_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run_command(["doctor", str(tmp_path), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    check_documented(facts)
    assert facts["works"]
    assert facts["sections"]["packages"].keys() >= {"numpy", "numba", "h5py"}
    assert facts["sections"]["disk"]["place"] == str(tmp_path)
    assert facts["sections"]["memory"]["free_bytes"] > 0
    assert list(tmp_path.iterdir()) == []
    assert cli.run_command(["doctor", str(tmp_path / "none")]) == 2
    assert "does not exist; name a folder, or a graph file" in capsys.readouterr().err


def test_what_is_needed_and_broken_ends_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Child, "__init__", lambda self, *told: None)
    monkeypatch.setattr(Child, "answer", lambda self: ({"numba": "ImportError: no LLVM"}, ""))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr(machine, "disk", lambda place: Section("Disk"))
    assert cli.run_command(["doctor", str(tmp_path)]) == 1
    shown = capsys.readouterr()
    assert "cannot be imported: ImportError: no LLVM  <- broken" in shown.out
    assert "; pip install --force-reinstall numba" in shown.out
    assert shown.err == "penstock: this installation does not work: numba\n"


def test_what_is_broken_comes_first() -> None:
    page = [Section("A", [Finding("x", "absent", "missing", "get it")]), Section("B", [Finding("y", "bad", "broken")])]
    assert verdict(page) == ["broken: y: bad", "missing: x: absent; get it"]
    assert verdict([Section("A", [Finding("x", "there")])]) == ["all is well"]


def test_sources_that_are_not_installed_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise packages.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(packages.metadata, "version", absent)
    (one,) = packages.needed({}, "").findings
    assert (one.name, one.state, one.way_out) == ("penstock", "missing", "pip install . in its sources")
    assert packages.optional(has_gpu=False).findings == []


@pytest.mark.parametrize(
    ("versions", "version", "allowed"),
    [
        (">=2.0", "2.0.0", True), (">=2.0", "1.26", False), (">=2.0,<2.5", "2.5.1", False),
        ("<2.5,>=2.0", "2.4.6", True),
        (">=8.1", "8.10", True), ("", "1", True), ("~=3", "1", True), (">=3.2", "3.2rc1", True),
    ],
)  # fmt: skip
def test_versions_are_compared(versions: str, version: str, allowed: bool) -> None:
    assert packages.allows(versions, version) is allowed


def test_requirements_are_read_from_metadata() -> None:
    lines = [
        "numpy>=2.0",
        'numba-cuda[cu13]>=0.30; extra == "cuda"',
        'x<3,>=2; sys_platform == "linux" and extra == "a"',
    ]
    assert packages.requirements(lines=lines) == {"numpy": ">=2.0"}
    assert packages.requirements("cuda", lines) == {"numba-cuda": ">=0.30"}
    assert packages.requirements("a", lines) == {"x": "<3,>=2"}
    assert [packages.module_of(name) for name in ("numpy", "numba-cuda")] == ["numpy", "numba_cuda"]
    assert all(packages.requirements(extra) for extra in ("", *packages.PURPOSE))


@pytest.mark.parametrize(
    ("seen", "asked", "told", "state"),
    [
        ([], None, "none: no NVIDIA GPU, or no driver for it", "ok"),
        ([H100], None, "CuPy is not installed", "missing"),
        (
            [H100],
            (WORKS, ""),
            "compiled and run: CuPy 14.1.0, CUDA 13.0 (driver: 13.1); 60.0 GiB of 80.0 GiB free",
            "ok",
        ),
        ([H100], (WORKS | {"driver": 12040}, ""), "the driver supports CUDA 12.4, and CuPy is of CUDA 13.0", "missing"),
        ([H100], (WORKS | {"kernel": False}, ""), "a kernel gave a wrong answer", "missing"),
        ([H100], ({"cupy_error": "ImportError: libcuda"}, ""), "ImportError: libcuda", "missing"),
        ([H100], ({}, "no answer within 20 s"), "no answer within 20 s", "missing"),
        ([], ({"cupy": "14.1.0"}, ""), "CuPy 14.1.0 is installed, and there is no driver", "ok"),
    ],
)
def test_gpus(seen: list[dict[str, str]], asked: Any, told: str, state: str, tmp_path: Path) -> None:
    last = machine.gpus(seen, asked, tmp_path).findings[-1]
    assert (last.told, last.state) == (told, state)
    assert (last.way_out == "") == (state == "ok")


def test_gpus_are_named_as_the_driver_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = tmp_path / "nvidia-smi"
    command.write_text(f"#!/bin/sh\necho '{', '.join(H100.values())}'\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert machine.driver_gpus() == [H100]
    command.write_text("#!/bin/sh\nexit 9\n")
    assert machine.driver_gpus() == []


def test_mpi() -> None:
    assert [one.state for one in machine.mpi(None).findings] == ["ok"]
    found = {"version": "4.1", "library": "MPICH   Version:  5"}
    assert machine.mpi((found, "")).findings[0].told == "4.1, MPICH Version: 5"
    assert machine.mpi(({}, "RuntimeError: cannot load MPI")).findings[0].state == "missing"


def test_limits_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / machine.HUGE_PAGES).parent.mkdir(parents=True)
    (tmp_path / machine.HUGE_PAGES).write_text("always [madvise] never\n")
    monkeypatch.setattr(machine, "address_limit", lambda: 4 << 30)
    found = {one.name: one for section in machine.machine(tmp_path) for one in section.findings}
    assert found["huge pages"].told == "madvise"
    assert found["address space (ulimit -v)"].told == "4.0 GiB"
    assert found["address space (ulimit -v)"].state == "missing"
    assert found["python"].state == "ok"


def test_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in ("NUMBA_CACHE_DIR", "PENSTOCK_KERNELS"):
        monkeypatch.delenv(name, raising=False)
    assert machine.caches().values["kernel_files"] == 0
    folder = tmp_path / "penstock"
    (folder / "kernels").mkdir(parents=True)
    (folder / "kernels" / "one").write_bytes(b"123")
    facts = machine.hardware_info.facts()
    for name, cores in (("a", facts["cores"]), ("b", facts["cores"] + 1)):
        rates = {
            "machine": {**facts, "cores": cores, "device": {"kind": "host"}},
            "date": "2026-11-23T10:00",
            "quick": True,
        }
        (folder / f"rates-{name}.json").write_text(json.dumps(rates))
    (folder / "rates-c.json").write_text("[]")
    found = machine.caches()
    assert found.findings[0].told == f"{folder / 'kernels'}: 1 files, 3 B"
    assert found.findings[1].told == "host, 2026-11-23, quickly"
    assert [one["here"] for one in found.values["rates"]] == [True, False]
    (tmp_path / "site").mkdir(mode=0o755)
    (tmp_path / "site" / "two").write_bytes(b"45")
    monkeypatch.setenv("PENSTOCK_KERNELS", str(tmp_path / "site"))
    found = machine.caches()
    assert found.findings[0].told == f"{folder / 'kernels'} and {tmp_path / 'site'}: 2 files, 5 B"
    assert found.values["kernels"] == str(folder / "kernels")


def test_a_child_that_crashes_or_hangs_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Child("import os; os.abort()").answer() == ({}, "the process ended with code -6")
    assert Child("raise ImportError('no')").answer() == ({}, "ImportError: no")
    assert Child(IMPORTS, "json", "no_such").answer() == (
        {"no_such": "ModuleNotFoundError: No module named 'no_such'"}, "",
    )  # fmt: skip
    monkeypatch.setattr(finding, "PATIENCE", 0.0)
    assert Child("import time; time.sleep(60)").answer() == ({}, "no answer within 0 s")


def test_a_file_is_read_itself(tmp_path: Path) -> None:
    file = tmp_path / "g.h5"
    file.write_bytes(bytes(1 << 16))
    found = machine.disk(file)
    assert found.findings[0].told == str(file)
    assert found.values.get("direct_reads", False) or found.findings[-1].told.startswith("not measured: ")
    assert "numpy" in sys.modules
