"""An author's functions behind one calling convention, for any compiler.

Owns the small adapters between what an author writes (`edge(distance, weight)`) and what a kernel
calls (`edge(fields, scalars, sent, u, v, w, d, base)`). `compile_function` is the identity for the
reference kernels, `numba.njit` for the host and `numba.cuda.jit(device=True)` for a GPU: the same
plain functions serve all three. Refuses nothing itself: `program_check` has run before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from types import CodeType
from typing import Any

import numpy as np
from penstock.engine.program.combiners import COMBINERS, identity_of
from penstock.engine.program.program import (
    Program,
    arguments,
    author_function,
    fields_of,
    functions_of,
    globals_of,
    may_settle,
    message_dtype,
    scalar_names,
)
from penstock.storage.base.errors import InputError
from penstock.storage.base.function_digest import function_digest

Compile = Callable[[Callable[..., Any]], Callable[..., Any]]


@dataclass(frozen=True)
class Author:
    """The author's functions, compiled. `calls`: by role, in adapters whose arguments `_texts` gives.

    reads_sender: whether `edge` reads more of the sending vertex than its message: a field, its id or its degree.
    weighted: whether kernels give it the weights of edges; else each weighs 1.
    resets: whether accumulators get the identity back once `vertex` has run; else a field keeps what they have.
    in_place: whether that field is the accumulator of sweeps, empty from `send` on. `vertex` and Globals then find what
    the vertex has sent behind the scalars, if there is a `send` (tells_sent).
    """

    name: str
    combine: str
    message: np.dtype[Any]
    identity: Any
    scalars: tuple[str, ...]
    totals: tuple[str, ...]
    partial_start: np.ndarray[Any, np.dtype[np.float64]]
    early_exit: bool
    everywhere: bool
    has_send: bool
    has_priority: bool
    has_pending: bool
    has_suffices: bool
    settles: bool
    uses_activity: bool
    has_vectors: bool
    reads_sender: bool
    resets: bool
    in_place: bool
    fingerprint: str
    weighted: bool
    calls: dict[str, Callable[..., Any]]

    @property
    def key(self) -> str:
        """What is compiled of these functions depends on it."""
        return f"{self.fingerprint}{self.weighted}"

    @property
    def may_make_arrays(self) -> bool:
        """Whether functions of vectors may make arrays; those of a program that merges vectors must not."""
        return self.has_vectors and self.combine != "merge"

    @cached_property
    def tells_sent(self) -> bool:
        """Whether `vertex` and Globals may read what the vertex has sent."""
        return self.in_place and self.has_send

    @cached_property
    def sweeps(self) -> bool:
        """Whether every vertex sends in every iteration, and all messages are gathered."""
        return self.everywhere and self.has_send and not self.early_exit


def bind(
    program: Program, vertex_dtype: np.dtype[Any], compile_function: Compile, *, plain: bool, weighted: bool = False,
    arrays: bool = False,
) -> Author:  # fmt: skip
    """Compile the program's functions with `compile_function`, for edges with weights or without.

    plain: read fields as Python numbers (for the reference kernels), not as NumPy scalars. arrays: vertices and edges
    are arrays of them, and adapters are not compiled.
    """
    texts = _texts(program, plain=plain, arrays=arrays)
    namespace: dict[str, Any] = {"np": np} if arrays else {}
    for role, function in functions_of(program):
        if role != "global":
            namespace[f"author_{role}"] = compile_function(function)
    for name, total in globals_of(program).items():
        if total.function is not None:
            namespace[f"author_global_{name}"] = compile_function(total.function)
    calls = {}
    for name, text in texts.items():
        made = define(name, text, namespace)
        calls[name] = made if arrays else compile_function(made)
    vertex = author_function(program, "vertex")
    message = message_dtype(program, vertex_dtype)
    return Author(
        name=type(program).__name__,
        combine=program.combine,
        message=message,
        identity=identity_of(program.combine, message),
        scalars=scalar_names(program),
        totals=tuple(globals_of(program)),
        partial_start=np.array(
            [identity_of(g.combine, np.dtype(np.float64)) for g in globals_of(program).values()], dtype=np.float64
        ),
        early_exit=program.early_exit,
        everywhere=program.everywhere,
        has_send=author_function(program, "send") is not None,
        has_priority=author_function(program, "priority") is not None,
        has_pending=author_function(program, "pending") is not None,
        has_suffices=author_function(program, "suffices") is not None,
        settles=author_function(program, "unsettled") is not None and may_settle(program),
        uses_activity=vertex is not None and "is_active" in arguments(vertex),
        has_vectors=any(spec.shape for spec in fields_of(program).values()),
        reads_sender=_reads_sender(program),
        resets=not program.accumulator,
        in_place=program.in_place,
        fingerprint=fingerprint(program, texts),
        weighted=weighted,
        calls=calls,
    )


def define(name: str, text: str, names: dict[str, Any]) -> Callable[..., Any]:
    """Define the function of a generated text, and return it; names: what the text uses, and where it is put."""
    exec(_code(name, text), names)
    return names[name]  # type: ignore[no-any-return]


@cache
def _code(name: str, text: str) -> CodeType:
    """Compile the text of a function; runs of the same program have the same ones."""
    return compile(text, f"<penstock adapter {name}>", "exec")


def scalars_later(author: Author) -> Callable[..., Any]:
    """Return a function for the scalars some iterations later, below another limit."""
    later = {"iteration": "scalars[{0}] + count", "due": "limit"}
    names = [later.get(name, "scalars[{0}]").format(k) + ", " for k, name in enumerate(author.scalars)]
    text = "def ahead(scalars, count, limit):\n    return " + (f"({''.join(names)})\n" if names else "scalars\n")
    return define("ahead", text, {})


def _reads_sender(program: Program) -> bool:
    edge = author_function(program, "edge")
    return edge is not None and not {"source", "degree", *fields_of(program)}.isdisjoint(arguments(edge))


def _texts(program: Program, *, plain: bool, arrays: bool) -> dict[str, str]:
    """Source of every adapter, by name."""
    fields = fields_of(program)
    changing = [(i, f) for i, (f, spec) in enumerate(fields.items()) if not spec.constant]
    names = _Names(program, tuple(fields), plain=plain)
    texts = {
        "edge": names.adapter("edge", "fields, scalars, sent, u, v, w, d, base", "u", "v"),
        "cond": names.adapter("cond", "fields, scalars, v, d, base", "v", absent="True"),
        "suffices": names.adapter("suffices", "fields, scalars, incoming, v, base", "v", absent="False"),
        "unsettled": names.adapter("unsettled", "fields, scalars, v, d, base", "v", absent="True"),
        "send": names.adapter("send", "fields, scalars, v, d, base", "v", absent="0"),
        "priority": names.adapter("priority", "fields, scalars, v, d, base", "v", absent="0.0"),
        "pending": names.adapter("pending", "fields, scalars, v, d, base", "v", absent="0.0"),
        "corner": names.adapter("corner", "scalars, opposite", "v"),
        "merge": names.adapter("merge", "scalars, one, other", "v", absent="one + other"),
    }
    first = names.value(changing[0][1], "v") if changing else "0"
    merged = _merged(program.combine, arrays=arrays) if program.combine in COMBINERS else "{0}"
    texts["vertex"] = names.adapter(
        "vertex",
        "fields, scalars, incoming, is_active, v, d, base",
        "v",
        absent=merged.format(first, "incoming"),
        returned="({0},)" if len(changing) == 1 else "{0}",
    )
    old = ", ".join(names.value(field, "v") for _, field in changing)
    texts["load"] = f"def load(fields, v, base):\n    return ({old},)\n"
    if program.in_place:
        taken = list(fields).index(program.accumulator)
        texts["arrived"] = f"def arrived(fields, v, base):\n    return {names.value(program.accumulator, 'v')}\n"
        texts["empty"] = f"def empty(fields, v, base, identity):\n    fields[{taken}][v - base] = identity\n"
    lines = [f"    fields[{i}][v - base] = new[{k}]" for k, (i, _) in enumerate(changing)]
    texts["store"] = "def store(fields, v, base, new):\n" + "\n".join(lines) + "\n"
    vectors = any(fields[name].shape for _, name in changing)
    if vectors and not plain:
        texts["store"] = store_by_numbers(program, checked=program.combine != "merge")
    scalar = [(k, name) for k, (_, name) in enumerate(changing) if not fields[name].shape]
    either, both, unequal = ("|", "&", "({} != {})") if arrays else ("or", "and", "{} != {}")
    different = [unequal.format(f"old[{k}]", names.value(name, "v")) for k, name in scalar]
    differs = f" {either} ".join(different) or "True"
    signature = "fields, old, scalars, v, d, base"
    asked = program.self_combining and author_function(program, "active") is not None  # of what changed only
    returned = f"({differs}) {both} {{0}}" if asked else "{0}"
    texts["active"] = names.adapter("active", signature, "v", absent=differs, returned=returned)
    texts["accumulate"] = _accumulate_text(program, names, signature, arrays=arrays)
    if program.combine == "all":
        looked = names.call("", (program.chosen_by,), "v", None) + " != 0" if program.chosen_by else "True"
        texts["chosen"] = f"def chosen(fields, v, base):\n    return {looked}\n"
    return texts


def store_by_numbers(program: Program, *, checked: bool = False) -> str:
    """Source of `store` with vector fields number by number: numba-cuda assigns no arrays, and Numba copies them.

    checked: it raises ValueError for a vector of another length. Numba's own check compiles for two seconds.
    """
    lines = ["def store(fields, v, base, new):"]
    changing = [(i, name, spec) for i, (name, spec) in enumerate(fields_of(program).items()) if not spec.constant]
    for place, (number, name, spec) in enumerate(changing):
        if checked and spec.shape:
            lines.append(f"    if new[{place}].shape != fields[{number}].shape[1:]:")
            lines.append(f"        raise ValueError('vertex() returns {name} of another shape than the field has')")
        for depth in range(len(spec.shape)):
            lines.append("    " * (depth + 1) + f"for at{depth} in range(fields[{number}].shape[{depth + 1}]):")
        inner = ", ".join(f"at{depth}" for depth in range(len(spec.shape)))
        target, value = (f"[v - base, {inner}]", f"[{inner}]") if inner else ("[v - base]", "")
        lines.append("    " * (len(spec.shape) + 1) + f"fields[{number}]{target} = new[{place}]{value}")
    return "\n".join(lines) + "\n"


def _merged(combine: str, *, arrays: bool) -> str:
    """Source of what two values, or arrays of them, are merged into."""
    return f"np.{COMBINERS[combine].ufunc.__name__}({{}}, {{}})" if arrays else COMBINERS[combine].text


def _accumulate_text(program: Program, names: _Names, signature: str, *, arrays: bool) -> str:
    lines = [f"def accumulate(partial, row, {signature}):"]
    for k, (name, total) in enumerate(globals_of(program).items()):
        if total.function is None:
            raise InputError(f"{type(program).__name__}.{name} is a Global without a function")
        call = names.call(f"author_global_{name}", arguments(total.function), "v", None, sends=False)
        lines.append(f"    value = {call}")
        cell = f"partial[row, {k}]"
        one = f"{cell} = {COMBINERS[total.combine].text.format(cell, 'value')}"
        every = f"np.{COMBINERS[total.combine].ufunc.__name__}.at(partial[:, {k}], row, value)"
        lines.append(f"    {every if arrays else one}")
    return "\n".join(lines if len(lines) > 1 else [*lines, "    pass"]) + "\n"


class _Names:
    """Turns argument names into the expressions that a kernel's arguments give for them."""

    def __init__(self, program: Program, fields: tuple[str, ...], *, plain: bool) -> None:
        self.program = program
        self.fields = fields
        self._plain = plain
        self.scalars = scalar_names(program)
        specs = fields_of(program)
        self.changing = [f for f in fields if not specs[f].constant]

    def value(self, field: str, of: str) -> str:
        """A field's entry of a vertex; where it is one number and all is plain, as a Python number."""
        numbers = self._plain and not fields_of(self.program)[field].shape
        values = f"fields[{self.fields.index(field)}]"
        return f"{values}.item({of} - base)" if numbers else f"{values}[{of} - base]"

    def adapter(
        self,
        role: str,
        signature: str,
        own: str,
        target: str | None = None,
        *,
        absent: str = "0",
        returned: str = "{0}",
    ) -> str:
        """Source of a function that calls the author's, or has the value `absent`; returned: the template of both."""
        function = author_function(self.program, role)
        value = absent
        if function is not None:
            value = self.call(f"author_{role}", arguments(function), own, target, sends=role != "vertex")
        return f"def {role}({signature}):\n    return {returned.format(value)}\n"

    def call(self, function: str, names: tuple[str, ...], own: str, target: str | None, *, sends: bool = True) -> str:
        """Source of a call; sends: whether `sent` is an argument of the adapter, else it is behind the scalars."""
        given = [self._expression(n, own, target) for n in names]
        if not sends:
            given = [f"scalars[{len(self.scalars)}]" if one == "sent" else one for one in given]
        return f"{function}({', '.join(given)})"

    def _expression(self, name: str, own: str, target: str | None) -> str:
        if name in self.fields:
            return self.value(name, own)
        if target and name.startswith("target_") and name[7:] in self.fields:
            return self.value(name[7:], target)
        if name.startswith("every_") and name[6:] in self.fields:
            return f"fields[{self.fields.index(name[6:])}]"
        if name.startswith("old_") and name[4:] in self.changing:
            return f"old[{self.changing.index(name[4:])}]"
        if name in self.scalars:
            return f"scalars[{self.scalars.index(name)}]"
        words = {"weight": "w", "degree": "d", "source": "u", "target": "v", "vertex_id": "v"}
        words |= {"message": "sent"}
        return words.get(name, name)


def scalar_values(program: Program, author: Author, facts: dict[str, Any]) -> tuple[Any, ...]:
    """The scalars' values in the order of `author.scalars`; integers as int64, the rest float64."""
    values = []
    for name in author.scalars:
        value = facts[name] if name in facts else getattr(program, name)
        whole = isinstance(value, int | np.integer)
        values.append(np.int64(value) if whole else np.float64(value))
    return tuple(values)


def fingerprint(program: Program, texts: dict[str, str]) -> str:
    """Digest of everything the compiled code depends on: the author's bytecode and constants."""
    digest = hashlib.sha256()
    flags = (program.combine, program.early_exit, program.everywhere, program.self_combining, program.accumulator)
    shapes = [(name, field.constant, len(field.shape)) for name, field in fields_of(program).items()]
    digest.update(repr((flags, shapes)).encode())
    for name in sorted(texts):
        digest.update(texts[name].encode())
    for role, function in functions_of(program):
        digest.update(role.encode())
        digest.update(function_digest(function).encode())
    return digest.hexdigest()
