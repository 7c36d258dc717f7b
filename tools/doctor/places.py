"""The disk of a folder or a graph file, measured for a moment, and the folders where Penstock keeps what it made."""

from __future__ import annotations

import json
import os
import shutil
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from penstock.storage.base import hardware_info
from penstock.storage.base.atomic import scratch_folder
from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import PenstockError
from penstock.storage.base.user_cache import kernel_places, shipped_places, user_cache
from penstock.tools.doctor.finding import Finding, Section

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
    compiled = Finding("compiled kernels", told)
    if trouble is not None:
        compiled = Finding("compiled kernels", told, "missing", trouble)
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
