"""What the author of a graph algorithm writes: fields, a combiner and a few pure functions.

Owns the vocabulary (`Program`, `Field`, `Global`) and its checks. Refuses, by name and before
anything runs, a function that reads something that does not exist. Knows no kernel, no device.

Arguments of an author's function are resolved by name:

    <field>            the field of the vertex at hand (of the edge's source, in `edge`)
    target_<field>     in `edge`: the field of the edge's target
    old_<field>        in `active` and in a Global: the value before `vertex` ran
    sent               in `edge`: what `send` returned for the source
    message            in `edge`, where messages are vectors: the vector to fill in
    opposite           in `corner`: how many edges join the triangle's two other corners
    incoming           in `vertex`: the combined messages (the combiner's identity if none came); with the combiner
                       `all` an array of them, in no order, which may be sorted in place
    is_active          in `vertex`: whether the vertex was in this iteration's frontier
    weight             in `edge`: the edge's weight (1 where the graph has none)
    source, target     in `edge`: vertex ids;   `vertex_id`: the vertex at hand, elsewhere
    degree             out-degree of the vertex at hand (of the source, in `edge`)
    iteration          number of the iteration, from 0;   `vertices`: how many there are
    due                with `priority`: the frontier is what lies below this (inf without)
    <global>           a Global's value after the previous iteration
    <attribute>        any number stored on the program (`self.damping = 0.85`)

The shape of the interface follows Ligra (Shun and Blelloch, PPoPP 2013: whose `cond` is ours) and
the gather-apply-scatter split of PowerGraph (Gonzalez et al., OSDI 2012).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from penstock.engine.program import combiners
from penstock.engine.program.parameters import checking
from penstock.storage.base.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray
    from penstock.storage.format.graph import Graph

COMBINERS = (*combiners.COMBINERS, "union", "all")
"""How messages to a vertex are combined; `union` links two vertices of a disjoint-set forest, `all` keeps them all."""


ALONG = ("out", "in", "both")
"""Which way messages go: with the edges, against them, or both."""


class _VertexType:
    """Marks a field or message that holds vertex ids, whatever their width in the graph."""

    def __repr__(self) -> str:
        return "VERTEX"


VERTEX = _VertexType()


class _Largest:
    """Marks the largest value of a field's dtype (infinity for floats)."""

    def __repr__(self) -> str:
        return "LARGEST"


LARGEST = _Largest()


@dataclass(frozen=True)
class Field:
    """One value (or, with `shape`, one small vector) per vertex.

    dtype: NumPy scalar type, or VERTEX for vertex ids. fill: first value, default 0, or LARGEST.
    constant: never changed by `vertex`, which then does not return it. output: part of the result.
    unreached: the value that stands for "no answer" and is left empty in tables.
    """

    dtype: DTypeLike | _VertexType
    fill: Any = 0
    shape: tuple[int, ...] = ()
    constant: bool = False
    output: bool = True
    unreached: Any = None

    def __post_init__(self) -> None:
        dtype = np.dtype(np.uint64) if isinstance(self.dtype, _VertexType) else _number_type(self.dtype)
        for value in (self.fill, self.unreached):
            value_of(value, dtype)


def _number_type(dtype: DTypeLike) -> np.dtype[Any]:
    """The dtype of a field. Raises InputError for what is no type of numbers or truths."""
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = np.dtype(object)
    if found.kind not in "biuf":
        raise InputError(
            f"Field({getattr(dtype, '__name__', dtype)}): a field holds numbers; give a NumPy type such as np.float64 "
            "or np.uint32, or VERTEX for vertex ids"
        )
    return found


class Global:
    """A number reduced over all vertices after each iteration; used as a decorator.

    @Global(np.float64, combine="sum")
    def change(rank, old_rank): return abs(rank - old_rank)
    """

    def __init__(self, dtype: DTypeLike, combine: str = "sum") -> None:
        if combine not in ("sum", "min", "max"):
            raise InputError(f"Global combiner {combine!r} is not one of sum, min, max")
        self.dtype = np.dtype(dtype)
        self.combine = combine
        self.function: Callable[..., Any] | None = None

    def __call__(self, function: Callable[..., Any]) -> Global:
        """Take the function that gives each vertex's share."""
        self.function = function
        return self


@dataclass
class Start:
    """What `Program.start` hands back: the first frontier.

    everything: every vertex is active. active: else their internal ids, any order.
    """

    active: NDArray[Any] | None = None
    everything: bool = False


