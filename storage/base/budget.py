"""How much memory and how many cores this machine has, and what this process takes of them now.

This file alone reads cgroup limits (v1, v2 and the hybrid of both), and calls psutil: where /proc does not tell, since
importing it takes as long as a short command.
"""

import math
import mmap
import os
import re
import resource
from functools import cache
from pathlib import Path

from penstock.storage.base.errors import BudgetError, InputError, brief

DEFAULT_SHARE = 0.7
"""The share of the free memory that a run takes by default; the rest is for the page cache."""

LIBRARY_BYTES = 192 << 20
"""Address space that SciPy's and LLVM's libraries take when they are first used; where it is refused, some of them
wait for it for ever, or end the process."""

_UNIT = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}
_AVAILABLE = re.compile(r"^MemAvailable:\s*(\d+) kB", re.MULTILINE)
_SIZE = re.compile(r"\s*(\d{1,30}(?:\.\d*)?|\.\d+)\s*(?:([kmgtp]?)(i?b)?)\s*", re.IGNORECASE)


def parse_bytes(size: str | int) -> int:
    """Turn ``"1GiB"``, ``"800MB"``, ``"1.5g"`` or a plain number into bytes.

    A bare letter is binary, as in ``docker --memory`` and ``dd`` (``1g`` is 1 GiB); ``MB`` is
    10^6 and ``MiB`` is 2^20 bytes. Case does not matter.

    Raises:
        InputError: not a size, or less than one byte.
    """
    count = _bytes_of(size) if isinstance(size, str) else int(size)
    if count < 1:
        raise InputError(f"size {brief(str(size))!r} is not at least one byte; write for instance 512MiB")
    return count


def _bytes_of(text: str) -> int:
    match = _SIZE.fullmatch(text)
    if match is None:
        raise InputError(f"size {brief(text)!r} is not a number with a unit; write for instance 800MiB, 1.5GB or 2g")
    number, letter, ending = match.groups()
    letter = letter.lower()
    decimal = letter != "" and (ending or "").lower() == "b"
    unit = 1000 ** ("kmgtp".index(letter) + 1) if decimal else _UNIT[letter]
    return int(float(number) * unit) if "." in number else int(number) * unit


def format_bytes(count: float) -> str:
    """Write a number of bytes for people, in binary units: ``1.5 GiB``, ``17 B``, ``-2.0 KiB``."""
    size = abs(count)
    sign = "-" if count < 0 else ""
    if size < 1024:
        return f"{sign}{size:.0f} B"
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        size /= 1024
        if size < 1023.95:
            return f"{sign}{size:.1f} {unit}"
    return f"{sign}{size / 1024:.1f} PiB"


