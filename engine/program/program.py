"""What the author of a graph algorithm writes: fields, a combiner and a few pure functions.

Owns `Program`, `Field` and `Global` and their checks. Before anything runs, it refuses a function that reads something
that does not exist. Independent of kernels and devices.

Arguments of an author's function are resolved by name:

    <field>            the field of the vertex at hand (of the edge's source, in `edge`)
    target_<field>     in `edge`: the field of the edge's target
    old_<field>        in `active` and in a Global: the value before `vertex` ran
    sent               in `edge`: what `send` returned for the source; in `vertex` and Globals, where a sweep has an
                       `accumulator`: what it returned for the vertex at hand (0 before the first iteration)
    message            in `edge`, where messages are vectors: the vector to fill in
    opposite           in `corner`: how many edges join the triangle's two other corners
    one, other         in `merge`: two numbers in the same place of two messages
    every_<field>      in `vertex` with the combiner `all`: the field of all vertices, an array, as it was before the
                       iteration
    incoming           in `vertex`: the combined messages (the combiner's identity if none came); with the combiner
                       `all` an array of them, in no order, which may be sorted in place; in `suffices`: those so far
    settled            in `unsettled`: no active vertex has a lower priority
    is_active          in `vertex`: whether the vertex was in this iteration's frontier
    weight             in `edge`: the edge's weight (1 where the graph has none)
    source, target     in `edge`: vertex ids;   `vertex_id`: the vertex at hand, elsewhere
    degree             edges along which the vertex at hand sends (the source, in `edge`); not with `along` "both"
    iteration          number of the iteration, from 0;   `vertices`: how many there are
    due                with `priority`: vertices below this are active (inf without)
    <global>           a Global's value after the previous iteration
    <attribute>        any number stored on the program (`self.damping = 0.85`)

The shape of the interface follows Ligra (Shun and Blelloch, PPoPP 2013: whose `cond` this is) and
the gather-apply-scatter split of PowerGraph (Gonzalez et al., OSDI 2012).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from penstock.engine.program import combiners
from penstock.engine.program.parameters import checking
from penstock.storage.base.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray
    from penstock.storage.format.graph import Graph

COMBINERS = (*combiners.COMBINERS, "union", "all", "merge")
"""How messages to a vertex are combined; `union` links two vertices of a disjoint-set forest, `all` keeps them all,
and `merge` has a function of the author."""


UNBOUNDED = 1 << 60
"""Iterations that no program means: so many, or more, are no limit."""

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
    """One value, or with `shape` one small array, per vertex.

    Parameters
    ----------
    dtype : dtype or VERTEX
        A NumPy type of numbers or booleans; VERTEX: the type of the graph's vertex ids.
    fill : scalar or LARGEST
        Initial value.
    shape : tuple of int
        Shape of one vertex' value; (): a scalar.
    constant : bool
        Whether `vertex` never changes the field, and so does not return it.
    output : bool
        Whether the field is part of the result.
    unreached : scalar or LARGEST, optional
        The value that means "no answer"; it is left empty in tables.
    kept : bool
        Whether the run keeps values; else, in a program of phases, `finish` alone gives them.

    Raises
    ------
    InputError
        `dtype` is no type of numbers, or cannot hold `fill` or `unreached`.
    """

    dtype: DTypeLike | _VertexType
    fill: Any = 0
    shape: tuple[int, ...] = ()
    constant: bool = False
    output: bool = True
    unreached: Any = None
    kept: bool = True

    def __post_init__(self) -> None:
        dtype = np.dtype(np.uint64) if isinstance(self.dtype, _VertexType) else _number_type(self.dtype)
        for value in (self.fill, self.unreached):
            value_of(value, dtype)


def _number_type(dtype: DTypeLike) -> np.dtype[Any]:
    """Return the dtype of a field. Raises InputError for types that are neither numbers nor booleans."""
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
    """A number reduced over all vertices after each iteration; a decorator of a function of one vertex.

    Parameters
    ----------
    dtype : dtype
        Type of the number.
    combine : {"sum", "min", "max"}
        The reduction.

    Raises
    ------
    InputError
        `combine` is another word.

    Examples
    --------
    >>> class Change(Program):
    ...     rank = Field(np.float64)
    ...
    ...     @Global(np.float64, combine="sum")
    ...     def change(rank, old_rank):
    ...         return abs(rank - old_rank)
    """

    def __init__(self, dtype: DTypeLike, combine: str = "sum") -> None:
        if combine not in ("sum", "min", "max"):
            raise InputError(f"Global combiner {combine!r} is not one of sum, min, max")
        self.dtype = np.dtype(dtype)
        self.combine = combine
        self.function: Callable[..., Any] | None = None

    def __call__(self, function: Callable[..., Any]) -> Global:
        """Set the function that returns each vertex' contribution."""
        self.function = function
        return self


