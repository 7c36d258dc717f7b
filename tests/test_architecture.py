"""The architecture, read from the source: floors, folders, no circles, doors, words, packaging, READMEs.

Every rule is a function from modules, or from READMEs, to a list of violations, so that each is also shown to fail on
a few lines that break it.
"""

from __future__ import annotations

import ast
import gc
import re
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable
from fnmatch import fnmatch
from importlib.metadata import version
from pathlib import Path

import networkx as nx
import penstock
import pytest
from support.faults import python
from support.slow_tests import SLOW_FILES, SLOW_TESTS, TESTS
from support.source_code import FLOORS, ROOT, Module, alarms, imported, modules

KNOWN = modules()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

DOORS: dict[str, tuple[str, ...]] = {
    "h5py": ("storage/format/hdf5.py",),
    "hdf5plugin": ("tools/*",),
    "zstandard": ("storage/encoding/codec.py", "storage/ingest/bytes/stream.py", "storage/base/kernel_cache.py"),
    "xxhash": ("storage/encoding/codec.py", "storage/ingest/bytes/stream.py"),
    "gzip": ("storage/ingest/bytes/stream.py", "storage/ingest/edge_list_writer.py"),
    "bz2": ("storage/ingest/bytes/stream.py",),
    "lzma": ("storage/ingest/bytes/stream.py",),
    "zlib": ("storage/ingest/bytes/stream.py",),
    "psutil": ("storage/base/budget.py",),
    "resource": ("storage/base/budget.py",),
    "os.preadv": (
        "storage/format/direct_io.py",
        "storage/checkpoint/page_file.py",
        "storage/ingest/bytes/file.py",
        "storage/convert/*",
    ),
    "os.pread": ("storage/format/direct_io.py", "storage/convert/*"),
    "cupy": ("transfer/devices/cuda.py", "engine/kernels/cuda/driver.py", "engine/ranks/nccl.py"),
    "cuda": ("transfer/devices/cuda.py", "engine/kernels/cuda/compiler.py"),
    "numba.cuda": ("transfer/devices/cuda.py", "engine/kernels/cuda/driver.py", "engine/kernels/cuda/compiler.py"),
    "matplotlib": ("tools/base/plots.py",),
    "mpi4py": ("engine/ranks/mpi.py",),
    "torch": ("engine/queries/neighborhood.py", "engine/queries/pyg.py"),
    "os.environ": (
        "tools/*",
        "storage/base/user_cache.py",
        "storage/base/places.py",
        "engine/kernels/host/threads/openmp.py",
    ),
    "numba.get_num_threads": ("engine/kernels/host/threads/openmp.py",),
    "numba.set_num_threads": ("engine/kernels/host/jit.py",),
    "os.getenv": ("tools/*",),
    "os.putenv": ("tools/*",),
    "os._exit": ("tools/*",),
    "sys.exit": ("tools/*",),
    "sys.argv": ("tools/*",),
    "sys.stdout": ("tools/*",),
    "sys.stderr": ("tools/*",),
    "builtins.print": ("tools/*",),
    "builtins.input": ("tools/*",),
    "builtins.exit": ("tools/*",),
    # What runs code: adapters of a program's functions, the annotations of its parameters, FILE.py:Class.
    "builtins.exec": ("engine/program/bindings.py",),
    "builtins.eval": ("engine/program/parameters.py",),
    "builtins.__import__": (),
    "importlib.util.spec_from_file_location": ("engine/program/program_description.py", "tools/base/find_program.py"),
    "pickle": (),
    "shelve": (),
    "runpy": (),
    "os.system": (),
    "os.popen": (),
    "subprocess": ("storage/companion/process.py", "tools/doctor/*", "tools/run/launch_ranks.py"),
    "builtins.SystemExit": ("tools/*",),
    "signal": ("tools/*", "storage/companion/*"),  # a companion is a process of its own: storage/README.md
    "logging.StreamHandler": ("tools/*",),
    "logging.FileHandler": ("tools/*",),
    "logging.basicConfig": (),
    "logging.info": (),
    "logging.warning": (),
    "logging.error": (),
    "warnings.warn": ("tools/*",),
    "click": ("tools/*",),
    "rich": ("tools/*",),
    "argparse": ("tools/*",),
    "multiprocessing": (),
    "greenlet": ("engine/kernels/cuda_simulator.py",),
    "threading": (
        "storage/*",
        "tools/*",
        "*/cuda.py",
        "engine/kernels/cuda_simulator.py",
        "engine/checkpoint/run_fingerprint.py",
    ),
    "concurrent": ("storage/*", "tools/*", "transfer/staging/gather_buffers.py"),
}
"""Each thing and the only files that may touch it (DESIGN.md section 2, HOUSE_STYLE.md 6, 8, 13)."""

