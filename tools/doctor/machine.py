"""Python, processor, memory and their limits, as this process has them; nothing heavy is imported."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

from penstock import __version__
from penstock.storage.base import hardware_info
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
