"""Bytecode that the commands of a test session share, where Python may not leave any beside the sources.

One process, in which no fault is injected, writes ours before the first test, and links what pip and Python have of
theirs, which is not looked for elsewhere then, or writes it where they have none; commands only read it. A command that
wrote some itself could leave half a file: it has no disk left, or is killed.

Tests, whose assertions pytest rewrites, are shared as well: each worker rewrites some of the files before it collects,
and reads the others', where all would rewrite all of them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.slow_tests import is_slow_file
from support.source_code import FLOORS, ROOT

IMPORT_OTHERS = (
    "import penstock.engine.session, penstock.tools.base.progress, hypothesis, networkx, pytest, scipy.sparse"
)
OURS = *(ROOT / floor for floor in FLOORS), ROOT / "tests" / "support"
NOT_LINKED = {"site-packages", "test", "tests"}
"""Folders of other environments, which are roots of their own where they are this one's, and tests of others."""


def share_bytecode(config: pytest.Config) -> None:
    """Put the bytecode of all modules into a folder of this session, and let processes that begin later read it."""
    folder = tempfile.mkdtemp(prefix="penstock-bytecode-")
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    found = [_link(root, folder) for root in {sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")}]
    os.environ["PYTHONPYCACHEPREFIX"] = folder
    subprocess.run([sys.executable, "-m", "compileall", "-q", "-j", "0", *OURS], check=True)
    if not all(found):  # uv compiles nothing, and images of Python have none of its own
        writing = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        subprocess.run([sys.executable, "-c", IMPORT_OTHERS], env=writing, check=True)


def _link(root: str, folder: str) -> int:
    """Link the bytecode below `root` where it is looked for in `folder`; return of how many modules."""
    count = 0
    for place, folders, names in os.walk(root):
        folders[:] = set(folders) - NOT_LINKED
        if place.endswith("__pycache__"):
            there = folder + os.path.dirname(place)
            os.makedirs(there, exist_ok=True)
            for name in names:
                if name.endswith(f"{sys.implementation.cache_tag}.pyc"):  # no optimized code
                    _link_file(os.path.join(place, name), os.path.join(there, name))
                    count += 1
    return count


def _link_file(path: str, link: str) -> None:
    try:
        os.link(path, link)  # a tenth of the time of a symbolic one of such a length, made and removed
    except OSError:  # another disk, or another owner's
        os.symlink(path, link)


def share_rewritten_tests(config: pytest.Config, worker: int, workers: int) -> None:
    """Rewrite this worker's part of the files that are collected from folders, and keep them where pytest looks."""
    try:
        from _pytest.assertion.rewrite import PYC_TAIL, _read_pyc, _rewrite_test, _write_pyc, get_cache_dir
        from _pytest.assertion.rewrite import assertstate_key as key
    except ImportError:  # another pytest: each worker rewrites what it collects
        return
    if key not in config.stash or (sys.dont_write_bytecode and sys.pycache_prefix is None):
        return
    for path in sorted(_collected(config))[worker::workers]:
        kept = get_cache_dir(path) / (path.stem + PYC_TAIL)
        if _read_pyc(path, kept) is None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            version, code = _rewrite_test(path, config)
            _write_pyc(config.stash[key], code, version, kept)


def _collected(config: pytest.Config) -> Iterator[Path]:
    """The test files below the folders that are given, without those that the fast loop leaves out."""
    for given in config.args:
        for path in Path(config.invocation_params.dir, given).rglob("test_*.py"):
            if config.option.markexpr != "fast" or not is_slow_file(path):
                yield path