TABULAR = ("pyarrow", "polars", "pandas", "duckdb")
WITH_NUMBA = {"llvmlite"}
"""Numba's own half, of the version that Numba chooses."""

OPTIONAL = {
    "cuda",
    "cupy",
    "greenlet",
    "matplotlib",
    "scipy",
    "networkit",
    "igraph",
    "hdf5plugin",
    "graphblas",
    "networkx",
    "mpi4py",
}
OPTIONAL |= {"torch", "torch_geometric"}
"""Imported only where installed: devices and what simulates one, plots, peers of `penstock bench compare`, samples."""

UNSAID = re.compile(r"manager|handler|helper|utils?(?![a-z])", re.IGNORECASE)
"""Words that name nothing (HOUSE_STYLE.md 4)."""

FOLDER_FILES = 20
ONE_FILE_EACH = {"engine/programs"}
"""Folders of one file for each algorithm: they may hold more files."""
README_BYTES = 10_000

FILE_METHODS = {"write_text", "read_text", "write_bytes", "read_bytes", "mkdir", "unlink"}
TOP = "tools/package"
"""The package `penstock` itself, above the floors; it holds the version."""
MEMORY_FILES = ("storage/base/budget.py", "storage/base/freed_memory.py")
"""May ask the system what memory there is and what this process has of it."""
OWN_SOURCE = "engine/kernels/host/jit.py"
"""Reads the kernels' own source text, for the key of the compilation cache; no file of a user."""


def module(path: str, text: str) -> Module:
    """A module that exists only here, to break a rule."""
    name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return Module(f"penstock.{name}", path, text)


def graph_of(known: dict[str, Module]) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(known)
    graph.add_edges_from((name, lower) for name in known for lower in imported(known[name], known))
    return graph


def climbing(known: dict[str, Module]) -> list[str]:
    """Imports from a floor above."""
    return [
        f"{known[name].path} imports {lower}"
        for name, lower in graph_of(known).edges
        if FLOORS.index(known[lower].floor) > FLOORS.index(known[name].floor)
    ]


def circles(known: dict[str, Module]) -> list[str]:
    """Sets of modules that import each other, typing-only imports included."""
    components = nx.strongly_connected_components(graph_of(known))
    return [" and ".join(sorted(circle)) for circle in components if len(circle) > 1]


def folder_of(m: Module) -> str:
    """The folder of a module; a story file in a floor's own folder counts as that folder."""
    return m.path.rpartition("/")[0]


def folder_circles(known: dict[str, Module]) -> list[str]:
    """Sets of folders whose files import each other."""
    between = [(known[name], known[lower]) for name, lower in graph_of(known).edges]
    between = [(m, lower) for m, lower in between if folder_of(m) != folder_of(lower)]
    folders = nx.DiGraph((folder_of(m), folder_of(lower)) for m, lower in between)
    return [
        f"{m.path} imports {lower.path}: a circle of {' and '.join(sorted(circle))}"
        for circle in nx.strongly_connected_components(folders)
        for m, lower in between
        if {folder_of(m), folder_of(lower)} <= circle
    ]


def crowded(known: dict[str, Module]) -> list[str]:
    """Folders of more files than a reader can take in."""
    counts = Counter(folder_of(m) for m in known.values())
    return [f"{folder}: {n} files" for folder, n in counts.items() if n > FOLDER_FILES and folder not in ONE_FILE_EACH]