@dataclass
class Start:
    """The result of `Program.start`: the first frontier.

    Parameters
    ----------
    active : ndarray of int, shape (n,), or of bool, shape (vertices,), or Mask, optional
        Internal ids of the active vertices, in any order; or for every vertex whether it is active. A `Mask`
        (`vertex_ranges.py`) is asked range by range, on the cores.
    everything : bool
        Whether every vertex is active.
    """

    active: NDArray[Any] | None = None
    everything: bool = False


class Program:
    """Base class of all programs; a subclass declares fields and a combiner and defines pure functions.

    Attributes
    ----------
    combine : str
        How messages to a vertex are merged, one of `COMBINERS`.
    message : dtype, VERTEX or None
        Type of a message; None: that of the first field.
    message_shape : tuple of int
        (K,): messages are vectors of K numbers, summed by component; `edge` fills in `message`. It needs `everywhere`.
        A vector field is changed in place, and `vertex` still returns it. With `combine = "merge"` and integers of 8
        bytes, `merge(one, other)` takes the place of the sum: a commutative and associative function, to which 0
        changes nothing.
    early_exit : bool
        Whether a pull may stop at the first active in-neighbor (the smallest id).
    visits_once : bool
        Whether a vertex for which `cond` does not hold accepts no message later either, as in a search. With
        `early_exit`, pulls may then keep rows that they read in vain, and read no others from then on.
    accepted_edges : {"", "kept", "walked"}
        Of phases whose values are in a file: "kept" where pushes keep the edges that vertices accept (`visits_once`),
        "" once the phase has run if memory had no room for all; "walked" of the next one, which needs no others.
    accumulator : str
        The field in which messages are combined, "": an array of their own, which takes as much memory again. With
        `everywhere` its values are read by `send` at most, which runs on all vertices before messages come: `vertex`
        and Globals have `sent` in place of the earlier value. Without, `cond` holds only while the field has its first
        value, which is the combiner's identity, `vertex` returns `incoming` for it, and the combiner is "min", "max" or
        "or".
    self_combining : bool
        Whether the new value is the combiner applied to the first field and the message, so that messages may be
        visible at once (asynchronous execution). A program with `vertex`, `active`, Globals, `done`, `max_iter` or the
        argument `iteration` runs synchronously all the same.
    order_free : bool
        Whether the answer does not depend on the order in which vertices send, so that `mode="async"` is allowed
        although messages are accumulated.
    everywhere : bool
        Whether every vertex is active in every iteration.
    chosen_by : str
        With `combine = "all"`: a constant uint8 field, "": none. Where it is 0 a vertex keeps its values; partitions
        are not read if all their rows are such.
    peels : bool
        With `corner`: whether triangles count for the edges opposite their corners, of which those of too few are taken
        away round by round; `vertex` then gets the largest k of a k-truss. `k`, `keeps`, `left`: as in `Trussness`.
    starts_anywhere : bool
        Whether `start` uses only what NumPy and CuPy arrays both offer, so that it may fill a GPU's fields.
    by_ranges : bool
        Whether `start`, `phases`, `instead` and `finish` read and write fields by ranges, positions and operators only,
        and write into no part that they have read, so that values may be in a file. Said by each class that defines one
        of them; a `start` with `starts_anywhere` is one of those.
    phase_names : tuple of str
        Names of the phases, in a few words, where these are the same for all graphs: for `phase_name`, `phase_count`.
    along : {"out", "in", "both"}
        Messages follow the edges, go against them, or both; with "both" a pair of edges u -> v, v -> u carries two
        messages each way. `degree` counts the edges along which a vertex sends; it does not exist with "both".
    needs_weights : bool
        Whether edges count by their weights, if the graph has weights, else 1 each; an instance may set it.
    non_negative_weights : bool
        Whether negative weights are refused.
    bucket : float
        Width of a bucket of `priority`, in its unit; 0: no buckets.
    narrowest_bucket : float
        Width down to which a run may narrow buckets where many edges are relaxed; 0: `bucket` is kept, for instance
        because the user chose it.
    max_iter : int
        Largest number of iterations.
    converged : bool
        Of a program of phases: whether it reached its end, which it sets itself. Of a phase that ran: whether it
        converged.
    tolerance : float
        Largest relative difference between two correct runs; 0 for integers.
    counts_edges : bool
        Whether each int64 of the class counts edges at a vertex: int32 does where a graph has few. Said by the class
        itself, not for those that derive from it.
    single : bool
        Whether fields of float64, its phases' too, may be float32 (`--precision single`).
    extendable : tuple of str
        Parameters that only say where a run ends, of "max_iter" (higher: later) and "tol" (lower: later): a checkpoint
        of a run that ended continues with others. Nothing but `done` reads `tol`, and `done` returns the same if it is
        called again.
    bounded : bool
        Whether the answer is wanted only as far as `horizon`, which an instance sets.
    watched : sequence of int
        Internal ids of vertices whose values `horizon` gets; `start` may set it.
    working_bytes : float
        Bytes per vertex that `start`, `phases`, `instead` and `finish` allocate at most besides the fields, and besides
        original ids and what is translated to them; part of the memory budget. Passes by ranges
        (`vertex_ranges.py`) need none.
    on_cores, in_pages : bool
        Whether a `lighter` program is one for the cores, or also for values in pages of a GPU: kernels of a GPU combine
        no numbers of one or two bytes. With checkpoints only the latter: a run goes on in the form that it began in.
    alternates : bool
        Of a program of phases: whether one of each kind that `may_run` lists runs soon, so that kernels of all are
        compiled side by side.
    other_graph_bytes : int
        Of a program whose phases run on other graphs too (`on_graph.OnGraph`): bytes that making these takes at least.
        0: none do.

    References
    ----------
    J. Shun, G. Blelloch, "Ligra", PPoPP 2013 (edge functions, `cond`). J. Gonzalez et al., "PowerGraph", OSDI 2012
    (gather, apply, scatter).
    """

    combine: ClassVar[str] = "min"
    message: Any = None
    early_exit: ClassVar[bool] = False
    visits_once: ClassVar[bool] = False
    accepted_edges: str = ""
    accumulator: ClassVar[str] = ""
    self_combining: ClassVar[bool] = False
    order_free: ClassVar[bool] = False
    everywhere: ClassVar[bool] = False
    chosen_by: ClassVar[str] = ""
    peels: ClassVar[bool] = False
    needs_weights: bool = False
    starts_anywhere: bool = False
    by_ranges: ClassVar[bool] = False
    non_negative_weights: bool = False
    phase_names: ClassVar[tuple[str, ...]] = ()
    tolerance: ClassVar[float] = 0.0
    along: ClassVar[str] = "out"
    message_shape: ClassVar[tuple[int, ...]] = ()
    bucket: float = 0.0
    narrowest_bucket: float = 0.0
    max_iter: int = 2**62
    converged: bool = True
    counts_edges: ClassVar[bool] = False
    single: ClassVar[bool] = False
    extendable: ClassVar[tuple[str, ...]] = ()
    bounded: bool = False
    watched: Sequence[int] = ()
    working_bytes: float = 0
    on_cores: ClassVar[bool] = False
    in_pages: ClassVar[bool] = False
    alternates: ClassVar[bool] = False
    other_graph_bytes: int = 0

    # Functions of the author; those that are None are not used.
    send: ClassVar[Callable[..., Any] | None] = None
    edge: ClassVar[Callable[..., Any] | None] = None
    cond: ClassVar[Callable[..., Any] | None] = None
    suffices: ClassVar[Callable[..., Any] | None] = None
    unsettled: ClassVar[Callable[..., Any] | None] = None
    vertex: ClassVar[Callable[..., Any] | None] = None
    active: ClassVar[Callable[..., Any] | None] = None
    priority: ClassVar[Callable[..., Any] | None] = None
    pending: ClassVar[Callable[..., Any] | None] = None
    corner: ClassVar[Callable[..., Any] | None] = None
    merge: ClassVar[Callable[..., Any] | None] = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            cls.__init__ = checking(cls.__init__)  # type: ignore[method-assign]

    @property
    def in_place(self) -> bool:
        """Whether the messages of a sweep are combined in a field that `send` has read."""
        return bool(self.accumulator) and self.everywhere

    def form(self, graph: Graph, mode: str) -> Program:
        """Return the program to run for this graph and mode; by default this one.

        Parameters
        ----------
        graph : Graph
            The graph.
        mode : {"auto", "sync", "async"}
            The option `mode`.

        Returns
        -------
        Program
            This program or another one.
        """
        return self

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Set the initial values and return the first frontier.

        Parameters
        ----------
        graph : Graph
            The graph.
        state : dict of str to ndarray, shape (vertices, ...)
            The fields, filled with their `fill`; to be changed in place. Indices are internal ids.

        Returns
        -------
        Start
            The vertices that are active first; by default all.
        """
        return Start(everything=True)

    def phases(self, graph: Graph, state: dict[str, NDArray[Any]], first: int = 0) -> Iterator[Program]:
        """Yield programs that run one after another, each to its end, on the fields of this one; replaces `edge`.

        A phase's field with the name of a field of this program is that field (same dtype and shape; `fill` is
        ignored); its other fields start anew. The result of a phase's `finish` is ignored, and its `instead` must
        return None.

        Parameters
        ----------
        graph : Graph
            The graph.
        state : dict of str to ndarray, shape (vertices, ...)
            The fields of this program in host memory; between two phases they may be read and changed.
        first : int
            Of a resumed run the number of the phase, from 0, that is yielded first; `state` and the program's
            attributes are as they were in the middle of it. A program whose method lacks this parameter cannot be
            resumed.

        Yields
        ------
        Program
            The next phase.
        """
        raise TypeError(f"{type(self).__name__} has no phases")

    def phase_name(self, graph: Graph, number: int) -> str:
        """Return what a phase is called where progress is shown, for instance ``source 3 of 64, backward``.

        Parameters
        ----------
        graph : Graph
            The graph.
        number : int
            Number of the phase, from 0.

        Returns
        -------
        str
            A few words; "": it has no name.
        """
        return self.phase_names[number] if self.phase_names else ""

    def phase_count(self, graph: Graph) -> int | None:
        """Return how many phases there will be, for the time left; None where that is not known before the end.

        Parameters
        ----------
        graph : Graph
            The graph.

        Returns
        -------
        int or None
            Phases in all.
        """
        return len(self.phase_names) or None

    def may_run(self, graph: Graph) -> Iterable[Program] | None:
        """Return the programs that may run during this one: phases, one of each kind, or the result of `instead`.

        Their memory is then part of the check before the run.

        Parameters
        ----------
        graph : Graph
            The graph.

        Returns
        -------
        iterable of Program, or None
            None: not known. Only the first phase is then checked before the run, and a later phase that exceeds the
            memory ends it. One that has phases itself stands for those that run on other graphs (`on_graph.OnGraph`),
            none larger than this one.
        """
        return None

    def done(self, iteration: int, totals: dict[str, float]) -> bool:
        """Return whether to stop after an iteration.

        Parameters
        ----------
        iteration : int
            Number of the iteration, from 0.
        totals : dict of str to float
            The values of the Globals.

        Returns
        -------
        bool
            True: the run ends, converged.
        """
        return False

    def horizon(self, values: NDArray[Any]) -> float:
        """Return how far a run of a `bounded` program must go; it ends when nothing nearer is active.

        Parameters
        ----------
        values : ndarray, shape (len(watched),)
            What the first field has now at the `watched` vertices; copies.

        Returns
        -------
        float
            With `priority`: the largest one that must still act; a later answer may not be larger. Without: after how
            many iterations to end. Infinity: no limit.
        """
        return math.inf

    def lighter(self, graph: Graph) -> Program | None:
        """Return a program with the same answer that takes less memory, where this one, formed, does not fit.

        Parameters
        ----------
        graph : Graph
            The graph.

        Returns
        -------
        Program or None
            None: there is none.
        """
        return None

    def instead(self, state: dict[str, NDArray[Any]]) -> Program | None:
        """Return another program to run from the start, if the numbers of this one did not suffice.

        Parameters
        ----------
        state : dict of str to ndarray, shape (vertices, ...)
            The final values.

        Returns
        -------
        Program or None
            None: the values stand.
        """
        return None

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, Any]:
        """Turn the final values into the result.

        Parameters
        ----------
        graph : Graph
            The graph.
        state : dict of str to ndarray, shape (vertices, ...)
            The final values by field; they may be changed in place.

        Returns
        -------
        dict of str to ndarray
            Field name to array with one row per vertex, to `VertexReferences`, internal ids that an answer names by the
            ids of the input, to `Widened`, numbers of fewer bytes, or to `PagedValues`; by default the fields with
            `output`.
        """
        return {name: state[name] for name, field in fields_of(self).items() if field.output}


def absent_value(program: Program, name: str, values: Any) -> Any:
    """Return what stands for no value in the values of a field, None where nothing does."""
    return None if values.ndim > 1 else value_of(fields_of(program)[name].unreached, values.dtype)


def fields_of(program: Program | type[Program]) -> dict[str, Field]:
    """Return the program's fields by name, in declared order (base classes first)."""
    return _declared(program, Field)


