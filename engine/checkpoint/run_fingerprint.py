"""What makes two runs the same run, so that one may go on with the other's checkpoint; and what differs, in words.

The same graph (`storage/format/fingerprint.py`), the same program (the text of its functions, layout and comments
aside, with its parameters), the same options that change what is computed, a Penstock whose runs mean the same.
Budgets, threads, routes, devices and the place of files do not count: answers are the same across them.
Parameters that only say where a run ends do not count either (`Program.extendable`): a run goes on from a checkpoint
with a higher max_iter, or a lower tol, since all its iterations are those of the run that ends later.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import textwrap
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from penstock import __version__
from penstock.engine.program.program import Field, Global, Program, scalar_names
from penstock.engine.program.program_description import from_json_value, to_json_value
from penstock.storage.base.errors import InputError, brief
from penstock.storage.base.function_digest import codes
from penstock.storage.format.fingerprint import fingerprint

if TYPE_CHECKING:
    from penstock.engine.execution.loop import Loop
    from penstock.engine.resources.config import Config
    from penstock.storage.format.graph import Graph

MEANING = 1
"""Raised by a change after which a run that is continued would not end as one that ran through."""
OPTIONS = ("mode", "direction", "precision")
"""Options that change what is computed, not only how."""
SHOWN = ("phase_name", "phase_count", "phase_names")
"""What a program has only to say how far it is."""
LONGEST = 60
NUMBERS = (int, float, np.number, np.bool_)
_parsing = threading.Lock()
"""CPython 3.11 counts the depth of the trees of all threads in one place: two that parse at a time may fail."""

Fingerprint = dict[str, Any]


def run_fingerprint(program: Program, graph: Graph, config: Config) -> Fingerprint:
    """Who a run is, as plain JSON. Raises InputError for a program with an attribute that JSON cannot hold."""
    return {
        "penstock": __version__,
        "meaning": MEANING,
        "graph": fingerprint(graph),
        "program": program_fingerprint(program),
        "options": {name: getattr(config, name) for name in OPTIONS},
    }


def program_fingerprint(program: Program) -> Fingerprint:
    """A program's name, the digest of its text, and its attributes."""
    return {
        "name": type(program).__qualname__,
        "text": text_digest(type(program)),
        "parameters": attributes(program),
    }


def attributes(program: Program) -> dict[str, Any]:
    """What is stored on a program, as plain JSON. Raises InputError for what cannot be kept."""
    found = {}
    for name, value in vars(program).items():
        try:
            found[name] = to_json_value(value)
        except TypeError as error:
            raise InputError(
                f"{type(program).__name__}.{name} is or holds {error}, which a checkpoint cannot keep: it keeps "
                "numbers, texts, NumPy arrays, and lists, tuples, sets, dictionaries of them; run without checkpoints"
            ) from None
    return found


@dataclass
class RecordingAttributes:
    """A program whose attributes a checkpoint keeps: those that are not as they were at first."""

    program: Program
    identity: dict[str, Any]

    @classmethod
    def begin(cls, program: Program) -> RecordingAttributes:
        """Note its attributes as they are."""
        return cls(program, program_fingerprint(program))

    def changed(self) -> dict[str, Any]:
        """The attributes that are others now, as plain JSON."""
        first = self.identity["parameters"]
        now = attributes(self.program)
        return {name: value for name, value in now.items() if name not in first or first[name] != value}

    def restore(self, changed: Mapping[str, Any]) -> None:
        """Give them the values that they had. Raises ValueError for what no run writes.

        Texts and functions that the engine reads of a program become the source of its kernels, so that a checkpoint
        chooses none of them: of what Program declares it sets numbers alone, also those in `watched`, and it sets no
        function's name.
        """
        values = {name: from_json_value(value) for name, value in changed.items()}
        for name, value in values.items():
            declared, engine = getattr(type(self.program), name, None), hasattr(Program, name)
            several = name == "watched" and isinstance(value, list | tuple)
            if callable(declared) or (engine and not (several or isinstance(declared, int | float))):
                raise ValueError(f"no run changes {name}")
            numbers = value if several else [value]
            if (engine or name in scalar_names(self.program)) and not all(isinstance(one, NUMBERS) for one in numbers):
                raise ValueError(f"{name} is {brief(repr(value))}, not a number")
        vars(self.program).update(values)


def differences(there: Fingerprint, here: Fingerprint, program: Program) -> list[str]:
    """What the run of a checkpoint had otherwise than this one, in words; nothing where this one goes on with it."""
    if there["meaning"] != here["meaning"]:
        return [
            f"it was written by Penstock {there['penstock']} (meaning {there['meaning']}), and this is "
            f"{here['penstock']} (meaning {here['meaning']}), which would not continue it rightly"
        ]
    found = []
    for name in ("vertices", "edges", "directed", "content"):
        if there["graph"][name] != here["graph"][name]:
            found.append(f"its graph has {name} {there['graph'][name]}, this one {here['graph'][name]}")
    others = _other_program(*(without_limits(one["program"], program) for one in (there, here)))
    found += others or goes_on(there["program"], here["program"], program)
    for name in OPTIONS:
        if there["options"][name] != here["options"][name]:
            found.append(f"it ran with {name} {there['options'][name]}, this run has {here['options'][name]}")
    return found