def names_used_twice(known: dict[str, Module]) -> list[str]:
    """Public class names of which the package has several."""
    owners = defaultdict(list)
    for m in known.values():
        for node in m.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                owners[node.name].append(m.path)
    return [f"{name}: {', '.join(paths)}" for name, paths in owners.items() if len(paths) > 1]


def relative(known: dict[str, Module]) -> list[str]:
    return [m.path for m in known.values() if any(t.startswith(".") for _, t in m.bindings)]


def broken_doors(known: dict[str, Module]) -> list[str]:
    return [
        f"{m.path} touches {thing}, whose door is {', '.join(allowed) or 'nowhere'}"
        for m in known.values()
        for thing, allowed in DOORS.items()
        if thing in m.touched and not any(fnmatch(m.path, pattern) for pattern in allowed)
    ]


PLACES = "storage/base/places.py"
"""Which has pyarrow's file systems alone."""


def tabular_doors(known: dict[str, Module]) -> list[str]:
    """One file reads tables (storage/ingest), one folder writes them (storage/tables), one file asks stores."""
    paths = [m.path for m in known.values() if m.touched & set(TABULAR)]
    reading = [path for path in paths if path.startswith("storage/ingest/")]
    others = [path for path in paths if not path.startswith(("storage/ingest/", "storage/tables/", PLACES))]
    return (reading if len(reading) > 1 else []) + others


def cgroup_readers(known: dict[str, Module]) -> list[str]:
    return [
        f"{m.path} reads {text!r}"
        for m in known.values()
        for text in m.strings
        if re.match(r"/?(sys/fs/cgroup|proc/self/(?!stat$)|proc/meminfo)", text) and m.path not in MEMORY_FILES
    ]


def files_opened_by_engine(known: dict[str, Module]) -> list[str]:
    """Engine decides and computes; it opens no file."""
    forbidden = {"builtins.open", "io.open", "os.open", "tempfile"}
    found = []
    for m in known.values():
        if m.floor == "engine":
            found += [f"{m.path} uses {name}" for name in sorted(forbidden & m.touched)]
            calls = set() if m.path == OWN_SOURCE else FILE_METHODS & set(m.methods_called())
            found += [f"{m.path} calls {name}" for name in sorted(calls)]
    return found


def kept_by_numba(known: dict[str, Module]) -> list[str]:
    """Numba keeps what it compiles beside the sources; `storage/base/kernel_cache.py` keeps it in the user's cache."""
    return [
        m.path for m in known.values() if re.search(r"\bcache=True\b|numba\.core\.caching import FunctionCache", m.text)
    ]


def imported_from_here(known: dict[str, Module]) -> list[str]:
    """Processes of Python's that import what is in the working folder, which may be a stranger's: those without -P."""
    return [m.path for m in known.values() if re.search(r"sys\.executable,(?!\s*\"-P\")", m.text)]


def undeclared(known: dict[str, Module]) -> list[str]:
    """Third-party imports that pyproject.toml does not require."""
    required = {re.split(r"[^\w-]", requirement)[0].lower() for requirement in PROJECT["project"]["dependencies"]}
    free = required | OPTIONAL | WITH_NUMBA | set(sys.stdlib_module_names) | {"penstock"}
    return sorted(
        f"{m.path} imports {target}"
        for m in known.values()
        for _, target in m.bindings
        if target.split(".", 1)[0].lower() not in free
    )


def unsaid(known: dict[str, Module]) -> list[str]:
    return [f"{m.path}: {name}" for m in known.values() for name in m.names() if UNSAID.search(name)]


def unfinished(known: dict[str, Module]) -> list[str]:
    return [
        f"{m.path}:{number}"
        for m in known.values()
        for number, line in enumerate(m.text.splitlines(), 1)
        if re.search(r"\b(TODO|FIXME|XXX|HACK)\b|raise NotImplementedError", line)
    ]


RULES = [
    climbing,
    circles,
    folder_circles,
    crowded,
    names_used_twice,
    relative,
    broken_doors,
    tabular_doors,
    cgroup_readers,
    files_opened_by_engine,
    kept_by_numba,
    imported_from_here,
    undeclared,
    unsaid,
    unfinished,
]

