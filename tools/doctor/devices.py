"""GPUs, their driver, and what reaches them; MPI."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import installing
from penstock.storage.base.hardware_info import module_version
from penstock.tools.doctor.finding import Finding, Section

ASKED = "name,memory.total,driver_version,compute_cap"
SLOW = 5.0
"""Seconds after which nvidia-smi is not waited for."""


def driver_gpus() -> list[dict[str, str]]:
    """Return the GPUs that nvidia-smi names; none where it is not there or has no answer."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return []
    try:
        done = subprocess.run(
            [command, f"--query-gpu={ASKED}", "--format=csv,noheader"],
            capture_output=True, text=True, timeout=SLOW, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return []
    rows = done.stdout.splitlines() if done.returncode == 0 else []
    return [dict(zip(ASKED.split(","), map(str.strip, row.split(",")), strict=False)) for row in rows if row.strip()]


def gpus(seen: list[dict[str, str]], asked: tuple[dict[str, Any], str] | None, root: Path = Path("/")) -> Section:
    """Return what is found of GPUs.

    seen: as the driver names them. asked: what CuPy and numba-cuda answered, and why not; None where CuPy is not
    installed.
    """
    driver = module_version("nvidia", root) or (seen[0]["driver_version"] if seen else None)
    values: dict[str, Any] = {"driver": driver, "seen": seen, "libraries": asked[0] if asked else None}
    findings = [Finding("driver", driver or "none: no NVIDIA GPU, or no driver for it")]
    for number, one in enumerate(seen):
        told = f"{one.get('name')}, {one.get('memory.total')}, compute capability {one.get('compute_cap')}"
        findings.append(Finding(f"cuda:{number}", told))
    if driver is None and asked is None:
        return Section("GPU", findings, values)
    findings.append(_reached(asked, driver))
    return Section("GPU", findings, values)


def _reached(asked: tuple[dict[str, Any], str] | None, driver: str | None) -> Finding:
    """Whether kernels run on a GPU."""
    if asked is None:
        return Finding("kernels on it", "CuPy is not installed", "missing", installing("cuda"))
    found, trouble = asked
    runtime, supported = found.get("runtime", 0), found.get("driver", 0)
    error = trouble or found.get("cupy_error") or found.get("numba_error") or ""
    if driver is None:
        return Finding("kernels on it", f"CuPy {found.get('cupy', '')} is installed, and there is no driver")
    if runtime // 1000 > supported // 1000 > 0:
        told = f"the driver supports CUDA {_cuda(supported)}, and CuPy is of CUDA {_cuda(runtime)}"
        way_out = (
            f"update the driver, or pip install cupy-cuda{supported // 1000}x in place of cupy-cuda{runtime // 1000}x"
        )
        return Finding("kernels on it", told, "missing", way_out)
    if error or not found.get("kernel"):
        told = error or "a kernel gave a wrong answer"
        again = installing("cuda").replace("install", "install --force-reinstall")
        way_out = f"{again}; nvidia-smi says whether the driver works"
        return Finding("kernels on it", told, "missing", way_out)
    free, total = format_bytes(found["free_bytes"]), format_bytes(found["total_bytes"])
    versions = f"CuPy {found['cupy']}, CUDA {_cuda(runtime)} (driver: {_cuda(supported)})"
    return Finding("kernels on it", f"compiled and run: {versions}; {free} of {total} free")


def _cuda(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"


def mpi(asked: tuple[dict[str, Any], str] | None) -> Section:
    """Return what is found of MPI; asked: what mpi4py answered, and why not; None where it is not installed."""
    beside = Path(sysconfig.get_path("scripts")) / "mpiexec"
    launcher = str(beside) if beside.exists() else shutil.which("mpiexec")
    way_out = installing("ranks")
    values = {"mpiexec": launcher, "library": asked[0].get("library") if asked else None}
    if asked is None:
        return Section("MPI", [Finding("mpi4py", "not installed: it is for several processes (--devices)")], values)
    found, trouble = asked
    findings = [
        Finding("mpi4py", f"{found['version']}, {' '.join(found['library'].split())}")
        if found
        else Finding("mpi4py", f"finds no MPI: {trouble}", "missing", way_out),
        Finding("mpiexec", launcher) if launcher else Finding("mpiexec", "not found", "missing", way_out),
    ]
    return Section("MPI", findings, values)