def kept_fields(program: Program) -> dict[str, Field]:
    """Return the fields that have an array, by name."""
    return {name: spec for name, spec in fields_of(program).items() if spec.kept}


def globals_of(program: Program | type[Program]) -> dict[str, Global]:
    """Return the program's Globals by name, in declared order."""
    return _declared(program, Global)


def _declared(program: Program | type[Program], kind: Any) -> dict[str, Any]:
    cls: Any = program if isinstance(program, type) else type(program)
    return dict(_found(cls, kind))


@lru_cache(maxsize=512)
def _found(cls: Any, kind: Any) -> dict[str, Any]:
    """Return what a class and its bases declare of a kind; cached, since it is called several times a phase."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        for name, value in vars(base).items():
            if isinstance(value, kind):
                found[name] = value
            elif name in found:
                del found[name]
    return found


def author_function(program: Program, name: str) -> Callable[..., Any] | None:
    """Return the plain function that the author wrote under `name`, unbound, or None."""
    return _written(type(program), name)  # type: ignore[arg-type]  # mypy takes the hash of instances


@lru_cache(maxsize=4096)
def _written(cls: Any, name: str) -> Callable[..., Any] | None:
    """Return the attribute of a class or its bases; cached, since it is called many times a run."""
    for base in cls.__mro__:
        if name in vars(base):
            value = vars(base)[name]
            return value.__func__ if isinstance(value, staticmethod) else value
    return None


def has_phases(program: Program | type[Program]) -> bool:
    """Return whether a program consists of phases."""
    kind = program if isinstance(program, type) else type(program)
    return kind.phases is not Program.phases


def resumable(program: Program) -> bool:
    """Return whether a run of the program can be resumed; phases need `phases(..., first)`."""
    return not has_phases(program) or "first" in inspect.signature(program.phases).parameters


def needs_rows(program: Program | type[Program]) -> bool:
    """Return whether a program works on whole rows: all messages to a vertex together, vectors, or triangles."""
    return program.combine == "all" or bool(program.message_shape) or program.corner is not None


def weighted(program: Program, graph: Graph) -> bool:
    """Return whether edges count by their weights when the program runs on a graph."""
    return program.needs_weights and graph.weight_dtype is not None


def resolve_dtype(dtype: DTypeLike | _VertexType, vertex_dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return `dtype` with VERTEX replaced by the graph's id type."""
    return vertex_dtype if isinstance(dtype, _VertexType) else np.dtype(dtype)