def too_small(option: str, budget: int, why: str, least: int, otherwise: str = "") -> BudgetError:
    """The refusal of a budget below the least that works, both in bytes; why: what takes how much of it."""
    reason = f"{option} {format_bytes(budget)} is too small: {why}"
    return BudgetError(option, reason, -(-least // (1 << 20)), otherwise)


def available_memory(root: Path = Path("/")) -> int:
    """Bytes that this process may still take: what is free in the machine, in its cgroups and below its own limit.

    Page cache counts as free, since the kernel gives it up on demand. ``root`` is where /proc and /sys are looked
    for (tests).
    """
    limits = [_free_in_machine()]
    limit = address_limit()
    if limit is not None:
        limits.append(limit - address_bytes())
    for folder in _cgroups(root, "memory"):
        limits.extend(_left_in(folder))
    return max(0, min(limits))


def address_limit() -> int | None:
    """Bytes of address space that this process may have (``ulimit -v``), None without a limit."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def limit_of(name: str) -> int | None:
    """Return a soft limit of this process, such as MEMLOCK (bytes) or NOFILE, None without one."""
    limit = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[0]
    return None if limit == resource.RLIM_INFINITY else limit


def physical_memory() -> int:
    """Return the bytes of memory of this machine, whatever limits there are."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def group_memory_limit(root: Path = Path("/")) -> int | None:
    """Return the least limit of the memory cgroups that hold this process, in bytes; None without one."""
    names = "memory.max", "memory.high", "memory.limit_in_bytes"
    limits = [_least(*(folder / name for name in names)) for folder in _cgroups(root, "memory")]
    return min((limit for limit in limits if limit is not None), default=None)


def address_bytes() -> int:
    """Bytes of address space that this process has."""
    return _held_by(None)[0]


def check_thread_room(count: int, more: int) -> None:
    """Raise MemoryError unless there is address space for so many threads: stacks (``ulimit -s``), and `more` each."""
    limit = resource.getrlimit(resource.RLIMIT_STACK)[0]
    check_room(count * ((8 << 20 if limit == resource.RLIM_INFINITY else limit) + more), "threads")


def check_room(size: int, what: str) -> None:
    """Raise MemoryError unless this process could allocate so many bytes now; they are not touched."""
    if size <= 0:
        return
    try:
        mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except OSError as error:
        raise MemoryError(f"{what} takes {format_bytes(size)}") from error


def resident_bytes(process: int | None = None) -> int:
    """Bytes of memory that a process of this user holds now (resident set); None: this one."""
    return _held_by(process)[1]


def is_running(process: int) -> bool:
    """Whether there is a process of this number on this machine."""
    import psutil

    return bool(psutil.pid_exists(process))


@cache
def process_space() -> str:
    """8 hexadecimal digits of the machine or container in which process numbers are those that this process sees."""
    import hashlib

    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    machine = (_read(Path("/etc/machine-id")) or "").strip()
    return hashlib.blake2b(f"{os.uname().nodename} {machine} {space}".encode(), digest_size=4).hexdigest()


def _free_in_machine() -> int:
    """Bytes that processes may still take, page cache included."""
    available = _AVAILABLE.search(_read(Path("/proc/meminfo")) or "")
    if available is not None:
        return int(available[1]) * 1024
    import psutil

    return int(psutil.virtual_memory().available)


def _held_by(process: int | None) -> tuple[int, int]:
    """Bytes of address space and of memory that a process has; None: this one."""
    pages = (_read(Path(f"/proc/{process or 'self'}/statm")) or "").split()
    if len(pages) > 1:
        return int(pages[0]) * mmap.PAGESIZE, int(pages[1]) * mmap.PAGESIZE
    import psutil

    memory = psutil.Process(process).memory_info()
    return int(memory.vms), int(memory.rss)


def peak_resident_bytes() -> int:
    """The most bytes this process has held (VmHWM) since its start."""
    status = _read(Path("/proc/self/status")) or ""
    match = re.search(r"^VmHWM:\s*(\d+) kB", status, re.MULTILINE)
    return int(match[1]) * 1024 if match else resident_bytes()


def mapped_files(beginning: str) -> set[str]:
    """Files of this name's beginning, not removed, of which this process has mapped memory."""
    return set(re.findall(rf"{re.escape(beginning)}\S*$", _read(Path("/proc/self/maps")) or "", re.MULTILINE))


def core_seconds() -> tuple[float, float]:
    """Seconds in which this process's first thread had a core, and waited for one, since its start; 0 if not known."""
    told = (_read(Path("/proc/self/schedstat")) or "").split()
    return (int(told[0]) / 1e9, int(told[1]) / 1e9) if len(told) > 1 else (0.0, 0.0)


def cores(root: Path = Path("/")) -> int:
    """Cores this process may use: its affinity, or its cgroups' CPU quota (rounded up) if less."""
    here = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    limits = [len(here)]
    for folder in _cgroups(root, "cpu"):
        limits.extend(_quota_of(folder))
    return max(1, min(limits))


def default_host_memory() -> int:
    """The ``--host-memory`` of a run that names none: a share of what is free, at least 64 MiB."""
    return max(64 << 20, int(available_memory() * DEFAULT_SHARE))


def _cgroups(root: Path, controller: str) -> list[Path]:
    """Folders of the cgroups that hold this process, innermost first, as far as they are visible.

    Inside a container the path in /proc/self/cgroup may belong to the host; of its ancestors only
    those that are mounted here can be seen, and the outermost is then the container's own.
    """
    mounts = root / "sys/fs/cgroup"
    found: list[Path] = []
    for line in (_read(root / "proc/self/cgroup") or "").splitlines():
        names, _, path = line.partition(":")[2].partition(":")
        if names == "":
            bases = [mounts, mounts / "unified"]
        elif controller in names.split(","):
            bases = [mounts / controller, mounts / names]
        else:
            continue
        inner = Path(path.strip("/"))
        for base in bases:
            found.extend(base / part for part in (inner, *inner.parents) if (base / part).is_dir())
    return list(dict.fromkeys(found))


def _left_in(folder: Path) -> list[int]:
    """What a memory cgroup leaves: its limit less its usage, file cache not counted; [] if none."""
    limit = _least(folder / "memory.max", folder / "memory.high")
    usage = _number(folder / "memory.current")
    cached = ("inactive_file", "active_file")
    if limit is None:
        limit = _number(folder / "memory.limit_in_bytes")
        usage = _number(folder / "memory.usage_in_bytes")
        cached = ("total_inactive_file", "total_active_file")
    if limit is None or usage is None:
        return []
    stat = dict(line.split()[:2] for line in (_read(folder / "memory.stat") or "").splitlines())
    reclaimable = sum(int(stat.get(name, 0)) for name in cached)
    return [limit - max(0, usage - reclaimable)]


def _least(*paths: Path) -> int | None:
    """The least of some limits: a group that passes ``memory.high`` is slowed down to a crawl, not killed."""
    limits = [limit for path in paths if (limit := _number(path)) is not None]
    return min(limits, default=None)


def _quota_of(folder: Path) -> list[int]:
    """Cores a CPU cgroup grants, rounded up; [] where it sets no quota."""
    fields = (_read(folder / "cpu.max") or "").split()
    if len(fields) != 2:
        quota = _read(folder / "cpu.cfs_quota_us")
        period = _read(folder / "cpu.cfs_period_us")
        fields = [(quota or "").strip(), (period or "").strip()]
    if not all(field.isdigit() for field in fields) or int(fields[1]) == 0:
        return []
    return [max(1, math.ceil(int(fields[0]) / int(fields[1])))]


def _number(path: Path) -> int | None:
    """The integer in a cgroup file; None if absent, ``max`` or v1's way of saying no limit."""
    text = (_read(path) or "").strip()
    if not text.isdigit():
        return None
    number = int(text)
    return number if number < 1 << 62 else None


def _read(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return None
