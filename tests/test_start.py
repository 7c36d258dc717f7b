"""What is imported before an answer: nothing that it does not need, because whoever asked is waiting."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.faults import python
from support.graphs import shape, write

COMPILER = ("numba", "llvmlite")
HEAVY = (
    "scipy.linalg",
    "scipy.sparse",
    "pyarrow",
    "matplotlib",
    "networkx",
    "pandas",
    "rich",
    "cupy",
    "tomlkit",
    "psutil",
)
"""Of what is optional or belongs to other jobs. Numba imports `scipy` itself, to look at its version."""
COMMAND = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(list(sys.modules)), file=sys.stderr))
sys.argv[0] = "penstock"
from penstock.tools.main import main
main()
"""
IMPORT = "{}; import json, sys; print(json.dumps(list(sys.modules)), file=sys.stderr)"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("start") / "g.h5"
    write(shape("skewed"), path)
    return path


def imported(code: str, *arguments: object) -> set[str]:
    """Modules of a fresh process when it ends, which must be without an error."""
    child = python(code, *map(str, arguments))
    assert child.returncode == 0, child.stderr
    return set(json.loads(child.stderr.splitlines()[-1]))


@pytest.mark.parametrize("command", ["", "run", "report", "verify"])
def test_help_imports_what_it_prints(command: str) -> None:
    assert imported(COMMAND, *command.split(), "--help").isdisjoint((*COMPILER, *HEAVY, "numpy", "h5py"))


@pytest.mark.parametrize("command", ["info", "convert", "generate", "calibrate", "demo", "bench", "bench compare"])
def test_help_imports_no_compiler(command: str) -> None:
    assert imported(COMMAND, *command.split(), "--help").isdisjoint((*COMPILER, *HEAVY, "h5py"))


def test_looking_at_a_graph_imports_no_compiler(graph: Path) -> None:
    assert imported(COMMAND, "info", graph).isdisjoint((*COMPILER, *HEAVY))


@pytest.mark.parametrize(
    "code",
    [
        "import penstock; penstock.Graph, penstock.run",
        "import penstock.engine",
        "from penstock.engine import Graph, Session, run, Program, Result",
    ],
)
def test_the_engine_is_imported_without_a_compiler(code: str) -> None:
    assert imported(IMPORT.format(code)).isdisjoint((*COMPILER, *HEAVY))


def test_a_run_imports_the_compiler_and_nothing_heavy_besides(graph: Path) -> None:
    """Once its kernels are in the cache: then none of Numba's registries either."""
    arguments = ("run", "bfs", graph, "--source", 0, "--quiet", "--no-calibrate")
    imported("from penstock.engine.execution import plain_first\nplain_first.SECONDS = 0\n" + COMMAND, *arguments)
    modules = imported(COMMAND, *arguments)
    assert modules.issuperset(COMPILER)
    assert modules.isdisjoint((*HEAVY, "numba.cuda", "numba.np.arraymath", "numba.np.linalg", "numba.typed.typeddict"))
    assert "penstock.engine.kernels.reference.vertex" not in modules


def test_a_run_that_was_recorded_is_reported_without_a_compiler(graph: Path, tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.jsonl"
    imported(COMMAND, "run", "bfs", graph, "--source", 0, "--quiet", "--no-calibrate", "--metrics", metrics)
    assert imported(COMMAND, "report", metrics).isdisjoint((*COMPILER, *HEAVY, "h5py"))


def test_the_top_package_imports_nothing() -> None:
    assert {name for name in imported(IMPORT.format("import penstock; dir(penstock)")) if "penstock." in name} == set()


def test_networkx_is_told_of_the_backend_without_numpy() -> None:
    modules = imported(IMPORT.format("from penstock.tools.networkx.info import get_info; get_info()"))
    assert modules.isdisjoint((*COMPILER, *HEAVY, "numpy", "click"))


UNTOUCHED = """
import atexit, importlib, os, sys
from pathlib import Path
from numba.core import event
from numba.core.bytecode import FunctionIdentity

hooks = []
def noting(call):
    def noted(*given, **named):
        hooks.append(sys._getframe(1).f_globals["__name__"])
        return call(*given, **named)
    return noted
atexit.register, os.register_at_fork = noting(atexit.register), noting(os.register_at_fork)
for floor in ("storage", "transfer", "engine", "tools"):
    folder = Path(importlib.import_module(f"penstock.{floor}").__path__[0])
    for file in folder.rglob("*.py"):
        name = ".".join(("penstock", floor, *file.relative_to(folder).with_suffix("").parts))
        if not {"cuda", "cupy", "pyg", "__main__"} & {*name.replace("_", ".").split(".")}:
            importlib.import_module(name)
from penstock.storage.base import missing_code
assert "penstock.storage.base.kernel_cache" in sys.modules and "penstock.engine.kernels.host.jit" in sys.modules
assert missing_code._missing is None
assert repr(FunctionIdentity._unique_ids).startswith("count(") and next(FunctionIdentity._unique_ids) < 1 << 20
assert not any(event._registered.values())
assert not [one for one in hooks if one.startswith("penstock.")], hooks
"""


def test_nothing_acts_on_import() -> None:
    """Numba, exits and forks of a process that imports all modules and runs nothing are as they were."""
    child = python(UNTOUCHED)
    assert child.returncode == 0, child.stderr
