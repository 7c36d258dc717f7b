"""What random walks are asked for, as one checked value; the vertices that they begin at."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.vertex_ids import VertexFinder, VertexReferences, originals_of
from penstock.engine.resources.config import Config
from penstock.storage.access.vertex_lookup import internal_id
from penstock.storage.base.errors import InputError, brief
from penstock.storage.format.edge_properties import UNITS
from penstock.storage.format.graph import Graph
from penstock.transfer.devices.device import Device

DeadEnds = Literal["end", "restart"]
Sources = int | str | Iterable[int | str] | VertexReferences | None
LONGEST = 1 << 20
WIDEST = 1000.0
"""Of p and q, and of 1/p and 1/q: how often a candidate is refused grows with them."""


@dataclass(frozen=True)
class WalkOptions:
    """How walks go.

    Parameters
    ----------
    length : int
        Steps of a walk, which so has at most ``length + 1`` vertices.
    walks_per_vertex : int
        Walks from each source.
    seed : int
        Of the random numbers.
    weight : bool
        Whether edges are chosen in proportion to their weights, where there are any.
    p, q : float
        Return and in-out parameter of node2vec; 1 and 1: steps of the first order.
    restart : float
        Probability with which a step goes back to the source instead of along an edge.
    dead_ends : {"end", "restart"}
        What a walk does at a vertex that it cannot leave.
    time : str, optional
        A column beside the edges (numbers, dates or timestamps): a walk uses those alone that are not later than
        `until`, each as likely.
    until : number, text, date or datetime, or a sequence of them
        The latest time of the walks from all sources, or of those from each.

    Raises
    ------
    InputError
        A value is out of range.
    """

    length: int = 80
    walks_per_vertex: int = 10
    seed: int = 0
    weight: bool = True
    p: float = 1.0
    q: float = 1.0
    restart: float = 0.0
    dead_ends: DeadEnds = "end"
    time: str | None = None
    until: Any = None

    def __post_init__(self) -> None:
        _check_whole("length", self.length, 1, LONGEST)
        _check_whole("walks_per_vertex", self.walks_per_vertex, 1, (1 << 32) - 1)
        _check_whole("seed", self.seed, 0, (1 << 63) - 1)
        for name in ("p", "q"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 1 / WIDEST <= value <= WIDEST:
                raise InputError(f"{name} is {value!r}; give a number from {1 / WIDEST:g} to {WIDEST:g}")
        if isinstance(self.restart, bool) or not isinstance(self.restart, int | float) or not 0 <= self.restart < 1:
            raise InputError(f"restart is {self.restart!r}; give a probability of at least 0 and below 1")
        if self.dead_ends not in get_args(DeadEnds):
            raise InputError(f"dead_ends is {self.dead_ends!r}; choose one of {', '.join(get_args(DeadEnds))}")
        if (self.time is None) != (self.until is None):
            raise InputError("time and until belong together: a column beside the edges, and its latest value")
        if self.time is not None and self.second_order:
            raise InputError("p and q choose among all edges of a row, and time only among some; leave one of them out")

    @classmethod
    def of(cls, **options: Any) -> WalkOptions:
        """Return how walks go. Raises InputError for what is unknown or out of range."""
        known = {entry.name for entry in fields(cls)}
        for name in options:
            if name not in known:
                raise InputError(f"unknown option {name!r}; the options of walks are {', '.join(sorted(known))}")
        return cls(**options)

    def limits(self, graph: Graph, sources: int) -> NDArray[np.float64]:
        """The latest times for so many sources, or one for all, as the file has them; none without `time`.

        Raises InputError for values that are no times of the column, or of other sources.
        """
        if self.time is None:
            return np.empty(0)
        column = next(one.property for one in graph.out.columns if one.property.name == self.time)
        try:
            values = np.atleast_1d(np.asarray(self.until))
            if column.type in UNITS:
                days = values if values.dtype.kind in "iuf" else values.astype("M8[D]")
                values = values.astype(f"M8[{UNITS[column.type]}]")
                known = ~np.isnat(values)
                if days.dtype.kind == "M":
                    known &= values.astype("M8[D]") == days  # NumPy wraps what is too far away
                values = values.astype(np.int64)
            else:
                values = values.astype(np.float64)
                known = ~np.isnan(values)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"until is {brief(repr(self.until))}, which is no {column.type}: {error}") from error
        if not known.all():
            raise InputError(
                f"until is {brief(repr(self.until))}, not all of which is of the type {column.type}; give others"
            )
        if values.ndim != 1 or len(values) not in (1, sources):
            raise InputError(f"until has {len(values)} values; give one, or one for each of {sources} sources")
        moved: NDArray[np.float64] = (values - column.base).astype(np.float64)
        return moved

    @property
    def second_order(self) -> bool:
        """Whether a step depends on the vertex before."""
        return (self.p, self.q) != (1.0, 1.0)


@dataclass(frozen=True)
class WalkResources:
    """What walks may take.

    scratch: the folder of temporary data, None: the system's. lend: a context in which walks are made, with the device
    where walkers advance; device_memory: what may be allocated of its own memory, None where it has none.

    Raises InputError for a device on which walkers do not advance.
    """

    config: Config
    scratch: Path | str | None
    lend: Callable[[], AbstractContextManager[Device]]
    device_memory: int | None

    def __post_init__(self) -> None:
        check_device(self.config)


def check_device(config: Config) -> None:
    """Raise InputError for a device on which neither walkers advance nor edges are drawn."""
    if config.device == "emulated" and config.kernels != "cuda":
        raise InputError("walks and samples take CPU cores or a GPU, and device is 'emulated'; give cpu or cuda:0")


def _check_whole(name: str, value: Any, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not low <= value <= high:
        raise InputError(f"{name} is {value!r}; give a whole number from {low} to {high}")


def check_graph(graph: Graph, *, weighted: bool, why: str = "walks need rows") -> None:
    """Raise InputError for a graph that cannot be walked on, or a list; why: what a list lacks."""
    if graph.layout == "list":
        raise InputError(
            f"the edges of the graph are in the order of the input, and {why}; `penstock convert` of the graph file "
            "sorts them"
        )
    if weighted and graph.weight_range is not None:
        low, _, high = graph.weight_range
        if not (low >= 0 and math.isfinite(high)):
            raise InputError(
                f"weights of the graph are between {low:g} and {high:g}, and walks choose edges in proportion to them: "
                "they must be finite and not negative; --no-weight counts each edge as 1"
            )


def source_vertices(finder: VertexFinder, sources: Sources) -> NDArray[Any] | None:
    """Internal ids of the sources, in their order, repeated where they are; None for all vertices.

    Raises InputError where the graph has no such vertex.
    """
    graph = finder.graph
    if sources is None or isinstance(sources, VertexReferences):
        return None if sources is None else sources.numbers
    if isinstance(sources, np.ndarray) and sources.dtype.kind in "iu" and sources.ndim == 1 and graph.original is None:
        strangers = np.flatnonzero((sources < 0) | (sources >= graph.vertices))
        if len(strangers):
            internal_id(graph, int(sources[strangers[0]]))
        if len(sources):
            return sources.astype(graph.vertex_dtype)
    return finder.vertices(originals_of(sources)).astype(graph.vertex_dtype)