def _other_program(there: Fingerprint, here: Fingerprint) -> list[str]:
    if there["name"] != here["name"]:
        return [f"it is of the program {there['name']}, this is {here['name']}"]
    if there["text"] != here["text"]:
        return [f"the functions of {here['name']} were others"]
    had, have = there["parameters"], here["parameters"]
    return [
        f"its {name} was {_short(had.get(name))}, here it is {_short(have.get(name))}"
        for name in sorted({*had, *have})
        if name not in had or name not in have or had[name] != have[name]
    ]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def text_digest(program: type[Program]) -> str:
    """Digest of everything the author wrote: declarations and functions, with what they use of their own module.

    Taken once a process, for a file that is edited while its program runs has other texts than what runs.
    """
    return _digest_of(cast("Any", program))


@functools.cache
def _digest_of(program: Any) -> str:
    with _parsing:
        return hashlib.sha256(_declared(program, set()).encode()).hexdigest()[:32]


def _declared(program: type[Program], seen: set[int]) -> str:
    """A text of a class and of those it derives from; "" once it was seen."""
    lines = []
    for base in program.__mro__[: program.__mro__.index(Program)]:
        if id(base) not in seen:
            seen.add(id(base))
            written = {name: value for name, value in vars(base).items() if _counts(name)}
            lines += [f"{name}={_described(value, seen)}" for name, value in sorted(written.items())]
    return "\n".join(lines)


def _counts(name: str) -> bool:
    """Whether an attribute of a class, by its name, is part of what the class computes."""
    return name not in SHOWN and (name == "__init__" or name[:2] != "__")


def _described(value: Any, seen: set[int]) -> str:
    """A text of a class's attribute, the same in every process."""
    function = inspect.unwrap(getattr(value, "__func__", value))
    if _is_program(value):
        return _declared(value, seen)
    if isinstance(value, Global):
        return f"Global {value.dtype} {value.combine} {_described(value.function, seen)}"
    if isinstance(value, Field):
        return f"Field {value.dtype!r} {value.fill!r} {value.shape} {value.constant} {value.output} {value.unreached!r}"
    if isinstance(value, tuple):
        return f"({', '.join(_described(item, seen) for item in value)})"
    if not inspect.isfunction(function):
        return repr(value) if isinstance(value, int | float | str | np.generic | None) else type(value).__name__
    if id(function) in seen:
        return ""
    seen.add(id(function))
    inside = (f"{name}={_described(held, seen)}" for name, held in _reads(function))
    return f"{_text(function)} {' '.join(inside)}"


def _reads(function: Any) -> Iterator[tuple[str, Any]]:
    """What a function finds by name: functions and programs of its own module, and plain constants."""
    names = {name for code in codes(function.__code__) for name in code.co_names}
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    found = {name: function.__globals__[name] for name in names if name in function.__globals__}
    found |= {name: cell.cell_contents for name, cell in cells}
    for name, value in sorted(found.items()):
        value = inspect.unwrap(value) if callable(value) else value
        ours = inspect.isfunction(value) or _is_program(value)
        if (ours and value.__module__ == function.__module__) or isinstance(value, int | float | str | np.generic):
            yield name, value


def _is_program(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, Program)


def _text(function: Callable[..., Any]) -> str:
    """The source of a function without comments, layout and docstrings; its bytecode where there is none of its own."""
    tree = _tree(function)
    if tree is None:
        return " ".join(_of_bytecode(code) for code in codes(function.__code__))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def _tree(function: Callable[..., Any]) -> ast.Module | None:
    """A function's source, parsed; None without any. A lambda's is a line that may hold several."""
    if function.__name__ == "<lambda>":
        return None
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return None


def _of_bytecode(code: CodeType) -> str:
    constants = [sorted(map(repr, held)) if isinstance(held, frozenset) else held for held in code.co_consts]
    plain = [held for held in constants if not isinstance(held, CodeType)]
    return f"{code.co_code.hex()} {code.co_names} {plain}"


def without_limits(identity: Fingerprint, program: Program) -> Fingerprint:
    """Return a program's fingerprint without the parameters that only say where a run ends."""
    parameters = {name: value for name, value in identity["parameters"].items() if name not in program.extendable}
    return {**identity, "parameters": parameters}


def goes_on(there: Fingerprint, here: Fingerprint, program: Program) -> list[str]:
    """Return why a run with these limits does not go on where another one was, in words; nothing where it does."""
    had, have = there["parameters"], here["parameters"]
    found = []
    for name, word in (("max_iter", "higher"), ("tol", "lower")):
        if name in program.extendable and name in had and name in have:
            earlier = have[name] < had[name] if word == "higher" else have[name] > had[name]
            if earlier:
                found.append(f"its {name} was {had[name]}, here it is {have[name]}, and only a {word} one goes on")
    return found


def is_extended(there: Fingerprint, here: Fingerprint, program: Program) -> bool:
    """Whether a limit is another one."""
    return any(there["parameters"].get(name) != here["parameters"].get(name) for name in program.extendable)


def reconsider(loop: Loop) -> None:
    """Let a loop that was done ask its program again, whose limits are others now."""
    if loop.finished and loop.iteration:
        loop.finished = loop.converged = loop.program.done(loop.iteration - 1, loop.totals)


def may_be_extended(program: Program, loop: Loop) -> bool:
    """Whether the iteration that a loop has done is the last one of a run that could go on with other limits."""
    phase = loop.phase
    last = phase is None or (phase.count is not None and phase.number == phase.count - 1)
    return bool(program.extendable) and last and (loop.finished or loop.iteration >= loop.program.max_iter)
