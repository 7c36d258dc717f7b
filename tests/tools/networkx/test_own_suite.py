"""networkx's own tests pass with the backend, but for named ones; tools/networkx/README.md has all that were run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.slow_tests import TESTS

networkx = pytest.importorskip("networkx", minversion="3.6")
MODULES = (
    "centrality/tests/test_degree_centrality.py",
    "centrality/tests/test_eigenvector_centrality.py",
    "components",
    "shortest_paths/tests/test_unweighted.py",
    "shortest_paths/tests/test_weighted.py",
    "tests/test_bridges.py",
    "tests/test_core.py",
    "tests/test_isolate.py",
    "tests/test_link_prediction.py",
)
EXPECTED = {
    "components/tests/test_strongly_connected.py::TestStronglyConnected::test_condensation_mapping_and_members": (
        "expects components in the order in which networkx's search ends them"
    ),
}
"""Tests that do not pass, and why."""
COMPILED_HERE = """
import pytest
from support.shared_kernels import compile_here

compile_here(pytest.MonkeyPatch())
"""
PASSED = 270
"""At least: fewer would mean that modules were not found."""


def test_networkx_own_tests(tmp_path: Path) -> None:
    (tmp_path / "compiled_here.py").write_text(COMPILED_HERE)
    environment = os.environ | {"NETWORKX_TEST_BACKEND": "penstock", "NETWORKX_FALLBACK_TO_NX": "True"}
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), str(TESTS)])
    root = Path(networkx.__file__).parent / "algorithms"
    settings = tmp_path / "pytest.ini"
    settings.write_text("[pytest]\n")
    alone = ["-pcompiled_here", "-pno:cacheprovider", "-pno:xdist", f"-c{settings}", f"--rootdir={root}", "--color=no"]
    words = [sys.executable, "-m", "pytest", "-q", "-rfE", *alone, *(str(root / module) for module in MODULES)]
    done = subprocess.run(words, cwd=root, env=environment, capture_output=True, text=True, check=False)
    failed = set(re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE))
    assert failed == EXPECTED.keys(), done.stdout[-3000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None, done.stdout[-3000:]
    assert int(passed.group(1)) >= PASSED