class Program:
    """Base of all programs; subclass it and write the mathematics.

    combine: one of COMBINERS. message: dtype of what travels, default that of the first field.
    early_exit: a pull may stop at the first active in-neighbor (the smallest id).
    self_combining: `vertex` is the combiner applied to the first field, so that updates may be seen at once
    (asynchronous execution); one that says what only iterations give a meaning to (`vertex`, `active`, Globals, `done`,
    `max_iter`, the argument `iteration`) runs synchronously all the same. order_free: vertices hand on what they hold,
    in any order, which is what `--mode async` asks for, though messages are collected.
    everywhere: every vertex is active in every iteration.
    starts_anywhere: `start` does only what NumPy's and CuPy's arrays both can, so that it may fill a GPU's fields.
    bucket_is_free: nobody asked for this bucket, so a device behind a link may narrow it: edges are dear there.
    along: "out": messages follow the edges; "in": they go against them; "both": either way, so that the direction of
    edges does not matter (a pair of edges u -> v, v -> u then carries two messages each way). `degree` counts the edges
    that a vertex sends along; there is none with "both".
    message_shape: (K,) for messages of K numbers, summed one by one; `edge` fills in `message`. Every vertex is active
    then (`everywhere`), and a vector field is changed in place: `vertex` returns it all the same.
    needs_weights: edges count by their weights where the graph has some, else 1 each; an instance may say otherwise.
    converged: of a program of phases, whether it came to its end; it says so itself. Of a phase that ran: whether it
    did.
    tolerance: largest relative difference between two correct runs (0 for integers).
    working_bytes: bytes a vertex that `start`, `phases`, `instead` and `finish` allocate at most besides the fields;
    they are part of the memory budget.
    """

    combine: ClassVar[str] = "min"
    message: Any = None
    early_exit: ClassVar[bool] = False
    self_combining: ClassVar[bool] = False
    order_free: ClassVar[bool] = False
    everywhere: ClassVar[bool] = False
    needs_weights: bool = False
    starts_anywhere: bool = False
    non_negative_weights: bool = False
    tolerance: ClassVar[float] = 0.0
    along: ClassVar[str] = "out"
    message_shape: ClassVar[tuple[int, ...]] = ()
    bucket: float = 0.0
    bucket_is_free: bool = False
    max_iter: int = 2**62
    converged: bool = True
    working_bytes: int = 0

    # Functions of the author; those that are None are not used.
    send: ClassVar[Callable[..., Any] | None] = None
    edge: ClassVar[Callable[..., Any] | None] = None
    cond: ClassVar[Callable[..., Any] | None] = None
    vertex: ClassVar[Callable[..., Any] | None] = None
    active: ClassVar[Callable[..., Any] | None] = None
    priority: ClassVar[Callable[..., Any] | None] = None
    pending: ClassVar[Callable[..., Any] | None] = None
    corner: ClassVar[Callable[..., Any] | None] = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            cls.__init__ = checking(cls.__init__)  # type: ignore[method-assign]

    def form(self, graph: Graph, mode: str) -> Program:
        """The program to run for this graph and mode ("auto", "sync", "async"); itself as a rule."""
        return self

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Fill the first values into `state` (field name -> array) and return the first frontier."""
        return Start(everything=True)

    def phases(self, graph: Graph, state: dict[str, NDArray[Any]], first: int = 0) -> Iterator[Program]:
        """Instead of an `edge`: programs to run one after another, each to its end, on this one's fields.

        A phase's field that has the name of one of ours *is* ours (same dtype and shape; `fill` does not count); its
        other fields are its own and begin anew. `state` holds our fields, field name -> array of the host, and between
        two phases it may be read and changed. What the phases' `finish` and `instead` say is not asked.
        first: where a run is resumed, the number of the phase, from 0, in the middle of which `state` and the
        attributes of the program are: that one is yielded first. Without this argument it cannot be resumed.
        """
        raise TypeError(f"{type(self).__name__} has no phases")

    def may_run(self, graph: Graph) -> Iterable[Program] | None:
        """The programs that may run in the course of this one: phases, one of each kind, or what `instead` asks for.

        Their memory is then part of what is told, and refused, before the run begins. None: it is not said; of phases
        the first is known, and a later one that needs more memory is refused when it is its turn.
        """
        return None

    def done(self, iteration: int, totals: dict[str, float]) -> bool:
        """Whether to stop after iteration number `iteration`, given the Globals' values."""
        return False

    def instead(self, state: dict[str, NDArray[Any]]) -> Program | None:
        """Another program to run from the start, because this one's numbers did not suffice."""
        return None

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Turn the last state into the results: field name -> array with one row a vertex."""
        return {name: state[name] for name, field in fields_of(self).items() if field.output}


def fields_of(program: Program | type[Program]) -> dict[str, Field]:
    """The program's fields by name, in declared order (base classes first)."""
    return _declared(program, Field)


