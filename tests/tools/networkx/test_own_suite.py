"""Some of networkx's own tests pass with the backend; tools/networkx/README.md has all that were run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("networkx", minversion="3.4")
MODULES = ("centrality.tests.test_degree_centrality", "centrality.tests.test_eigenvector_centrality", "tests.test_core")


def test_some_of_networkx_own_tests(tmp_path: Path) -> None:
    environment = os.environ | {"NETWORKX_TEST_BACKEND": "penstock", "NETWORKX_FALLBACK_TO_NX": "True"}
    names = [f"networkx.algorithms.{name}" for name in MODULES]
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--pyargs", *names]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed.group(1)) > 30
