"""Which tests are not in the fast loop, `pytest -m fast -n auto`: they compile much, simulate a GPU or start processes.

Chosen by seconds of CPU with compiled kernels in the cache: files of more than two, tests of more than one with all
their parameters. All other tests are fast, unless a test is marked with `@pytest.mark.slow`.
"""

from __future__ import annotations

from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]

SLOW_FILES = (
    "campaigns/*",
    "engine/checkpoint/test_checkpoint.py",
    "engine/execution/*",
    "engine/kernels/*",
    "engine/programs/*",
    "engine/ranks/test_device_exchange.py",
    "engine/ranks/test_device_ranks.py",
    "engine/ranks/test_ranks_programs.py",
    "engine/resources/test_device_resources.py",
    "engine/resources/test_host_memory_growth.py",
    "engine/resources/test_least_budget.py",
    "engine/resources/test_packed_edges.py",
    "engine/resources/test_packed_sweeps.py",
    "engine/queries/test_device_samples.py",
    "engine/queries/test_device_walks.py",
    "engine/queries/test_neighbors.py",
    "engine/queries/test_pyg.py",
    "engine/queries/test_training.py",
    "engine/queries/test_walk.py",
    "engine/test_programs_by_windows.py",
    "gpu/*",
    "storage/base/test_kernel_cache.py",
    "storage/base/test_kernel_loading.py",
    "storage/convert/test_compiled_kernels.py",
    "storage/convert/test_memory_growth.py",
    "storage/read/test_hostile_files.py",
    "test_benchmarks.py",
    "test_disk_faults.py",
    "test_failing_calls.py",
    "test_graphalytics.py",
    "test_kills.py",
    "test_parity.py",
    "test_peak_memory.py",
    "test_ratings.py",
    "test_refused_memory.py",
    "test_run_faults.py",
    "test_shared_data.py",
    "test_shared_kernels.py",
    "test_start.py",
    "tools/run/test_csv_safe.py",
    "tools/base/test_escapes.py",
    "tools/bench/routes/test_figures.py",
    "tools/commands/test_calibrate.py",
    "tools/commands/test_demo.py",
    "tools/commands/test_run_simulations.py",
    "tools/networkx/*",
    "tools/report/test_report.py",
    "tools/run/test_run_directory.py",
)
"""Patterns of paths below tests/; `*` also matches `/`."""

SLOW_TESTS = (
    "engine/test_api.py::test_sources_may_be_names",
    "engine/test_session.py::test_a_forked_process_opens_its_own_session_before_kernels_have_run",
    "storage/convert/test_convert.py::test_a_disk_that_fills_while_writing_leaves_nothing",
    "storage/convert/test_convert.py::test_any_budget",
    "storage/convert/test_csr_passthrough.py::test_any_rows",
    "storage/format/test_open_file.py::test_other_processes_read_it_at_the_same_time_and_while_it_is_replaced",
    "storage/format/test_writer.py::test_a_full_disk_is_one_error_and_leaves_nothing",
    "storage/ingest/bytes/test_stream.py::test_standard_input_is_recognized_too",
    "storage/results/test_result_tables.py::test_a_full_disk_is_one_error_and_leaves_what_was_there",
    "tools/bench/routes/test_routes.py::test_the_command_measures_programs",
    "tools/commands/test_run.py::test_a_stopped_run_leaves_nothing",
    "tools/run/test_checkpointing.py::test_sigterm_and_resume_on_the_command_line",
    "tools/run/test_metrics.py::test_a_run_that_is_killed_leaves_whole_lines",
    "tools/test_cli.py::test_a_signal_leaves_nothing_behind",
)


@cache
def is_slow_file(path: Path) -> bool:
    """Whether all tests of a file are slow."""
    if path.suffix != ".py" or TESTS not in path.parents:
        return False
    return any(fnmatch(path.relative_to(TESTS).as_posix(), pattern) for pattern in SLOW_FILES)


def is_slow(item: pytest.Item) -> bool:
    """Whether a test is slow."""
    if is_slow_file(item.path) or item.get_closest_marker("slow") is not None:
        return True
    return f"{_name(item.path)}::{getattr(item, 'originalname', item.name)}" in SLOW_TESTS


@cache
def _name(path: Path) -> str:
    """A file's path below tests/."""
    return path.relative_to(TESTS).as_posix()
