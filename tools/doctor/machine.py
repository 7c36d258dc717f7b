"""What this process has of the machine: Python, processor, memory, GPUs, MPI, a disk, and what is kept in caches."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from penstock import __version__
from penstock.storage.base import hardware_info
from penstock.storage.base.atomic import scratch_folder
from penstock.storage.base.budget import (
    address_limit,
    available_memory,
    cores,
    default_host_memory,
    format_bytes,
    group_memory_limit,
    limit_of,
    physical_memory,
)
from penstock.storage.base.errors import PenstockError, installing
from penstock.storage.base.hardware_info import module_version
from penstock.storage.base.user_cache import kernel_places, shipped_places, user_cache
from penstock.tools.base.joined_ranks import installed_mpiexec
from penstock.tools.doctor.finding import Finding, Section

LEAST_PYTHON, BEYOND_PYTHON = (3, 11), (3, 14)
LITTLE = 1 << 30
"""Bytes of free memory below which most graphs do not fit."""
HUGE_PAGES = Path("sys/kernel/mm/transparent_hugepage/enabled")
OVERCOMMIT = Path("proc/sys/vm/overcommit_memory")


def machine(root: Path = Path("/")) -> list[Section]:
    """Return what is found of Python, processor and memory."""
    return [_software(), _processor(root), _memory(root)]


def _software() -> Section:
    here, version = sys.version_info[:2], platform.python_version()
    right = LEAST_PYTHON <= here < BEYOND_PYTHON
    low, high = (".".join(map(str, one)) for one in (LEAST_PYTHON, (BEYOND_PYTHON[0], BEYOND_PYTHON[1] - 1)))
    findings = [
        Finding("penstock", f"{__version__}, {Path(__file__).parents[2]}"),
        Finding(
            "python",
            f"{version}, {sys.executable}",
            "ok" if right else "broken",
            "" if right else f"use Python {low} to {high}",
        ),
        Finding("system", platform.platform()),
    ]
    return Section("Software", findings, {"penstock": __version__, "python": version, "system": platform.platform()})


def _processor(root: Path) -> Section:
    facts = hardware_info.facts(root)
    there, usable = os.cpu_count() or 1, cores(root)
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else there
    load = os.getloadavg()[0]
    why = "" if usable == there else f" of {there}: {'a CPU quota' if usable < allowed else 'affinity'} leaves no more"
    findings = [
        Finding("processor", facts["processor"]),
        Finding("cores", f"{usable} to use{why}"),
        Finding("load", f"{load:.2f} processes are running or waiting (last minute)"),
    ]
    values = {"processor": facts["processor"], "cores": there, "affinity": allowed, "usable": usable, "load": load}
    return Section("Processor", findings, values)


def _memory(root: Path) -> Section:
    free, group, address = available_memory(root), group_memory_limit(root), address_limit()
    locked, files = limit_of("MEMLOCK"), limit_of("NOFILE")
    huge, overcommit = _chosen(root / HUGE_PAGES), _chosen(root / OVERCOMMIT)
    low = free < LITTLE
    findings = [
        Finding("memory", format_bytes(physical_memory())),
        Finding(
            "free for a run",
            f"{format_bytes(free)}; --host-memory is {format_bytes(default_host_memory())} by default",
            "missing" if low else "ok",
            "end other processes, or run where more is free" if low else "",
        ),
        Finding("limit of the cgroup", _limit(group)),
        Finding(
            "address space (ulimit -v)",
            _limit(address),
            "ok" if address is None else "missing",
            "" if address is None else "raise it, ulimit -v unlimited: kernels are compiled in this process otherwise",
        ),
        Finding("page-locked memory (ulimit -l)", _limit(locked)),
        Finding("open files (ulimit -n)", "no limit" if files is None else f"{files:,}"),
        Finding("huge pages", huge or "not known"),
    ]
    if overcommit == "2":
        findings.append(Finding("overcommit", "2: the system refuses memory before it is used up"))
    values = {
        "total_bytes": physical_memory(), "free_bytes": free, "default_host_memory": default_host_memory(),
        "cgroup_bytes": group, "address_bytes": address, "locked_bytes": locked, "open_files": files,
        "huge_pages": huge, "overcommit": overcommit,
    }  # fmt: skip
    return Section("Memory", findings, values)


def _limit(size: int | None) -> str:
    return "no limit" if size is None else format_bytes(size)


def _chosen(path: Path) -> str | None:
    """The word in brackets of a file such as ``always [madvise] never``, or all of it; None where there is none."""
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return text.partition("[")[2].partition("]")[0] or text


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
    launcher, way_out = installed_mpiexec(), installing("ranks")
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


WRITTEN = 64 << 20
WRITING_SECONDS, READING_SECONDS = 0.7, 0.5
BLOCK_BYTES, IN_FLIGHT = 1 << 20, 8


class _EnoughError(Exception):
    """The time for writing is over."""


def disk(place: Path) -> Section:
    """Return what is found of the disk that a folder, or a graph file, is on."""
    folder = place if place.is_dir() else place.parent
    usage = shutil.disk_usage(folder)
    findings = [
        Finding("place", str(place.absolute())),
        Finding("free", f"{format_bytes(usage.free)} of {format_bytes(usage.total)}"),
    ]
    values: dict[str, Any] = {"place": str(place.absolute()), "free_bytes": usage.free, "total_bytes": usage.total}
    try:
        told = _measured(place, values)
    except (PenstockError, OSError, ImportError) as error:
        findings.append(Finding("reads", f"not measured: {error}"))
    else:
        findings += told
    return Section("Disk", findings, values)


def _measured(place: Path, values: dict[str, Any]) -> list[Finding]:
    """Read a graph file, or a new file in a folder. Raises InputError where the file system takes no direct reads."""
    from penstock.storage.format.direct_io import OpenFile
    from penstock.storage.read.disk_probe import DiskBlocks, DiskProbe, direct_files, spread, whole_file

    found = []
    with ExitStack() as stack:
        path = place
        if place.is_dir():
            path = stack.enter_context(scratch_folder(place)) / "probe"
            size, took = _write(path)
            values["write_bytes_per_second"] = size / took
            found.append(Finding("writes", f"{size / took / 1e6:,.0f} MB/s until they are on the disk"))
        files = stack.enter_context(direct_files([OpenFile(path)]))
        blocks = DiskBlocks([whole_file(0, path.stat().st_size)], BLOCK_BYTES)
        probe = DiskProbe(files, IN_FLIGHT * BLOCK_BYTES)
        sample = probe.rate(blocks, spread(len(blocks), 8, 1), IN_FLIGHT, READING_SECONDS)
    values |= {"direct_reads": True, "read_bytes_per_second": sample.rate}
    new = ", of a new file, which may be faster than a large old one" if path != place else ""
    found.append(Finding("reads", f"{sample.rate / 1e6:,.0f} MB/s, past the page cache{new}"))
    return found


def _write(path: Path) -> tuple[int, float]:
    """Fill a file until it has its size or the time is over; return its bytes, and seconds until they are durable."""
    from penstock.storage.base.atomic import flush
    from penstock.storage.read.disk_probe import write_probe_file

    began = time.perf_counter()

    def enough(done: int) -> None:
        if done < WRITTEN and time.perf_counter() - began > WRITING_SECONDS:
            raise _EnoughError

    try:
        write_probe_file(path, WRITTEN, enough)
    except _EnoughError:
        flush(path)
    return path.stat().st_size, time.perf_counter() - began


def caches() -> Section:
    """Return what is kept of compiled kernels, and of measured rates."""
    try:
        rates = user_cache()
    except PenstockError as error:
        return Section("Caches", [Finding("folder", str(error), "missing", "set XDG_CACHE_HOME")])
    own, trouble = kernel_places()
    folders = *own, *shipped_places()
    sizes = [one.stat().st_size for folder in folders if folder.is_dir() for one in os.scandir(folder) if one.is_file()]
    told = f"{' and '.join(map(str, folders)) or 'kept nowhere'}: {len(sizes):,} files, {format_bytes(sum(sizes))}"
    compiled = Finding("compiled kernels", told, "ok" if trouble is None else "missing", trouble or "")
    files = sorted(path for path in rates.glob("rates-*.json") if path.is_file())
    known = [found for path in files if (found := _rates_in(path)) is not None]
    told = "; ".join(
        f"{one['device']}, {one['date']}{', quickly' if one['quick'] else ''}" for one in known if one["here"]
    )
    told = told or f"none of this machine in {rates}; penstock calibrate measures them"
    findings = [compiled, Finding("measured rates", told)]
    values = {
        "kernels": str(own[0]) if own else "",
        "kernel_files": len(sizes),
        "kernel_bytes": sum(sizes),
        "rates": known,
    }
    return Section("Caches", findings, values)


def _rates_in(path: Path) -> dict[str, Any] | None:
    """When and on what rates were measured, and whether that is this machine; None for what is no file of rates."""
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        machine = facts["machine"]
        here = {name: machine.get(name) for name in ("processor", "cores", "penstock")}
        device = machine["device"]
        told = {"device": str(device.get("name", device["kind"])), "date": str(facts["date"])[:10]}
        return {"file": str(path), **told, "quick": bool(facts.get("quick")), "here": here == hardware_info.facts()}
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return None