BREAKERS = [
    (climbing, {"storage/a.py": "from penstock.engine import b", "engine/b.py": ""}),
    (climbing, {"transfer/a.py": "import penstock.engine.b as c", "engine/b.py": ""}),
    (
        climbing,
        {
            "storage/a.py": "if TYPE_CHECKING:\n    from penstock.transfer.b import View",
            "transfer/b.py": "",
        },
    ),
    (climbing, {"storage/a.py": "import_module('penstock.tools.b')", "tools/b.py": ""}),
    (
        circles,
        {
            "engine/a.py": "from penstock.engine.b import x",
            "engine/b.py": "def f():\n    from penstock.engine import a",
        },
    ),
    (
        circles,
        {
            "engine/__init__.py": "LAZY = {'run': 'penstock.engine.a'}",
            "engine/a.py": "from penstock.engine import Program",
        },
    ),
    (
        folder_circles,
        {
            "transfer/planning/a.py": "from penstock.transfer.values import b",
            "transfer/planning/c.py": "",
            "transfer/values/b.py": "",
            "transfer/values/d.py": "from penstock.transfer.planning import c",
        },
    ),
    (
        folder_circles,
        {
            "transfer/pipeline.py": "from penstock.transfer.staging import fetch",
            "transfer/prefetch_queue.py": "",
            "transfer/staging/fetch.py": "",
            "transfer/staging/gather.py": "from penstock.transfer import prefetch_queue",
        },
    ),
    (crowded, {f"engine/state/a{number}.py": "" for number in range(FOLDER_FILES + 1)}),
    (names_used_twice, {"storage/a.py": "class Block: ...", "engine/b.py": "class Block: ..."}),
    (relative, {"engine/a.py": "from .b import x"}),
    (broken_doors, {"storage/format/graph.py": "import h5py"}),
    (broken_doors, {"storage/format/graph.py": "def f():\n    from h5py._hl import files"}),
    (broken_doors, {"storage/format/graph.py": "import os as o\no.preadv(3, [], 0)"}),
    (broken_doors, {"engine/run.py": "from os import environ"}),
    (broken_doors, {"engine/run.py": "import numba\nnumba.set_num_threads(2)"}),
    (broken_doors, {"engine/run.py": "print(1)"}),
    (broken_doors, {"engine/run.py": "import sys\nsys.exit(2)"}),
    (broken_doors, {"engine/run.py": "raise SystemExit(2)"}),
    (broken_doors, {"engine/kernels/host/launch.py": "from numba import cuda"}),
    (broken_doors, {"transfer/pipeline.py": "import numba\nnumba.cuda.jit"}),
    (broken_doors, {"transfer/values/cost.py": "import psutil"}),
    (broken_doors, {"tools/cli.py": "import logging\nlogging.warning('to everybody')"}),
    (broken_doors, {"engine/run.py": "import logging\nlogging.StreamHandler()"}),
    (broken_doors, {"transfer/pipeline.py": "import threading"}),
    (broken_doors, {"engine/run.py": "from concurrent.futures import ThreadPoolExecutor"}),
    (tabular_doors, {"storage/ingest/a.py": "import pyarrow", "storage/ingest/b.py": "import polars"}),
    (tabular_doors, {"storage/results/a.py": "import pyarrow.csv"}),
    (tabular_doors, {"tools/a.py": "import pyarrow"}),
    (cgroup_readers, {"engine/a.py": "P = '/sys/fs/cgroup/memory.max'"}),
    (files_opened_by_engine, {"engine/a.py": "open('x')"}),
    (files_opened_by_engine, {"engine/a.py": "path.write_text('x')"}),
    (kept_by_numba, {"storage/a.py": "import numba\n@numba.njit(nogil=True, cache=True)\ndef f(): ..."}),
    (imported_from_here, {"tools/a.py": "command = [sys.executable, '-c', 'import json']"}),
    (undeclared, {"engine/a.py": "import requests"}),
    (unsaid, {"engine/plan_utils.py": ""}),
    (unsaid, {"engine/a.py": "class CacheManager: ..."}),
    (unfinished, {"engine/a.py": "# " + "TODO: write"}),
    (unfinished, {"engine/a.py": "raise " + "NotImplementedError"}),
]


