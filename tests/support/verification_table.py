"""What was checked against what, read from the tests.

Owns the list of tests that hold a program's answers on each kind of kernels; which programs they run and on which
graphs is read from their source (parametrized `directed`, tables of programs). Imports nothing that needs a device.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from penstock.engine.programs.catalogue import CATALOGUE
from penstock.engine.programs.table import PROGRAMS
from support.program_cases import CASES, ROWS
from support.program_cases import PROGRAMS as TRIALS

TESTS = Path(__file__).resolve().parents[1]
COLUMNS = ("plain Python", "CPU", "CUDA simulator", "H200")
OLDEST = {{"sweeps": "pagerank"}.get(name, name) for name in TRIALS}
"""The programs of `program_of` by their names in the catalogue."""
WEIGHTED = {info.name for info in CATALOGUE if info.weighted or info.needs_weights}
"""Programs that use the weights there are."""

CUDA_ROWS = "engine/kernels/cuda/whole_rows/test_rows.py"
COMMUNITIES = "engine/programs/test_communities.py"
CATALOGUE, DEVICE = "engine/programs/test_catalogue.py", "gpu/test_programs.py"


@dataclass(frozen=True)
class Evidence:
    """A test function, the columns that it speaks for, and the programs whose answers it holds against a verifier.

    weights: whether its graphs have some; directed: whether they are, where no parameter of the test says so.
    """

    file: str
    function: str
    columns: tuple[str, ...]
    programs: Callable[[], Collection[str]]
    weights: bool = True
    directed: tuple[bool, ...] = (True,)


@cache
def tree_of(file: str) -> ast.Module:
    """A test file's source."""
    return ast.parse((TESTS / file).read_text(encoding="utf-8"))


def keys_of(file: str, name: str) -> set[str]:
    """The keys of a table, or the members of a set, of strings that a file assigns to `name`."""
    for node in ast.walk(tree_of(file)):
        target = node.target if isinstance(node, ast.AnnAssign) else None
        if isinstance(node, ast.Assign):
            target = node.targets[0]
        if isinstance(target, ast.Name) and target.id == name:
            value = node.value  # type: ignore[union-attr]
            items = value.keys if isinstance(value, ast.Dict) else value.elts
            return {item.value for item in items}
    raise LookupError(f"{file} assigns nothing to {name}")


def parameters_of(file: str, function: str) -> dict[str, ast.expr]:
    """The parameters of a test's `parametrize` and `covering` decorators, by the text of their names."""
    for node in tree_of(file).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            calls = [one for one in node.decorator_list if isinstance(one, ast.Call)]
            marks = [call for call in calls if ast.unparse(call.func) == "pytest.mark.parametrize"]
            found = {str(ast.literal_eval(mark.args[0])): mark.args[1] for mark in marks}
            for call in calls:
                if ast.unparse(call.func) == "covering":  # every two values of two parameters meet
                    found |= zip(str(ast.literal_eval(call.args[0])).split(", "), call.args[1:], strict=True)
            return found
    raise LookupError(f"{file} has no test {function}")


def directions(evidence: Evidence) -> tuple[bool, ...]:
    """Which of directed (True) and undirected (False) graphs a test runs on."""
    given = parameters_of(evidence.file, evidence.function).get("directed")
    return evidence.directed if given is None else tuple(ast.literal_eval(given))


BOTH = (True, False)
EVIDENCE = (
    Evidence("test_parity.py", "test_every_way_gives_the_answer", COLUMNS[:2], lambda: OLDEST, directed=BOTH),
    Evidence(CATALOGUE, "test_every_way_gives_the_answer", COLUMNS[:2], CASES.keys),
    Evidence(CATALOGUE, "test_collaborative_filtering", COLUMNS[:2], lambda: {"cf"}),
    Evidence(COMMUNITIES, "test_every_way_gives_the_answer", COLUMNS[:2], lambda: keys_of(COMMUNITIES, "PROGRAMS")),
    Evidence(COMMUNITIES, "test_simulated_gpu", COLUMNS[2:3], lambda: keys_of(COMMUNITIES, "PROGRAMS")),
    Evidence(CATALOGUE, "test_personalized_pagerank_by_name", COLUMNS[:3], lambda: {"personalized_pagerank"}),
    Evidence("engine/kernels/cuda/test_launch.py", "test_shapes", COLUMNS[2:3], lambda: OLDEST),
    Evidence(CUDA_ROWS, "test_rows_in_blocks_and_strips", COLUMNS[2:3], lambda: ROWS),
    Evidence(CUDA_ROWS, "test_vectors", COLUMNS[2:3], lambda: {"cf"}),
    Evidence(CATALOGUE, "test_simulated_gpu", COLUMNS[2:3], CASES.keys),
    Evidence("gpu/test_device.py", "test_every_shape", COLUMNS[3:], lambda: keys_of(DEVICE, "ELSEWHERE")),
    Evidence(DEVICE, "test_the_hosts_answer", COLUMNS[3:], lambda: CASES.keys() | keys_of(DEVICE, "MORE")),
)


def checked() -> dict[str, dict[str, set[str]]]:
    """Program -> column -> letters: d(irected), u(ndirected), w(eighted)."""
    found: dict[str, dict[str, set[str]]] = {name: {column: set() for column in COLUMNS} for name in PROGRAMS}
    for evidence in EVIDENCE:
        letters = {"d" if directed else "u" for directed in directions(evidence)}
        for name in evidence.programs():
            weighted = evidence.weights and name in WEIGHTED
            for column in evidence.columns:
                found[name][column] |= letters | ({"w"} if weighted else set())
    return found
