"""The result of a run: one array per field, and records of what it took.

Owns the table's shape: `vertex` (original id) and the program's fields, rows by ascending original id. Writing files is
storage's (`storage/results/result_tables.py`), by way of `answer_table.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.program.earlier_answer import origin_of
from penstock.engine.program.precision import Widened
from penstock.engine.program.program import absent_value, weighted
from penstock.engine.program.vertex_ids import (
    VertexReferences,
    in_original_order,
    labels_of,
    tie_breakers,
    vertex_column,
)
from penstock.engine.state.answer_table import AnswerTable
from penstock.engine.state.found_paths import FoundPath, ParentLinks
from penstock.engine.state.result_columns import (
    Values,
    columns_of,
    first_by_id,
    property_columns,
    property_values,
    values_of,
)
from penstock.storage.access.vertex_lookup import internal_id
from penstock.storage.base.errors import InputError, brief
from penstock.storage.results.column_statistics import ColumnFacts, Keys, first_rows, present_rows
from penstock.storage.tables.html_table import SHOWN, html_table
from penstock.transfer.calibration.prediction_error import Accuracy, accuracy

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.program.program import Program
    from penstock.engine.state.fused_iterations import RunRecords
    from penstock.engine.state.records import RankReport
    from penstock.storage.format.graph import Graph
    from penstock.storage.tables.columns import Columns, Part


@dataclass(frozen=True)
class Result(AnswerTable):
    """The answer of a run and its records.

    `write`, `to_csv` and others write it as a file; `to_arrow`, `to_pandas` and `to_polars` make tables of it, and what
    reads Arrow streams reads it itself: `pyarrow.table(result)`, `polars.DataFrame(result)`, SQL of duckdb.

    Attributes
    ----------
    program : Program
        The program that ran, with what it stored on itself.
    graph : Graph
        The graph.
    stored : dict of str to (ndarray, VertexReferences, Widened or PagedValues)
        What `fields` is made of: of values that are vertices, the internal ids; of some numbers, narrower ones.
    records : sequence of IterationRecord
        One per iteration; empty for iterations before a resumed run.
    seconds : float
        Duration of the run, in seconds, without opening the graph.
    converged : bool
        Whether the run ended by itself, not at `max_iter`.
    before : int
        Iterations that had run before the run was resumed.
    ranks : tuple of RankReport
        What each rank read, moved and computed; empty for one process. `records` are this rank's.
    joined : tuple of str
        Properties of the vertices that tables of it have, too (`with_properties`).
    prefix : str
        What the names of its columns begin with in tables.
    known : dict of str to ColumnFacts
        What the run knows of some fields, so that a summary need not read their files again.
    """

    program: Program
    graph: Graph
    stored: dict[str, Values]
    records: RunRecords
    seconds: float
    converged: bool
    before: int = 0
    ranks: tuple[RankReport, ...] = ()
    joined: tuple[str, ...] = ()
    prefix: str = ""
    known: dict[str, ColumnFacts] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        """One line: program, number of vertices, fields, iterations."""
        ended = "converged" if self.converged else "stopped before it converged"
        return (
            f"<Result of {type(self.program).__name__} on {self.graph.vertices:,} vertices: {', '.join(self.stored)}; "
            f"{self.iterations:,} iterations, {ended}>"
        )

    def _repr_html_(self) -> str:
        """Return the first rows by original id, as notebooks show them."""
        first = first_by_id(self.graph, SHOWN)
        columns = {"vertex": labels_of(self.graph, first), **values_of(self._with_absent(), first)}
        columns |= property_values(self.graph, self.joined, first)
        return html_table(repr(self)[1:-1], columns, self.graph.vertices)

    @cached_property
    def fields(self) -> dict[str, NDArray[Any]]:
        """By field an array of shape (vertices,) or (vertices, ...), in the order of internal ids, as `ids` is.

        Values that are vertices are original ids, which are looked up when this is first read.
        """
        return {name: np.asarray(values) for name, values in self.stored.items()}

    @property
    def ids(self) -> NDArray[Any]:
        """Original ids, (vertices,), integers or strings, in the order of `fields` (bipartite: sources first)."""
        return vertex_column(self.graph)

    @property
    def measures(self) -> dict[str, list[float]]:
        """Numbers that the program measured, one per iteration, by name (`cf`: rmse)."""
        return {name: list(getattr(self.program, name)) for name in getattr(self.program, "measures", ())}

    @property
    def weighted(self) -> bool:
        """Whether edges counted by their weights; otherwise each counted 1."""
        return weighted(self.program, self.graph)

    @property
    def iterations(self) -> int:
        """Number of iterations, with those before the run was resumed."""
        return self.before + len(self.records)

    @property
    def bytes_read(self) -> int:
        """Bytes read from disk, by all ranks."""
        if self.ranks:
            return sum(one.bytes_disk for one in self.ranks)
        return sum(record.bytes_disk for record in self.records)

    @property
    def value_bytes(self) -> int:
        """Bytes of values of vertices that all ranks read from their files and wrote; 0 where memory held all."""
        if self.ranks:
            return sum(one.totals["value_bytes"] for one in self.ranks)
        return sum(record.value_bytes for record in self.records)

    @property
    def prediction(self) -> dict[str, Accuracy]:
        """By route, how accurately the plans predicted the seconds of tasks."""
        return accuracy(task for record in self.records for task in record.tasks)

    def __getitem__(self, field: str) -> NDArray[Any]:
        """Return one of `fields` by its name; the others are not looked up. Raises InputError where there is none."""
        return np.asarray(self.stored[self._named(field)])

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the fields, as a dictionary does."""
        return iter(self.stored)

    def reached(self, field: str) -> NDArray[np.bool_]:
        """Return which vertices have a value in a field.

        Parameters
        ----------
        field : str
            Name of the field.

        Returns
        -------
        ndarray of bool, shape (vertices,)
            False where the value is the field's `unreached`.
        """
        values, absent = self.numbers(field)
        return np.ones(len(values), dtype=bool) if absent is None else np.asarray(values) != absent

    def numbers(self, field: str) -> tuple[Any, Any]:
        """Return a field with internal ids where values are vertices, and what stands for no value (None: nothing)."""
        values: Any = self.stored[field]
        if isinstance(values, VertexReferences | Widened):
            values = values.numbers
        return values, self._absent(field, values)

    def absent(self, field: str) -> Any:
        """Return what stands in a field for no value: its `unreached`, of strings the empty one; None: nothing does."""
        return self._absent(field, self.stored[field])

    def _absent(self, field: str, values: Values) -> Any:
        """Return the same where a field has these values."""
        if values.dtype.kind == "T":
            return ""
        return absent_value(self.program, field, values)

    def columns(self) -> dict[str, Part]:
        """Return the table that the `to_` methods write.

        Returns
        -------
        dict of str to (ndarray, ndarray of bool or None)
            `vertex` and every field: values, and which are present (None: all), rows by ascending original id. For a
            bipartite graph also `side`: 0 for sources, which come first, 1 for targets. A vector field has one column
            per component.
        """
        return {name: column.arrays() for name, column in self._table().items()}

    def _origin(self) -> str:
        return origin_of(self.program, self.graph) if self.converged else ""

    def _table(self) -> Columns:
        """Return the same, to be read range by range."""
        found = columns_of(self.graph, self._with_absent())
        return {**found, **property_columns(self.graph, self.joined, found)}

    def kept_in(self, folder: Path) -> Columns:
        """Return the columns of the fields, written to files in a folder now. Raises RunError where they cannot be."""
        found = columns_of(self.graph, self._with_absent(), folder)
        return {name: column for name, column in found.items() if name not in ("vertex", "side")}

    def _with_absent(self) -> dict[str, tuple[Values, Any]]:
        """Return the fields by the names of their columns, each with what stands for no value in it."""
        return {self.prefix + name: (values, self.absent(name)) for name, values in self.stored.items()}

    def with_properties(self, *names: str) -> Result:
        """Return the same result, whose tables have properties of the vertices as further columns.

        Parameters
        ----------
        *names : str
            Properties of the graph (`graph.properties`), which it has from `penstock convert --vertices nodes.csv`.

        Returns
        -------
        Result
            The result with `joined`.

        Raises
        ------
        InputError
            The graph has no such property, its file is missing, or a field has that name.
        """
        property_columns(self.graph, names, replace(self, joined=())._table())
        return replace(self, joined=names)

    def top(
        self, count: int, *, by: str | None = None, smallest: bool | None = None, threads: int | None = None
    ) -> list[tuple[int | str, Any]]:
        """Return the vertices with the largest value of a field (smallest, if it is a distance or a level).

        Parameters
        ----------
        count : int
            How many vertices to return at most.
        by : str, optional
            The field; default: the first.
        smallest : bool, optional
            Whether the smallest values come first; default: of distances and levels.
        threads : int, optional
            Most threads that look for them; default: every core.

        Returns
        -------
        list of (int or str, value)
            Original ids and values, ties by original id; for a bipartite graph ids such as `"source:7"`. Empty where
            the first field holds vectors or texts, which have no order.

        Raises
        ------
        InputError
            There is no field `by`, or it holds vectors or texts.
        """
        chosen = self.best(count, by=by, smallest=smallest, threads=threads)
        values = self.stored[self._named(by)]
        return list(zip(labels_of(self.graph, chosen), values[chosen].tolist(), strict=True))

    def top_rows(
        self, count: int, *, by: str | None = None, smallest: bool | None = None, threads: int | None = None
    ) -> list[dict[str, Any]]:
        """Return the vertices of `top` as rows: `vertex`, the field and the properties in `joined`, by name.

        Parameters and errors are the same.
        """
        chosen, name = self.best(count, by=by, smallest=smallest, threads=threads), self._named(by)
        columns: dict[str, list[Any]] = {
            "vertex": labels_of(self.graph, chosen),
            name: self.stored[name][chosen].tolist(),
        }
        columns |= property_values(self.graph, self.joined, chosen)
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def best(
        self, count: int, *, by: str | None = None, smallest: bool | None = None, threads: int | None = None
    ) -> NDArray[np.intp]:
        """Return the internal ids of the vertices of `top`. Parameters and errors are the same."""
        name = self._named(by)
        stored, absent = self.stored[name], self.absent(name)
        if stored.ndim > 1 or stored.dtype.kind == "T":
            if by is None:
                return np.empty(0, np.intp)
            raise InputError(f"{by} holds {'texts' if stored.ndim == 1 else 'vectors'}, which have no order")
        values, nearest = np.asarray(stored) if isinstance(stored, VertexReferences) else stored, smallest
        if nearest is None:
            search = getattr(self.program, "kind", self.program)  # of one with phases after it, the search
            nearest = absent not in (None, -np.inf) and search.combine != "max"
        ties = None if in_original_order(self.graph) else tie_breakers(self.graph)

        def keys_of(first: int, last: int) -> Keys:
            some, rows = values[first:last], np.arange(first, last)
            second = rows if ties is None else ties[first:last]
            present = present_rows(some, absent)
            if present is not None:
                some, second, rows = some[present], second[present], rows[present]
            return some if nearest else _descending(some), second, rows

        return first_rows(keys_of, len(values), count, threads=threads)[2]

    def to_dict(self, field: str | None = None) -> dict[int | str, Any]:
        """Return one field as a dictionary, as networkx's functions do.

        Parameters
        ----------
        field : str, optional
            Name of the field; default: the first.

        Returns
        -------
        dict of (int or str) to value
            Original id to value, for vertices that have one. Vectors are lists; ids of a bipartite graph are as in
            `top`.

        Raises
        ------
        InputError
            The result has no such field.
        """
        name = self._named(field)
        present = np.flatnonzero(self.reached(name))
        return dict(zip(labels_of(self.graph, present), self.stored[name][present].tolist(), strict=True))

    def _named(self, field: str | None) -> str:
        """Return the name of a field, by default of the first. Raises InputError where the result has none such."""
        name = next(iter(self.stored)) if field is None else field
        if name not in self.stored:
            raise InputError(f"there is no field {name!r} in the answer; it has {brief(', '.join(self.stored))}")
        return name

    @property
    def targets(self) -> list[int | str]:
        """Original ids of the vertices at which the program was to end, in the order in which they were given."""
        return labels_of(self.graph, np.asarray(self.program.watched, np.intp))

    def path(self, target: int | str) -> FoundPath | None:
        """Return the path to a vertex from the nearest source, along the parents of the answer.

        Parameters
        ----------
        target : int or str
            Original id of a vertex.

        Returns
        -------
        FoundPath or None
            `vertices`, `length` and `hops`; None: the answer does not reach the vertex.

        Raises
        ------
        InputError
            The answer has no parents, or the graph no such vertex.
        """
        if "parent" not in self.stored:
            raise InputError(
                f"the answer has {', '.join(self.stored)} and no parents, which paths follow; run bfs, sssp or widest "
                "with parents=True"
            )
        at, name = internal_id(self.graph, target), next(iter(self.stored))
        length = self.stored[name][at : at + 1][0]
        if length == self.absent(name):
            return None
        vertices = labels_of(self.graph, np.asarray(self._links.upwards(at)[::-1], np.intp))
        return FoundPath(vertices, length.item())

    @cached_property
    def _links(self) -> ParentLinks:
        """The parents as links between internal ids."""
        return ParentLinks(self.numbers("parent")[0])


def _descending(values: NDArray[Any]) -> NDArray[Any]:
    """Return keys that sort the largest value first; of integers the complements, which cannot overflow."""
    return np.asarray(-values if values.dtype.kind == "f" else ~values)
