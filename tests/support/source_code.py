"""Where things lie, and Penstock's own source read with ast: imports, what a file touches, alarms.

Owns the reading; the rules are in test_architecture.py. Nothing here imports penstock, so a broken
module is still readable. Names are followed through `import … as …` and `from … import …`, not
through assignment.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
SHARED = ROOT.parent / "shared" / "data"
FLOORS = ("storage", "transfer", "engine", "tools")
"""Lowest first."""

FILE_LINES = 300
FUNCTION_LINES = 50
PARAMETERS = 6

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One source file: `name` is dotted (penstock.storage.format.graph), `path` starts at a floor."""

    name: str
    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, filename=self.path)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        return tuple(ast.walk(self.tree))

    @property
    def floor(self) -> str:
        return self.path.split("/", 1)[0]

    @cached_property
    def touched(self) -> frozenset[str]:
        """Every dotted name the file imports or uses, with its prefixes; builtins as builtins.X."""
        bound = dict(self.bindings)
        found = {target for _, target in self.bindings}
        for node in self.nodes:
            dotted = _dotted(node)
            if dotted is None:
                continue
            head, _, rest = dotted.partition(".")
            if head in bound:
                found.add(f"{bound[head]}.{rest}" if rest else bound[head])
            elif not rest and isinstance(node, ast.Name):
                found.add(f"builtins.{head}")
        return frozenset(prefix for name in found for prefix in _prefixes(name))

    @cached_property
    def bindings(self) -> tuple[tuple[str, str], ...]:
        """Pairs (local name, dotted name it stands for) of every import, wherever it stands."""
        return tuple(self._bindings())

    def _bindings(self) -> Iterator[tuple[str, str]]:
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    head = alias.name.split(".", 1)[0]
                    yield alias.asname or head, alias.name if alias.asname else head
                    yield "", alias.name
            elif isinstance(node, ast.ImportFrom):
                source = "." * node.level + (node.module or "")
                for alias in node.names:
                    yield alias.asname or alias.name, f"{source}.{alias.name}"

    @cached_property
    def strings(self) -> tuple[str, ...]:
        """Every string constant of the file."""
        nodes = [node for node in self.nodes if isinstance(node, ast.Constant)]
        return tuple(node.value for node in nodes if isinstance(node.value, str))

    def names(self) -> Iterator[str]:
        """The file's own name and those of its classes and functions."""
        yield self.path.rsplit("/", 1)[1].removesuffix(".py")
        for node in self.nodes:
            if isinstance(node, Function | ast.ClassDef):
                yield node.name

    def methods_called(self) -> Iterator[str]:
        """Names of the attributes that the file calls: `x.save(…)` gives save."""
        for node in self.nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                yield node.func.attr


def modules(root: Path = ROOT) -> dict[str, Module]:
    """Every module of the four floors by dotted name."""
    found = {}
    for floor in FLOORS:
        for path in sorted((root / floor).rglob("*.py")):
            relative = path.relative_to(root)
            parts = relative.with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            name = ".".join(("penstock", *parts))
            found[name] = Module(name, relative.as_posix(), path.read_text(encoding="utf-8"))
    return found


def imported(module: Module, known: dict[str, Module]) -> set[str]:
    """The penstock modules that `module` names: imports, typing-only ones, and lazy strings.

    A string that equals a module's dotted name counts (importlib, lazy exports). The package
    above an imported module does not.
    """
    found = set()
    for _, target in module.bindings:
        candidates = [name for name in _prefixes(target) if name in known]
        if candidates:
            found.add(max(candidates, key=len))
    found |= {text for text in module.strings if text in known}
    return found - {module.name}


def alarms(known: dict[str, Module]) -> list[str]:
    """Files, functions and parameter lists that are longer than house style's alarm, worst first."""
    report = []
    for module in known.values():
        lines = module.text.count("\n")
        if lines > FILE_LINES:
            report.append((lines / FILE_LINES, f"{module.path}: {lines} lines"))
        for node in module.nodes:
            if isinstance(node, Function):
                report.extend(_function_alarms(module, node))
    return [text for _, text in sorted(report, reverse=True)]


def _function_alarms(module: Module, node: Function) -> Iterator[tuple[float, str]]:
    where = f"{module.path}:{node.lineno} {node.name}"
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    if lines > FUNCTION_LINES:
        yield lines / FUNCTION_LINES, f"{where}: {lines} lines"
    arguments = node.args
    count = len(arguments.posonlyargs + arguments.args + arguments.kwonlyargs)
    first = (arguments.posonlyargs + arguments.args)[:1]
    count -= bool(first and first[0].arg in ("self", "cls"))
    if count > PARAMETERS:
        yield count / PARAMETERS, f"{where}: {count} parameters"


def _dotted(node: ast.AST) -> str | None:
    """`a.b.c` of an attribute chain that starts at a name, else None."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = _dotted(node.value)
        return None if head is None else f"{head}.{node.attr}"
    return None


def _prefixes(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[: end + 1]) for end in range(len(parts)) if parts[end]]
