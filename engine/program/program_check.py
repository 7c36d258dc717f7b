"""Refuses, before anything runs, words of a program that its kind of run would pass over, with the way out.

There are five kinds of run: iterations over edges (synchronous, or asynchronous where updates are seen at once), whole
rows (`all`, vectors), triangles (`corner`), linking trees (`union`), and phases. Each reads some words of `Program`;
the others would change nothing, so that a program that has them would not do what its author intends.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.program.combiners import identity_of
from penstock.engine.program.parameters import Count, check_value
from penstock.engine.program.program import (
    Program,
    Start,
    arguments,
    author_function,
    check,
    fields_of,
    functions_of,
    globals_of,
    has_phases,
    message_dtype,
    needs_rows,
    resolve_dtype,
    value_of,
    words_of,
)
from penstock.storage.base.errors import InputError, RunError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.storage.format.graph import Graph

IDEMPOTENT = ("min", "max", "or")
"""Combiners to which a message that comes twice, or early, means what it meant once."""
ROLES = ("send", "edge", "cond", "suffices", "vertex", "active", "priority", "pending", "corner", "merge")
_OF_EDGES = (
    "combine",
    "message",
    "message_shape",
    "early_exit",
    "visits_once",
    "accumulator",
    "self_combining",
    "everywhere",
    "chosen_by",
    "along",
    "bucket",
)


def check_program(program: Program) -> None:
    """Refuse a program that cannot run, or that has attributes its kind of run ignores. Raises InputError."""
    check(program)
    check_value(f"{_name(program)}.max_iter", program.max_iter, Count)
    if has_phases(program):
        _check_phases(program)
        return
    _check_weight(program)
    _check_kept(program)
    _check_old(program)
    if program.combine == "union":
        _refuse(program, ROLES, "a program that links trees (combine = 'union') runs none of them")
        _check_one_pass(program, "links trees")
    elif author_function(program, "corner") is not None:
        _refuse(program, ("active",), "every vertex gets its messages once")
        _check_one_pass(program, "meets triangles")
    elif program.everywhere:
        _refuse(program, ("active", "priority"), "with everywhere = True every vertex is active in every iteration")
    _check_early_exit(program)
    _check_suffices(program)
    if program.accumulator:
        _check_accumulator(program)
    if program.self_combining:
        _check_self_combining(program)
    if program.chosen_by:
        _check_chosen_by(program)


def check_start(program: Program, start: Any) -> None:
    """Refuse a first frontier that would not be the one that runs; `start` has run, so the bucket is known."""
    name = _name(program)
    if not isinstance(start, Start):
        raise InputError(
            f"{name}.start() returned {type(start).__name__}; return Start(active=ids), or Start(everything=True)"
        )
    if start.active is not None and start.everything:
        raise InputError(f"{name}.start returns active vertices and everything = True; return one of them")
    if start.active is None and not start.everything:
        raise InputError(
            f"{name}.start returns a Start() without a frontier; return Start(active=ids), which may be none, or "
            "Start(everything=True)"
        )
    every = program.everywhere or program.combine == "union" or needs_rows(program)
    if every and not start.everything:
        raise InputError(
            f"{name}.start returns active vertices, but every vertex is active in this kind of program; return "
            "Start(everything=True)" + (", or leave everywhere out" if program.everywhere else "")
        )
    bucket, has_priority = program.bucket, author_function(program, "priority") is not None
    if math.isnan(bucket) or bucket < 0:
        raise InputError(f"{name}.bucket is {bucket}; it must be a number above 0, the width of a bucket of priorities")
    if has_priority != (bucket > 0):
        raise InputError(
            f"{name} has priority() and no bucket, so that no vertex would wait; set self.bucket to a bucket's width"
            if has_priority
            else f"{name}.bucket is {bucket}, and there is no priority() to sort vertices into buckets; add one, or "
            "leave bucket out"
        )


def check_field_types(program: Program, graph: Graph) -> None:
    """Refuse messages of another type than the field that they are combined in, and such a field's first value."""
    if not (program.self_combining or program.accumulator) or has_phases(program):
        return
    first, why = program.accumulator or next(iter(fields_of(program))), "accumulator" if program.accumulator else ""
    field = fields_of(program)[first]
    message, value = message_dtype(program, graph.vertex_dtype), resolve_dtype(field.dtype, graph.vertex_dtype)
    if message != value:
        raise InputError(
            f"{_name(program)}.message is {message}, and {first!r}, which takes the messages itself "
            f"({why or 'self_combining'}), is {value}; leave message out, or declare both alike"
        )
    if why and not program.in_place and value_of(field.fill, value) != identity_of(program.combine, value):
        raise InputError(
            f"{_name(program)}.{first} is {field.fill!r} at first, and an accumulator is what the combiner "
            f"{program.combine!r} begins with, {identity_of(program.combine, value)}; give it that fill, or leave "
            "accumulator out"
        )