def globals_of(program: Program | type[Program]) -> dict[str, Global]:
    """The program's Globals by name, in declared order."""
    return _declared(program, Global)


def _declared(program: Program | type[Program], kind: Any) -> dict[str, Any]:
    cls: Any = program if isinstance(program, type) else type(program)
    return dict(_found(cls, kind))


@lru_cache(maxsize=512)
def _found(cls: Any, kind: Any) -> dict[str, Any]:
    """What a class and its bases declare of a kind; asked several times a phase, of classes that do not change."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        for name, value in vars(base).items():
            if isinstance(value, kind):
                found[name] = value
            elif name in found:
                del found[name]
    return found


def author_function(program: Program, name: str) -> Callable[..., Any] | None:
    """The plain function the author wrote under `name`, unbound; None where there is none."""
    return _written(type(program), name)  # type: ignore[arg-type]  # mypy takes the hash of instances


@lru_cache(maxsize=4096)
def _written(cls: Any, name: str) -> Callable[..., Any] | None:
    """What a class or its bases have under a name; asked many times a run, of classes that do not change."""
    for base in cls.__mro__:
        if name in vars(base):
            value = vars(base)[name]
            return value.__func__ if isinstance(value, staticmethod) else value
    return None


def has_phases(program: Program | type[Program]) -> bool:
    """Whether a program consists of phases."""
    kind = program if isinstance(program, type) else type(program)
    return kind.phases is not Program.phases


def resumable(program: Program) -> bool:
    """Whether a run of the program can be resumed: one of phases must say which are left (`phases(..., first)`)."""
    return not has_phases(program) or "first" in inspect.signature(program.phases).parameters


def needs_rows(program: Program) -> bool:
    """Whether a program works on whole rows: all messages to a vertex together, vectors, or corners of triangles."""
    return program.combine == "all" or bool(program.message_shape) or author_function(program, "corner") is not None


def weighted(program: Program, graph: Graph) -> bool:
    """Whether edges count by their weights when the program runs on a graph."""
    return program.needs_weights and graph.weight_dtype is not None


def resolve_dtype(dtype: DTypeLike | _VertexType, vertex_dtype: np.dtype[Any]) -> np.dtype[Any]:
    """`dtype` with VERTEX replaced by the graph's id type."""
    return vertex_dtype if isinstance(dtype, _VertexType) else np.dtype(dtype)


def value_of(value: Any, dtype: np.dtype[Any]) -> Any:
    """A field's `fill` or `unreached` as a scalar of `dtype`; None stays None. Raises InputError for no such value."""
    if value is None:
        return None
    if isinstance(value, _Largest):
        return dtype.type(np.inf if dtype.kind == "f" else np.iinfo(dtype).max)
    try:
        found = dtype.type(value)
    except (OverflowError, TypeError, ValueError):
        found = None
    if found is None or (dtype.kind in "iu" and found != value):
        raise InputError(
            f"a Field of {dtype.name} cannot hold {value!r}; give a value that it has (LARGEST is the largest one), or "
            "another type: int64 and float64 have negative values"
        )
    return found


def message_dtype(program: Program, vertex_dtype: np.dtype[Any]) -> np.dtype[Any]:
    """dtype of what travels along edges and of the accumulators."""
    if program.message is not None:
        return resolve_dtype(program.message, vertex_dtype)
    return resolve_dtype(next(iter(fields_of(program).values())).dtype, vertex_dtype)


_EDGE_WORDS = {"sent", "weight", "source", "target", "degree"}
_VERTEX_WORDS = {"vertex_id", "degree"}
_WORDS = {
    "edge": _EDGE_WORDS,
    "cond": {"vertex_id"},
    "send": _VERTEX_WORDS,
    "vertex": _VERTEX_WORDS | {"incoming", "is_active"},
    "active": _VERTEX_WORDS,
    "priority": _VERTEX_WORDS,
    "pending": _VERTEX_WORDS,
    "corner": {"opposite"},
    "global": _VERTEX_WORDS,
}


