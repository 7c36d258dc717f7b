"""Which tests are not in the fast loop, `pytest -m fast -n auto`: they compile much, simulate a GPU or start processes.

Patterns of paths below tests/, chosen by seconds of CPU (`*` also matches `/`). All other tests are fast, unless a test
is marked with `@pytest.mark.slow`.
"""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]

SLOW = (
    "engine/execution/*",
    "engine/kernels/*",
    "engine/programs/*",
    "engine/resources/test_device_resources.py",
    "engine/resources/test_host_memory_growth.py",
    "engine/resources/test_least_budget.py",
    "gpu/*",
    "storage/convert/test_compiled_kernels.py",
    "storage/convert/test_memory_growth.py",
    "storage/read/test_hostile_files.py",
    "test_benchmarks.py",
    "test_disk_faults.py",
    "test_failing_calls.py",
    "test_graphalytics.py",
    "test_kills.py",
    "test_parity.py",
    "test_ratings.py",
    "test_refused_memory.py",
    "test_run_faults.py",
    "test_shared_data.py",
    "tools/commands/test_demo.py",
    "tools/networkx/*",
)


def is_slow(path: Path) -> bool:
    """Whether a whole test file is slow."""
    if path.suffix != ".py" or TESTS not in path.parents:
        return False
    return any(fnmatch(path.relative_to(TESTS).as_posix(), pattern) for pattern in SLOW)