def check_phase(phase: Program, graph: Graph, mode: str) -> None:
    """Refuse a phase that would be another program on this graph: phases run as they are. Raises InputError."""
    form = phase.form(graph, mode)
    if form is not phase:
        raise InputError(
            f"{_name(phase)} is {_name(form)} on this graph, and a phase runs as it is: yield "
            f"phase.form(graph, {mode!r}) where it is to be that"
        )


def check_sufficed(phase: Program, values: dict[str, NDArray[Any]]) -> None:
    """Refuse the values of a phase that asks for another program in its stead, which no phase has. Raises RunError."""
    other = None if type(phase).instead is Program.instead else phase.instead(values)
    if other is not None:
        raise RunError(
            f"{_name(phase)}, a phase, ended with numbers that did not suffice, and a phase is not run again; yield "
            f"{_name(other)} in its place"
        )


def synchronous_words(program: Program) -> list[str]:
    """What of a self-combining program only a synchronous run honors: asynchronous ones combine messages and no more.

    Such a run has no moment at which `vertex`, `active`, Globals or `done` could look at all values of one iteration,
    and how far a message gets in one iteration depends on the route; so iterations count for nothing there.
    """
    found = [f"{role}()" for role in ("vertex", "active") if author_function(program, role) is not None]
    found += [f"the Global {name}" for name in globals_of(program)]
    if type(program).done is not Program.done:
        found.append("done()")
    if program.max_iter < Program.max_iter:
        found.append(f"max_iter = {program.max_iter}")
    if "iteration" in words_of(program):
        found.append("the argument `iteration`")
    if program.combine not in IDEMPOTENT:
        found.append(f"combine = {program.combine!r}")
    return found


def _name(program: Program) -> str:
    return type(program).__name__


def _says(program: Program, word: str) -> bool:
    """Whether a program, or a class that it derives from, gives a word another value than `Program` does."""
    return bool(getattr(program, word) != getattr(Program, word))


def _refuse(program: Program, roles: tuple[str, ...], why: str) -> None:
    for role in roles:
        if author_function(program, role) is not None:
            raise InputError(f"{_name(program)} has {role}(), which would never be run: {why}; leave it out")


def _check_phases(program: Program) -> None:
    name, out = _name(program), "say it in the programs that phases() yields, and leave it out here"
    for role, function in functions_of(program):
        said = f"the Global {function.__name__}" if role == "global" else f"{role}()"
        raise InputError(f"{name} has phases and {said}, which would never be run; {out}")
    for method in ("start", "done", "instead"):
        if getattr(type(program), method) is not getattr(Program, method):
            raise InputError(f"{name} has phases and {method}(), which would never be run; {out}")
    for word in _OF_EDGES:
        if _says(program, word):
            raise InputError(f"{name} has phases and {word} = {getattr(program, word)!r}, which nothing reads; {out}")


def _check_one_pass(program: Program, does: str) -> None:
    """What a run that is one pass over the edges has no iterations for."""
    name = _name(program)
    if type(program).done is not Program.done:
        raise InputError(
            f"{name} has done(), but a program that {does} is done when it has seen every edge; leave it out"
        )
    if _says(program, "max_iter"):
        raise InputError(
            f"{name}.max_iter is {program.max_iter}, but a program that {does} has no iterations to leave out; leave "
            "max_iter out"
        )
    if globals_of(program) and program.combine == "union":
        raise InputError(f"{name} has Globals, which a program that {does} never computes; leave them out")
    words = ("message_shape", "early_exit", "visits_once", "accumulator", "self_combining", "bucket")
    for word in (*words, "along", "message", "needs_weights") if program.combine == "union" else words:
        if _says(program, word):
            raise InputError(f"{name} {does}, and {word} = {getattr(program, word)!r} is read by nothing; leave it out")


def _check_weight(program: Program) -> None:
    """A program that reads `weight` must set `needs_weights`."""
    edge = author_function(program, "edge")
    own = [vars(program), *(vars(base) for base in type(program).__mro__ if base is not Program)]
    if edge is not None and "weight" in arguments(edge) and not any("needs_weights" in names for names in own):
        raise InputError(
            f"{_name(program)}.edge reads 'weight' and would always get 1: set needs_weights = True to get the graph's "
            "weights, or needs_weights = False where every edge is to count 1"
        )


def _check_kept(program: Program) -> None:
    """Refuse fields without values where functions would read them."""
    for name, field in fields_of(program).items():
        if not field.kept:
            raise InputError(
                f"{_name(program)}.{name} has kept = False, and only finish() of a program of phases gives such "
                "values; leave it out"
            )