@lru_cache(maxsize=1024)
def arguments(function: Callable[..., Any]) -> tuple[str, ...]:
    """Names of an author's function's arguments."""
    return tuple(inspect.signature(function).parameters)


def scalar_names(program: Program) -> tuple[str, ...]:
    """Every scalar the program's functions read, in a fixed order (they travel as one tuple)."""
    taken = set(fields_of(program))
    names: dict[str, None] = {}
    for role, function in functions_of(program):
        prefixed = {p + f for f in taken for p in ("target_", "old_")}
        for name in arguments(function):
            if name not in taken | prefixed | _WORDS[role] and not (name == "message" and program.message_shape):
                names[name] = None
    return tuple(names)


def words_of(program: Program) -> set[str]:
    """Everything that the program's functions read, by the names of their arguments."""
    return {name for _, function in functions_of(program) for name in arguments(function)}


def functions_of(program: Program) -> list[tuple[str, Callable[..., Any]]]:
    """(role, function) of every function the author wrote, Globals under the role `global`."""
    found: list[tuple[str, Callable[..., Any]]] = []
    for role in ("send", "edge", "cond", "vertex", "active", "priority", "pending", "corner"):
        function = author_function(program, role)
        if function is not None:
            found.append((role, function))
    found += [("global", g.function) for g in globals_of(program).values() if g.function]
    return found


def check(program: Program) -> None:
    """Refuse, with the author's own names and line, a program that cannot run.

    Raises InputError: unknown combiner, no field, no `edge`, an argument that names nothing.
    """
    name = type(program).__name__
    if program.combine not in COMBINERS:
        raise InputError(f"{name}.combine is {program.combine!r}; it must be one of {', '.join(COMBINERS)}")
    fields = fields_of(program)
    if not fields:
        raise InputError(f"{name} declares no Field, so it has no result: add one")
    if has_phases(program):
        return
    if program.along not in ALONG:
        raise InputError(f"{name}.along is {program.along!r}; it must be one of {', '.join(ALONG)}")
    if needs_rows(program):
        _check_rows(program)
    elif program.combine != "union" and author_function(program, "edge") is None:
        raise InputError(f"{name} has no edge(); it says what travels along an edge")
    if author_function(program, "vertex") is None and not _may_lack_vertex(program):
        raise InputError(f"{name} has no vertex(), and is not marked self_combining = True")
    for role, function in functions_of(program):
        _check_arguments(program, role, function, fields)


def _check_rows(program: Program) -> None:
    """What programs on whole rows (`all`, `corner`, vector messages) cannot have."""
    name, corner = type(program).__name__, author_function(program, "corner") is not None
    if corner == (author_function(program, "edge") is not None):
        raise InputError(f"{name} needs either edge() or corner(), not both")
    if (corner or program.message_shape) and program.combine != "sum":
        raise InputError(f"{name}.combine is {program.combine!r}; with corner() or message_shape it must be sum")
    if author_function(program, "vertex") is None:
        raise InputError(f"{name} has no vertex(); it says what becomes of the messages")
    if not (program.everywhere or corner):
        raise InputError(f"{name} needs everywhere = True: programs on whole rows have no frontier")
    for role in ("send", "cond", "priority", "pending"):
        if author_function(program, role) is not None:
            raise InputError(f"{name} has {role}(), which a program on whole rows cannot have")


def _may_lack_vertex(program: Program) -> bool:
    return program.self_combining or program.combine == "union"


def _check_arguments(program: Program, role: str, function: Callable[..., Any], fields: dict[str, Field]) -> None:
    known = set(fields) | _WORDS[role] | {"iteration", "vertices", "due"} | set(globals_of(program))
    if program.along == "both":
        known -= {"degree"}
    if role == "corner":
        known -= set(fields)
    if role == "edge" and program.message_shape:
        known |= {"message"}
    if role == "edge":
        known |= {f"target_{f}" for f in fields}
    if role in ("active", "global"):
        known |= {f"old_{f}" for f in fields}
    for argument in arguments(function):
        if argument in known or isinstance(getattr(program, argument, None), int | float | np.number):
            continue
        code = function.__code__
        place = f"{type(program).__name__}.{function.__name__} ({code.co_filename}:{code.co_firstlineno})"
        if argument in vars(program):
            raise InputError(f"{place} reads {argument!r}, which is {vars(program)[argument]!r}; it must be a number")
        raise InputError(
            f"{place} reads {argument!r}, which is neither a field, a global nor a number of the program; {role} may "
            f"read: {', '.join(sorted(known))}"
        )
