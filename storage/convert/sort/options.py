"""Owns what a conversion is told, what it says underway, and what it reports at the end."""

import re
from dataclasses import dataclass, field, replace
from numbers import Integral
from pathlib import Path
from typing import Literal, get_args

from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import InputError, peak_to_expect
from penstock.storage.format.schema import MOST_WINDOWS
from penstock.storage.ingest.core.source import IngestOptions

Dedupe = Literal["first", "sum", "min", "max"]
Order = Literal["none", "degree", "hubs", "paths"]
Layout = Literal["rows", "list"]
Direction = Literal["out", "both"]
ConvertStage = Literal["read", "map", "out", "in", "windows"]
SMALLEST_MEMORY = 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertOptions:
    """How a raw graph becomes a graph file.

    layout: ``"rows"`` sorts edges into rows; ``"list"`` keeps them in the order of the input, in one pass, and takes
        none of ``symmetrize``, ``dedupe``, ``order``, ``windows``, ``direction`` "both", and no other ``encoding``.
    direction: ``"out"`` writes the out-adjacency, ``"both"`` the in-adjacency too (an undirected
        graph has one that serves both).
    undirected: each input edge is undirected and stored in both rows, a self-loop once.
    symmetrize: the directed input is united with its reverse; edges of one pair collapse as
        ``dedupe`` says (default ``"first"``); the result is an undirected graph.
    dedupe: of edges with the same ends keep the first in input order, or one with the sum, the
        least or the greatest weight; None keeps them all.
    drop_self_loops: leave edges from a vertex to itself out.
    renumber: whether the ids that occur, ascending, become 0 to n-1; the map is stored. None does so beside those that
        the input states by a number of vertices; True does so by a table, whatever the input states; False makes every
        id up to the largest a vertex. (Ids that are strings are always numbered, in the order of their bytes.)
    bipartite: the ids of sources and those of targets are two spaces; both are renumbered, targets behind
        sources, and results name each in its own.
    order: the order of the vertices in the file. ``"none"`` is that of their ids; ``"degree"`` is by falling degree, in
        and out together, ties by id; ``"hubs"`` puts the top 8 % by in-degree times out-degree first (HyTGraph,
        equation 4) and leaves the others in order; ``"paths"`` is along depth-first paths, strongly connected
        components in topological order (`renumber/vertex_order.py`). The ids of the input are stored, and results
        name them.
    vertices_file: a list of ids: exactly these vertices exist, isolated ones included, and an edge with another
        is refused. Unless they are 0 to n-1 they are renumbered, as by ``renumber``. Of a table the other columns are
        kept as properties (`vertex_properties.py`). ``0:N`` is no file, but the list of 0 to N-1.
    windows: how many ranges of vertices there are, for each of which the edges that lead to it are written once more,
        for runs whose values of vertices are in a file (`windows.py`); "auto": as few as `host_memory` has room for.
    host_memory: bytes that the conversion may hold. scratch: folder for what does not fit
        (default: beside the output). stripes, encoding, force: as `GraphWriter` has them.
    threads: None takes every core.
    """

    layout: Layout = "rows"
    direction: Direction = "out"
    undirected: bool = False
    symmetrize: bool = False
    dedupe: Dedupe | None = None
    drop_self_loops: bool = False
    renumber: bool | None = None
    bipartite: bool = False
    order: Order = "none"
    vertices_file: Path | None = None
    windows: int | Literal["auto"] | None = None
    host_memory: int = 1 << 30
    scratch: Path | None = None
    stripes: tuple[Path, ...] = ()
    encoding: str = "packed"
    force: bool = False
    threads: int | None = None

    def __post_init__(self) -> None:
        self._check_values()
        if self.host_memory < SMALLEST_MEMORY:
            raise InputError(
                f"--host-memory {format_bytes(self.host_memory)} is too little to convert; give at least "
                f"{SMALLEST_MEMORY >> 20}MiB{peak_to_expect(SMALLEST_MEMORY >> 20)}"
            )
        if self.undirected and self.symmetrize:
            raise InputError(
                "--undirected (each line is an undirected edge) and --symmetrize (lines are "
                "directed and get their reverse) exclude each other; choose one"
            )
        self._check_list()
        moved = self.order != "none"
        if self.bipartite and (moved or self.vertices_file is not None):
            other = f"--order {self.order} mixes its sides" if moved else "--vertices does not say which side it lists"
            raise InputError(f"--bipartite: {other}; leave one of them out")

    def _check_values(self) -> None:
        """Refuse values that an option does not have."""
        for name, known in {"layout": Layout, "direction": Direction, "order": Order, "dedupe": Dedupe}.items():
            value = getattr(self, name)
            if value not in get_args(known) and not (name == "dedupe" and value is None):
                raise InputError(f"--{name} is {value!r}; choose one of {', '.join(get_args(known))}")
        for name in ("undirected", "symmetrize", "drop_self_loops", "renumber", "bipartite", "force"):
            if getattr(self, name) not in (True, False) and not (name == "renumber" and self.renumber is None):
                raise InputError(f"{name} is {getattr(self, name)!r}; give True or False")
        if self.threads is not None and not (isinstance(self.threads, Integral) and self.threads >= 1):
            raise InputError(f"--threads is {self.threads!r}; give a whole number from 1")
        if self.windows not in (None, "auto") and not (
            isinstance(self.windows, Integral) and 1 <= self.windows <= MOST_WINDOWS
        ):
            raise InputError(f"--windows is {self.windows!r}; give auto, or a number from 1 to {MOST_WINDOWS}")

    def _check_list(self) -> None:
        """Refuse options that need sorted rows where edges stay in the order of the input."""
        needs = {
            "--direction both": (self.direction == "both", "a list is walked from both ends as it is"),
            "--symmetrize": (self.symmetrize, "--undirected lets each edge go both ways, parallel edges included"),
            f"--dedupe {self.dedupe}": (self.dedupe is not None, "finding parallel edges takes sorting"),
            f"--order {self.order}": (self.order != "none", "vertices stay as they are numbered"),
            f"--windows {self.windows}": (self.windows is not None, "its edges are read in the order of the input"),
            f"--encoding {self.encoding}": (self.encoding != "packed", "it has an encoding of its own"),
        }
        for name, (given, reason) in needs.items():
            if given and self.layout == "list":
                raise InputError(f"--layout list does not take {name}: {reason}; leave one of them out")

    @property
    def vertex_count(self) -> int | None:
        """N where ``vertices_file`` is ``0:N``, else None."""
        found = re.fullmatch(r"0:([0-9]+)", str(self.vertices_file))
        return None if found is None else int(found[1])

    @property
    def numbers_vertices(self) -> bool:
        """Whether options, and not the ids alone, say which vertices there are and how they are numbered."""
        listed = self.vertices_file is not None and self.vertex_count is None
        return bool(self.renumber) or self.bipartite or listed

    @property
    def workers(self) -> int:
        """Threads that parse, sort and encode: as many as the memory can feed."""
        return IngestOptions(host_memory=self.host_memory, threads=self.threads).workers

    def reading(self, given: IngestOptions, output: Path) -> IngestOptions:
        """How to read the input of a conversion: as given, with what the conversion decides."""
        return replace(
            given,
            string_ids=given.string_ids or (None if self.renumber or self.bipartite else False),
            sides=self.bipartite,
            host_memory=self.host_memory,
            threads=self.threads,
            scratch=self.scratch or output.parent,
        )