def _check_old(program: Program) -> None:
    """`old_<field>` exists of numbers that `vertex` changes; in Globals where it has run on every vertex."""
    fields, name = fields_of(program), _name(program)
    steady = program.everywhere or author_function(program, "corner") is not None
    for role, function in functions_of(program):
        if role not in ("active", "global"):
            continue
        for word in arguments(function):
            field = word[4:] if word.startswith("old_") else None
            if field is None or field not in fields:
                continue
            if fields[field].constant or fields[field].shape:
                why = (
                    "constant, so it never has another value"
                    if fields[field].constant
                    else "a vector, changed in place"
                )
                raise InputError(f"{name}.{function.__name__} reads {word!r}, and {field!r} is {why}; read {field!r}")
            if role == "global" and not steady:
                raise InputError(
                    f"{name}.{function.__name__} reads {word!r}, which a Global has only where every vertex is active "
                    "in every iteration: set everywhere = True, or keep the earlier value in a field of its own"
                )


def _check_early_exit(program: Program) -> None:
    if not program.early_exit:
        if program.visits_once:
            raise InputError(
                f"{_name(program)} has visits_once = True, which is read with early_exit = True only; set both, or "
                "leave it out"
            )
        return
    if program.combine not in IDEMPOTENT or needs_rows(program):
        raise InputError(
            f"{_name(program)} has early_exit = True, with which a vertex takes the first message that comes, and "
            f"needs them all: combine is {program.combine!r}; leave early_exit out"
        )


def _check_suffices(program: Program) -> None:
    """Refuse `suffices` where no pull asks it."""
    asked = not (program.early_exit or program.everywhere or program.self_combining)
    if author_function(program, "suffices") is not None and not asked:
        raise InputError(
            f"{_name(program)} has suffices(), which is asked after each message of a pull, and there is none with "
            "early_exit, everywhere or self_combining; leave it out, or these"
        )


def _check_accumulator(program: Program) -> None:
    """Refuse an accumulator that is no field that could hold a message and keep it."""
    fields, name, field = fields_of(program), _name(program), program.accumulator
    if field not in fields or fields[field].constant or fields[field].shape:
        raise InputError(
            f"{name}.accumulator is {field!r}, and must name a field that is a number and not constant; name one, or "
            "leave accumulator out"
        )
    if program.everywhere:
        _check_in_place(program)
        return
    vertex, cond = author_function(program, "vertex"), author_function(program, "cond")
    if program.combine not in IDEMPOTENT or vertex is None or cond is None:
        raise InputError(
            f"{name} has accumulator = {field!r}, which needs vertex(), cond() and a combiner of "
            f"{', '.join(IDEMPOTENT)}; leave it out"
        )
    if program.self_combining or "is_active" in arguments(vertex):
        raise InputError(
            f"{name} has accumulator = {field!r}, so that vertex() runs on vertices that got a message only, and for "
            "the first time; leave accumulator out, or self_combining and `is_active`"
        )


def _check_in_place(program: Program) -> None:
    """Refuse a sweep whose functions would read messages for the accumulator's values."""
    name, field = _name(program), program.accumulator
    if author_function(program, "vertex") is None or needs_rows(program):
        raise InputError(
            f"{name} has everywhere = True and accumulator = {field!r}, which needs vertex() and a combiner of "
            "numbers; leave accumulator out"
        )
    for role, function in functions_of(program):
        gone = {f"old_{field}", f"target_{field}", *((field,) if role not in ("send", "global") else ())}
        for word in arguments(function):
            if word in gone:
                raise InputError(
                    f"{name}.{function.__name__} reads {word!r}, which takes the messages once send() has read it "
                    "(accumulator); read `sent`, what send() made of it, or leave accumulator out"
                )


def _check_chosen_by(program: Program) -> None:
    """Refuse a field that cannot say which rows an iteration needs."""
    field = fields_of(program).get(program.chosen_by)
    if program.combine != "all" or field is None or field.shape or field.dtype is not np.uint8 or not field.constant:
        raise InputError(
            f"{_name(program)}.chosen_by is {program.chosen_by!r}, and must name a constant field of np.uint8, and "
            "combine must be 'all'; name one, or leave chosen_by out"
        )


def _check_self_combining(program: Program) -> None:
    fields, name = fields_of(program), _name(program)
    if needs_rows(program):
        raise InputError(f"{name} is self_combining, but whole rows have no combiner to keep a value by; leave it out")
    if author_function(program, "vertex") is not None:
        return
    first, *others = fields
    if fields[first].constant:
        raise InputError(
            f"{name} is self_combining, and its first field, {first!r}, is constant; declare another first"
        )
    for field in others:
        if not fields[field].constant:
            raise InputError(
                f"{name} is self_combining, which changes its first field only: declare {field!r} with constant=True, "
                "or write vertex()"
            )
