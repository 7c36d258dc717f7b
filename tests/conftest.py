"""What every test shares: where data is, how Hypothesis runs, which tests need a device, which are fast or slow.

Also prints the closing report of house-style alarms. Data of ../shared is optional: tests that need it skip without it,
and never write there.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import sys
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import settings
from penstock.tools.main import leftovers
from support.shared_bytecode import share_bytecode, share_rewritten_tests
from support.slow_tests import is_slow, is_slow_file
from support.source_code import DATA, SHARED

settings.register_profile("penstock", deadline=None, derandomize=True, database=None, max_examples=40)
settings.register_profile("explore", deadline=None, max_examples=2000, database=None)
settings.load_profile("penstock")

COMPILED = pytest.StashKey[int]()
"""How many kernels the process had compiled when garbage was last looked for."""
TESTS_AT_ONCE = 200
"""A worker is given so many at most: of slow ones it would have enough for a minute more when the others have ended."""


def pytest_configure(config: pytest.Config) -> None:
    """Say in one sentence what would otherwise be an error in every file; prepare what workers share."""
    trouble = leftovers()
    if trouble is not None:
        raise pytest.UsageError(trouble)
    if getattr(config.option, "maxschedchunk", TESTS_AT_ONCE) is None:
        config.option.maxschedchunk = TESTS_AT_ONCE
    if sys.dont_write_bytecode and config.getoption("numprocesses", None):  # not in the workers themselves
        share_bytecode(config)
    worker = getattr(config, "workerinput", None)
    if worker is not None:
        share_rewritten_tests(config, int(worker["workerid"][2:]), worker["workercount"])


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep rates of this machine in a folder of the session, so that no test reads or writes the user's.

    Compiled kernels stay in the user's, so that sessions, their workers and the commands that they start share them.
    """
    from penstock.storage.base.user_cache import kernel_folder  # once `pytest_configure` has found nothing in its way

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_CACHE_DIR", str(kernel_folder().parent.parent))
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def compile_in(config: pytest.Config) -> None:
    """Let the process of this session compile, from before tests are imported, some of which make graphs then.

    Of workers only one compiles a kernel.
    """
    from support.shared_kernels import compile_here, compiled_once

    patch = pytest.MonkeyPatch()
    config.add_cleanup(patch.undo)
    compile_here(patch)
    if hasattr(config, "workerinput"):
        once = ExitStack()
        once.enter_context(compiled_once(Path(config.option.basetemp).parent / "kernels.lock"))
        config.add_cleanup(once.close)


@pytest.fixture
def unfused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each iteration by itself on the cores: a kernel for many takes a second to compile, for each program."""
    monkeypatch.setattr("penstock.engine.kernels.host.launch.HostKernels.can_fuse", lambda *_: False)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of public graphs beside the checkout; the test skips where there is none."""
    if not (SHARED / "expected.json").is_file():
        pytest.skip(f"{SHARED} is not here")
    return SHARED


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of small fixtures in the repository."""
    return DATA


def device_is_here() -> bool:
    """Whether CuPy is installed and sees a CUDA device."""
    if importlib.util.find_spec("cupy") is None:
        return False
    import cupy

    try:
        return bool(cupy.cuda.runtime.getDeviceCount() > 0)
    except cupy.cuda.runtime.CUDARuntimeError:
        return False


if not device_is_here():  # before anything imports numba.cuda: GPU kernels then run in Python
    os.environ.setdefault("NUMBA_ENABLE_CUDASIM", "1")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave slow files out of the fast loop before they are imported."""
    return True if config.option.markexpr == "fast" and is_slow_file(collection_path) else None


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a test by the length of a long value: names travel between workers, with every report of a test."""
    return f"{argname} of {len(val)}" if isinstance(val, str | bytes) and len(val) > 200 else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return the workers of `-n auto`: one more than cores, since tests also wait for processes, disks and clocks."""
    return len(os.sched_getaffinity(0)) + 1


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Let Python look for no garbage among modules and tests, neither while they are collected nor later."""
    if not session.config.getoption("numprocesses", None):  # where tests run
        compile_in(session.config)
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(trylast=True)  # after fixtures have ended
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """After a test that compiled look for garbage, then never among what Numba keeps: 100,000 objects a kernel."""
    from penstock.storage.base.stage_clock import compile_times

    compiled = compile_times().compiled
    if item.session.stash.get(COMPILED, 0) != compiled:
        item.session.stash[COMPILED] = compiled
        gc.collect()
        gc.freeze()


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark every test `fast` or `slow`, slow ones first; skip tests marked `gpu` on a machine without a device.

    Tests marked `full`, as rows of products outside their covering arrays, are left out unless `-m` names them.

    Workers get tests in this order, the last ones a few at a time: short ones end at about the same time on all. The
    engine's come first, since commands that later ones start load what workers have compiled.
    """
    if "full" not in config.option.markexpr:
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("full")])
        items[:] = [item for item in items if not item.get_closest_marker("full")]
    for item in items:
        item.add_marker(pytest.mark.slow if is_slow(item) else pytest.mark.fast)
    items.sort(key=lambda item: (item.get_closest_marker("slow") is None, not _compiles(item)))
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if marked and not device_is_here():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


def _compiles(item: pytest.Item) -> bool:
    """Whether a test is one of the engine's, which compile most kernels in processes of their own session."""
    return "engine" in item.path.parts


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report what is longer than house style likes; an alarm, not a failure."""
    reports = terminalreporter.getreports("passed") + terminalreporter.getreports("failed")
    found = [line for report in reports for name, lines in report.user_properties if name == "alarms" for line in lines]
    if found:
        terminalreporter.section("house-style alarms (reported, not failed)")
        terminalreporter.write_line("\n".join(found))