@dataclass(frozen=True, slots=True)
class ConvertProgress:
    """How far a conversion is.

    ``stage`` is ``"read"`` (``done`` of ``total`` input bytes), ``"map"``, ``"out"``, ``"in"`` or ``"windows"``
    (edges). ``total`` is None if unknown. ``scratch_bytes`` is the temporary space that the
    conversion expects to need under ``scratch`` (0: none; known as soon as memory is short).
    """

    stage: ConvertStage
    done: int
    total: int | None
    edges: int
    scratch_bytes: int = 0
    scratch: Path | None = None


@dataclass(frozen=True, slots=True)
class ConvertReport:
    """What a conversion made. ``seconds`` per stage; sizes in bytes; ``without_edges``: how many of the vertices have
    none (None: memory was too short to count them); ``properties`` of the vertices: their types by name,
    ``edge_properties`` those of edges; ``windows`` by which edges are stored once more, each of ``window_vertices`` (0:
    none)."""

    output: Path
    vertices: int
    edges: int
    input_edges: int
    directed: bool
    weight_dtype: str | None
    input_bytes: int
    output_bytes: int
    scratch_bytes: int
    without_edges: int | None = None
    windows: int = 0
    window_vertices: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    edge_properties: dict[str, str] = field(default_factory=dict)
