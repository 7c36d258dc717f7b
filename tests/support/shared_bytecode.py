"""Bytecode that the commands of a test session share, where Python may not leave any beside the sources.

One process, in which no fault is injected, writes all of it before the first test; commands only read it. A command
that wrote some itself could leave half a file: it has no disk left, or is killed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile

import pytest
from support.source_code import modules

IMPORT_ALL = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)"


def share_bytecode(config: pytest.Config) -> None:
    """Write the bytecode of all modules to a folder of this session, and let processes that begin later read it."""
    folder = tempfile.mkdtemp(prefix="penstock-bytecode-")
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    writing = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    names = [name for name in modules() if not name.endswith((".cuda", ".__main__"))]
    command = [sys.executable, "-c", IMPORT_ALL, *names]
    subprocess.run(command, env=writing | {"PYTHONPYCACHEPREFIX": folder}, check=True)
    os.environ["PYTHONPYCACHEPREFIX"] = folder