def value_of(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a field's `fill` or `unreached` as a scalar of `dtype`; None stays None. Raises InputError."""
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
    """Return the dtype of messages and of the accumulators."""
    if program.message is not None:
        return resolve_dtype(program.message, vertex_dtype)
    return resolve_dtype(next(iter(fields_of(program).values())).dtype, vertex_dtype)


_EDGE_WORDS = {"sent", "weight", "source", "target", "degree"}
_VERTEX_WORDS = {"vertex_id", "degree"}
_WORDS = {
    "edge": _EDGE_WORDS,
    "cond": {"vertex_id"},
    "suffices": {"vertex_id", "incoming"},
    "unsettled": {"vertex_id"},
    "send": _VERTEX_WORDS,
    "vertex": _VERTEX_WORDS | {"incoming", "is_active"},
    "active": _VERTEX_WORDS,
    "priority": _VERTEX_WORDS,
    "pending": _VERTEX_WORDS,
    "corner": {"opposite"},
    "merge": {"one", "other"},
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
        prefixed = {p + f for f in taken for p in ("target_", "old_", "every_")}
        for name in arguments(function):
            word = (name == "message" and program.message_shape) or (name == "sent" and program.in_place)
            if name not in taken | prefixed | _WORDS[role] and not word:
                names[name] = None
    return tuple(names)


Kind = TypeVar("Kind", bound=Program)


def like(program: Program, kind: type[Kind]) -> Kind:
    """Return a program of another class with the same parameters, and whatever else was set on this one."""
    made = kind.__new__(kind)
    vars(made).update(vars(program))
    return made


def words_of(program: Program) -> set[str]:
    """Everything that the program's functions read, by the names of their arguments."""
    return {name for _, function in functions_of(program) for name in arguments(function)}


AUTHORED = (
    "send",
    "edge",
    "cond",
    "suffices",
    "unsettled",
    "vertex",
    "active",
    "priority",
    "pending",
    "corner",
    "merge",
)
"""The functions that an author may write, but for Globals."""


def functions_of(program: Program) -> list[tuple[str, Callable[..., Any]]]:
    """(role, function) of every function the author wrote, Globals under the role `global`."""
    found: list[tuple[str, Callable[..., Any]]] = []
    for role in AUTHORED:
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
    _check_merge(program)
    if needs_rows(program):
        _check_rows(program)
    elif program.combine != "union" and author_function(program, "edge") is None:
        raise InputError(f"{name} has no edge(); it says what travels along an edge")
    if author_function(program, "vertex") is None and not _may_lack_vertex(program):
        raise InputError(f"{name} has no vertex(), and is not marked self_combining = True")
    if "unsettled" in vars(type(program)) and not may_settle(program):  # of another's that was inherited no use is made
        raise InputError(
            f"{name} has unsettled(), which needs priority(), self_combining = True and no send() or vertex()"
        )
    for role, function in functions_of(program):
        _check_arguments(program, role, function, fields)


def _check_rows(program: Program) -> None:
    """Refuse what programs on whole rows (`all`, `corner`, vector messages) cannot have."""
    name, corner = type(program).__name__, author_function(program, "corner") is not None
    if corner == (author_function(program, "edge") is not None):
        raise InputError(f"{name} needs either edge() or corner(), not both")
    if (corner or program.message_shape) and program.combine not in ("sum", "merge"):
        raise InputError(f"{name}.combine is {program.combine!r}; with corner() or message_shape it must be sum")
    if author_function(program, "vertex") is None:
        raise InputError(f"{name} has no vertex(); it says what becomes of the messages")
    if not (program.everywhere or corner):
        raise InputError(f"{name} needs everywhere = True: programs on whole rows have no frontier")
    for role in ("send", "cond", "unsettled", "priority", "pending"):
        if author_function(program, role) is not None:
            raise InputError(f"{name} has {role}(), which a program on whole rows cannot have")


def _check_merge(program: Program) -> None:
    """Refuse `merge` where it would not be called, and on numbers that a device cannot exchange atomically."""
    name, own = type(program).__name__, author_function(program, "merge") is not None
    if own != (program.combine == "merge"):
        raise InputError(
            f"{name} has merge() and combine = {program.combine!r}; set combine = 'merge', or leave it out"
            if own
            else f"{name}.combine is 'merge', and it has no merge(one, other); add it, or name another combiner"
        )
    if not own:
        return
    if not program.message_shape:
        raise InputError(f"{name} has merge(), which combines vectors; set message_shape, or name another combiner")
    message = message_dtype(program, np.dtype(np.uint64))
    if message.kind not in "iu" or message.itemsize != 8:
        raise InputError(f"{name} has merge(), and messages of {message}; it combines np.uint64 or np.int64")


def may_settle(program: Program) -> bool:
    """Return whether rows of unsettled vertices may be read in place of a frontier's, if the author says which."""
    others = any(author_function(program, role) is not None for role in ("send", "vertex"))
    return program.self_combining and not others and author_function(program, "priority") is not None


def _may_lack_vertex(program: Program) -> bool:
    return program.self_combining or program.combine == "union"


def _check_arguments(program: Program, role: str, function: Callable[..., Any], fields: dict[str, Field]) -> None:
    known = set(fields) | _WORDS[role] | {"iteration", "vertices", "due"} | set(globals_of(program))
    if program.in_place and program.send is not None and role in ("vertex", "global"):
        known |= {"sent"}
    if program.along == "both":
        known -= {"degree"}
    if role in ("corner", "merge"):
        known -= set(fields)
    if role == "unsettled":
        known |= {"settled"}
    if role == "edge" and program.message_shape:
        known |= {"message"}
    if role == "edge":
        known |= {f"target_{f}" for f in fields}
    if role in ("active", "global"):
        known |= {f"old_{f}" for f in fields}
    if role == "vertex" and program.combine == "all":
        known |= {f"every_{f}" for f in fields}
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
