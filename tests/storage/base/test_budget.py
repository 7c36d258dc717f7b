"""Sizes are read and written right; cgroup limits (v1, v2, hybrid, nested) bound what is free."""

import os
from pathlib import Path

import numpy as np
import psutil
import pytest
from penstock.storage.base import budget
from penstock.storage.base.errors import InputError
from support.faults import memory_cgroup, python


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1GiB", 1 << 30),
        ("800MB", 800_000_000),
        ("1.5g", 3 << 29),
        ("64k", 64 << 10),
        ("  2 TiB ", 2 << 40),
        ("17", 17),
        ("17B", 17),
        ("1kb", 1000),
        (".5m", 1 << 19),
        (12345, 12345),
    ],
)
def test_sizes_are_read(text: str | int, expected: int) -> None:
    assert budget.parse_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "GiB", "-1g", "1 2", "1x", "0", "0.1", "1gg", "nan", 0, -5])
def test_what_is_no_size_is_refused_by_name(text: str | int) -> None:
    with pytest.raises(InputError, match="size"):
        budget.parse_bytes(text)


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1536, "1.5 KiB"),
        (1 << 20, "1.0 MiB"),
        ((1 << 20) - 1, "1.0 MiB"),
        (-(3 << 30), "-3.0 GiB"),
        (5 << 50, "5.0 PiB"),
    ],
)
def test_sizes_are_written(count: int, expected: str) -> None:
    assert budget.format_bytes(count) == expected


def _machine(root: Path, cgroup: str, files: dict[str, str]) -> Path:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(cgroup)
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


V2 = {
    "a/b/memory.max": "max\n",
    "a/b/memory.current": "5\n",
    "a/memory.max": "100000\n",
    "a/memory.current": "60000\n",
    "a/memory.stat": "anon 20000\ninactive_file 30000\nactive_file 5000\n",
    "a/b/cpu.max": "max 100000\n",
    "a/cpu.max": "50000 100000\n",
}
V1 = {
    "memory/memory.limit_in_bytes": "9223372036854771712\n",
    "memory/memory.usage_in_bytes": "1\n",
    "memory/x/memory.limit_in_bytes": "90000\n",
    "memory/x/memory.usage_in_bytes": "70000\n",
    "memory/x/memory.stat": "total_inactive_file 10000\ntotal_active_file 1000\n",
    "cpu,cpuacct/x/cpu.cfs_quota_us": "100\n",
    "cpu,cpuacct/x/cpu.cfs_period_us": "100\n",
}


@pytest.mark.parametrize(
    ("cgroup", "files", "left"),
    [
        ("0::/a/b\n", V2, 75000),
        ("4:memory:/x\n3:cpu,cpuacct:/x\n0::/\n", V1, 31000),
        ("0::/\n", {"memory.max": "0\n", "memory.current": "4096\n"}, 0),
        ("0::/\n", {"memory.max": "max\n", "memory.high": "9000\n", "memory.current": "4096\n"}, 4904),
        ("0::/\n", {"memory.max": "8000\n", "memory.high": "max\n", "memory.current": "4096\n"}, 3904),
        ("5:memory:/x\n0::/a\n", {**V1, "unified/a/memory.max": "300\n", "unified/a/memory.current": "100\n"}, 200),
        ("4:memory:/gone/elsewhere\n", {"memory/memory.limit_in_bytes": "500\n",
                                        "memory/memory.usage_in_bytes": "100\n"}, 400),
    ],
)  # fmt: skip
def test_the_tightest_cgroup_bounds_memory(tmp_path: Path, cgroup: str, files: dict[str, str], left: int) -> None:
    assert budget.available_memory(_machine(tmp_path, cgroup, files)) == left


@pytest.mark.parametrize(
    ("cgroup", "files"),
    [("0::/a/b\n", V2), ("3:cpu,cpuacct:/x\n", V1)],
)
def test_a_cpu_quota_bounds_the_cores(tmp_path: Path, cgroup: str, files: dict[str, str]) -> None:
    assert budget.cores(_machine(tmp_path, cgroup, files)) == 1


def test_without_cgroups_the_machine_is_the_limit(tmp_path: Path) -> None:
    free = psutil.virtual_memory().available
    assert budget.available_memory(tmp_path) == pytest.approx(free, rel=0.2)
    assert budget.cores(tmp_path) == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("name", ["v1", "v2"])
def test_a_default_budget_is_a_share_of_what_a_cgroup_leaves(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a conversion's too: both ask here."""
    limit, used = 3 << 30, 1 << 30
    files = {
        "v1": ("4:memory:/x\n", {"memory/x/memory.limit_in_bytes": limit, "memory/x/memory.usage_in_bytes": used}),
        "v2": ("0::/x\n", {"x/memory.max": limit, "x/memory.current": used}),
    }[name]
    root = _machine(tmp_path, files[0], {path: f"{value}\n" for path, value in files[1].items()})
    real = budget.available_memory
    monkeypatch.setattr(budget, "available_memory", lambda: real(root))
    assert budget.default_host_memory() == int(budget.DEFAULT_SHARE * min(limit - used, real(tmp_path / "none")))


def test_a_cgroup_of_this_machine_bounds_the_default() -> None:
    code = "from penstock.storage.base.budget import default_host_memory; print(default_host_memory())"
    with memory_cgroup(400 << 20) as group:
        child = python(code, cgroup=group)
    assert child.returncode == 0, child.stderr
    assert int(child.stdout) <= 400 << 20


def test_this_machine_has_something_to_give() -> None:
    assert 0 < budget.default_host_memory() <= max(64 << 20, budget.available_memory() * 1.2)
    assert budget.cores() >= 1


def test_the_peak_follows_a_large_array() -> None:
    size = 64 << 20
    before = budget.resident_bytes()
    array = np.ones(size, dtype=np.uint8)
    assert budget.resident_bytes() >= before + size * 3 // 4
    del array
    assert budget.peak_resident_bytes() >= before + size * 3 // 4