def long_readmes(pages: dict[str, str]) -> list[str]:
    """READMEs that are longer than a newcomer reads; measurements and decisions have files of their own."""
    lengths = {path: len(text.encode()) for path, text in pages.items()}
    return [f"{path}: {length} bytes" for path, length in lengths.items() if length > README_BYTES]


def unmapped(pages: dict[str, str]) -> list[str]:
    """Folders that the opening of their floor's README (what stands before its second heading) does not name."""
    found = []
    for folder in FOLDERS:
        floor, _, below = folder.partition("/")
        opening = "## ".join(pages.get(f"{floor}/README.md", "").split("\n## ")[:2])
        named = {name.strip("/") for name in re.findall(r"`([\w/]+/)`", opening)}
        if below and below not in named and below.rpartition("/")[2] not in named:
            found.append(f"{floor}/README.md does not name {below}/")
    return found


READMES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for folder in (ROOT, *(ROOT / floor for floor in FLOORS), ROOT / "tests")
    for path in sorted(folder.glob("README.md") if folder == ROOT else folder.rglob("README.md"))
}
FOLDERS = sorted({folder_of(m) for m in KNOWN.values()})

PAGE_RULES = [long_readmes, unmapped]
MAP = {f"{floor}/README.md": " ".join(f"`{f.partition('/')[2]}/`" for f in FOLDERS if f != floor) for floor in FLOORS}
PAGE_BREAKERS = [
    (long_readmes, {"engine/README.md": "é" * (README_BYTES // 2 + 1)}),
    (unmapped, MAP | {"engine/README.md": "# engine\n"}),
    (unmapped, MAP | {"transfer/README.md": "# transfer\n\n## A\n\n## B\n" + MAP["transfer/README.md"]}),
]


@pytest.mark.parametrize("rule", PAGE_RULES)
def test_rule_of_pages_holds(rule) -> None:
    assert rule(READMES) == []


@pytest.mark.parametrize(("rule", "pages"), PAGE_BREAKERS)
def test_rule_of_pages_can_fail(rule, pages) -> None:
    assert rule(pages) != []


def test_a_short_page_with_a_map_breaks_no_rule() -> None:
    for rule in PAGE_RULES:
        assert rule(MAP) == [], rule.__name__


def test_rules_hold(record_property: Callable[[str, object], None]) -> None:
    """One test, since each worker would parse all of the source for its part of the rules; notes alarms, too."""
    gc.disable()  # none of 700,000 nodes is garbage, which would be looked for as they become more
    try:
        record_property("alarms", alarms(KNOWN))
        assert {rule.__name__: found for rule in RULES if (found := rule(KNOWN))} == {}
    finally:
        gc.enable()


@pytest.mark.parametrize(("rule", "files"), BREAKERS)
def test_rule_can_fail(rule, files) -> None:
    broken = [module(path, text) for path, text in files.items()]
    assert rule({m.name: m for m in broken}) != []


def test_innocent_source_breaks_no_rule() -> None:
    known = [
        module("storage/a.py", "import numpy as np\nimport os\nos.path.join('penstock', 'x')"),
        module("engine/__init__.py", "LAZY = {'b': 'penstock.engine.b'}"),
        module("engine/b.py", "from penstock.storage import a\nGraph.open('x')\nself.print(3)"),
    ]
    for rule in RULES:
        assert rule({m.name: m for m in known}) == [], rule.__name__


def test_every_rule_has_a_breaker() -> None:
    assert {rule for rule, _ in BREAKERS} == set(RULES)
    assert {rule for rule, _ in PAGE_BREAKERS} == set(PAGE_RULES)


def test_every_door_exists_or_is_still_to_be_built() -> None:
    """A door that was renamed would silently let nobody, or everybody, through."""
    later = {"transfer/devices/cuda.py", "engine/kernels/cuda/driver.py", "tools/base/plots.py"}
    doors = {path for paths in DOORS.values() for path in paths if "*" not in path}
    assert {path for path in doors - later if not (ROOT / path).is_file()} == set()


def test_every_folder_with_source_is_packaged_and_typed() -> None:
    """Folders below the floors are packages without an `__init__.py`; the marker of types above is theirs, too."""
    setuptools = PROJECT["tool"]["setuptools"]
    assert set(setuptools["packages"]) == {f"penstock.{floor}" for floor in FLOORS} | {"penstock"}
    assert "**/*.py" in setuptools["package-data"]["*"]  # `.ci/run` compares the files of a wheel
    opened = {m.path.rpartition("/")[0] for m in KNOWN.values() if m.path.endswith("/__init__.py")}
    assert opened == {*FLOORS, TOP}
    assert (ROOT / TOP / "py.typed").is_file()


def test_the_version_is_the_installed_one() -> None:
    assert penstock.__version__ == version("penstock")
    assert PROJECT["tool"]["setuptools"]["package-dir"]["penstock"] == TOP


def test_every_slow_test_exists() -> None:
    """A test that was renamed would otherwise be fast."""
    paths = [path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")]
    assert [pattern for pattern in SLOW_FILES if not any(fnmatch(path, pattern) for path in paths)] == []
    named = [test.split("::") for test in SLOW_TESTS]
    texts = {path: (TESTS / path).read_text(encoding="utf-8") for path, _ in named if path in paths}
    assert [(path, name) for path, name in named if f"def {name}(" not in texts.get(path, "")] == []


def test_every_test_is_in_a_folder_that_the_source_has() -> None:
    """tests/engine/state/ has the tests of engine/state/; tests of several floors are in tests/ itself."""
    folders = {path.parent.relative_to(TESTS).as_posix() for floor in FLOORS for path in (TESTS / floor).rglob("*.py")}
    assert [folder for folder in sorted(folders) if not (ROOT / folder).is_dir()] == []
    names = {path.name for path in TESTS.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert names <= {*FLOORS, "benchmarks", "campaigns", "data", "gpu", "support"}


def test_top_level_holds_only_what_design_names() -> None:
    """Leftovers of a build (.gitignore names them) do not count."""
    allowed = {"pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "tests", *FLOORS}
    leftovers = {"build", "dist", "__pycache__", "penstock.egg-info"}
    names = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}
    assert names - leftovers <= allowed


def test_importing_engine_leaves_devices_terminals_and_tables_alone(tmp_path: Path) -> None:
    """Planted packages end the process when touched, so that an absent CuPy proves something."""
    for name in ("cupy", "matplotlib", "rich", "click", "pyarrow"):
        (tmp_path / f"{name}.py").write_text(f"raise BaseException({name!r})\n")
    code = "import sys; sys.path.insert(0, sys.argv[1])\n"
    code += "import penstock.storage, penstock.transfer\n"
    code += "from penstock.engine import Graph, Program, run\n"
    child = python(code, str(tmp_path))
    assert child.returncode == 0, child.stderr


def test_every_module_imports_without_a_device(tmp_path: Path) -> None:
    (tmp_path / "cupy.py").write_text("raise ImportError('no CuPy here')\n")
    code = "import importlib, sys\nsys.path.insert(0, sys.argv[1])\n"
    code += "for name in sys.argv[2:]: importlib.import_module(name)\n"
    code += "assert 'cupy' not in sys.modules\n"
    names = [name for name in KNOWN if not name.endswith((".cuda", ".__main__", ".pyg"))]
    child = python(code, str(tmp_path), *names)
    assert child.returncode == 0, child.stderr


def test_alarms_measure() -> None:
    long = module("engine/a.py", "\n" * 301 + "def f(a, b, c, d, e, f, g):\n" + "    1\n" * 60)
    found = alarms({"a": long})
    measured = {line.rsplit(": ", 1)[1] for line in found}
    assert measured == {"362 lines", "61 lines", "7 parameters"}
    assert alarms({"b": module("engine/b.py", "def f(self, a, b, c, d, e, f):\n    1\n")}) == []
