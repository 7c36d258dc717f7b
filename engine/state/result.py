"""What a run gives back: one array per field, and what it took.

Owns the table's shape: `vertex` (original id) and the program's fields, rows by ascending original id. Writing files is
storage's (`storage/results/result_tables.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.program.program import fields_of, value_of, weighted
from penstock.engine.program.vertex_ids import in_original_order, original_order, vertex_column
from penstock.storage.base.errors import InputError
from penstock.transfer.calibration.prediction_error import Accuracy, accuracy

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.program.program import Program
    from penstock.engine.state.records import IterationRecord
    from penstock.storage.format.graph import Graph
    from penstock.storage.results.result_tables import Columns


@dataclass(frozen=True)
class Result:
    """Fields by name, arrays (vertices, ...) by internal id; records: one an iteration; seconds: of the run itself.

    before: how many iterations had run before it was resumed, of which there are no records. `ids` names the vertices.
    """

    program: Program
    graph: Graph
    fields: dict[str, NDArray[Any]]
    records: list[IterationRecord]
    seconds: float
    converged: bool
    before: int = 0

    def __repr__(self) -> str:
        """One line: what ran, on how many vertices, and what there is."""
        ended = "converged" if self.converged else "stopped before it converged"
        return (
            f"<Result of {type(self.program).__name__} on {self.graph.vertices:,} vertices: {', '.join(self.fields)}; "
            f"{self.iterations:,} iterations, {ended}>"
        )

    @property
    def ids(self) -> NDArray[Any]:
        """Original ids (vertices,), numbers or strings, in the order of `fields` (bipartite: sources first)."""
        return vertex_column(self.graph)

    @property
    def measures(self) -> dict[str, list[float]]:
        """What the program measured, a number an iteration, by name (`cf`: rmse)."""
        return {name: list(getattr(self.program, name)) for name in getattr(self.program, "measures", ())}

    @property
    def weighted(self) -> bool:
        """Whether edges counted by their weights; else each counted 1."""
        return weighted(self.program, self.graph)

    @property
    def iterations(self) -> int:
        """How many iterations ran, in all."""
        return self.before + len(self.records)

    @property
    def bytes_read(self) -> int:
        """Bytes read from disk."""
        return sum(record.bytes_disk for record in self.records)

    @property
    def prediction(self) -> dict[str, Accuracy]:
        """By route, how well the plans foretold the seconds of what had to travel, or lay in pieces."""
        return accuracy(task for record in self.records for task in record.tasks)

    def reached(self, field: str) -> NDArray[np.bool_]:
        """Which vertices have an answer in `field`."""
        spec, values = fields_of(self.program)[field], self.fields[field]
        if values.dtype.kind == "T":
            return np.asarray(values != "")
        if values.ndim > 1:
            return np.ones(len(values), dtype=bool)
        absent = value_of(spec.unreached, values.dtype)
        return np.ones(len(values), dtype=bool) if absent is None else values != absent

    def columns(self) -> Columns:
        """`vertex` and every field as (values, which are present or None), rows by ascending original id.

        Of a bipartite graph also `side`, 0 for sources, which come first, and 1 for targets.
        """
        vertex = vertex_column(self.graph)
        order = None
        if self.graph.left is None and len(vertex) > 1 and not bool(np.all(vertex[:-1] <= vertex[1:])):
            order = np.argsort(vertex, kind="stable")
        columns: Columns = {"vertex": (_ordered(vertex, order), None)}
        if self.graph.left is not None:
            columns["side"] = ((np.arange(len(vertex)) >= self.graph.left).astype(np.uint8), None)
        for name, values in self.fields.items():
            present = self.reached(name)
            mask = None if bool(present.all()) else _ordered(present, order)
            for part, numbers in _numbers(name, values).items():
                columns[part] = (_ordered(numbers, order), mask)
        return columns

    def top(self, count: int) -> list[tuple[int | str, Any]]:
        """The `count` vertices with the largest first field (distances and levels: the smallest), ties by original id.

        Of a bipartite graph they are named with their sides: `"source:7"`. Vectors and names have no order: none.
        """
        name, values = next(iter(self.fields.items()))
        if values.ndim > 1 or values.dtype.kind == "T":
            return []
        present = np.flatnonzero(self.reached(name))
        if not in_original_order(self.graph):
            order = original_order(self.graph)
            present = order[self.reached(name)[order]]
        nearest = fields_of(self.program)[name].unreached is not None and self.program.combine != "max"
        key = values[present] if nearest else _descending(values[present])
        chosen = present[np.argsort(key, kind="stable")[:count]]
        return list(zip(self._names(chosen), values[chosen].tolist(), strict=True))

    def to_dict(self, field: str | None = None) -> dict[int | str, Any]:
        """Original id -> value of one field (the first) of every vertex that has one, as networkx's functions answer.

        Vectors come as lists; vertices of a bipartite graph are named as in `top`. Raises InputError for a field that
        is not in the answer.
        """
        name = next(iter(self.fields)) if field is None else field
        if name not in self.fields:
            raise InputError(f"there is no field {name!r} in the answer; it has {', '.join(self.fields)}")
        present = np.flatnonzero(self.reached(name))
        return dict(zip(self._names(present), self.fields[name][present].tolist(), strict=True))

    def _names(self, chosen: NDArray[np.intp]) -> list[int | str]:
        """Original ids of vertices, with their sides where the graph is bipartite: the same id may be on both."""
        vertex: list[int | str] = vertex_column(self.graph)[chosen].tolist()
        if (left := self.graph.left) is None:
            return vertex
        sides = np.where(chosen < left, "source", "target").tolist()
        return [f"{side}:{name}" for side, name in zip(sides, vertex, strict=True)]

    def write(self, path: Path | str, *, force: bool = False, format: str | None = None) -> None:
        """Write the table in `format`, or in that which the name asks for.

        The names are .csv, .parquet, .h5 and .npy (first field only); the formats "csv", "parquet", "hdf5", "npy" and
        "graphalytics".
        """
        from penstock.storage.results.result_tables import write  # Arrow takes longer to import than a small run takes

        write(Path(path), self.columns(), force=force, format=format)

    def to_csv(self, path: Path | str, *, force: bool = False) -> None:
        """Write CSV with a header, empty where a vertex was not reached."""
        self.write(path, force=force, format="csv")

    def to_parquet(self, path: Path | str, *, force: bool = False) -> None:
        """Write Parquet, null where a vertex was not reached."""
        self.write(path, force=force, format="parquet")

    def to_hdf5(self, path: Path | str, *, force: bool = False) -> None:
        """Write one dataset a column; values not reached keep the program's own mark."""
        self.write(path, force=force, format="hdf5")

    def to_graphalytics(self, path: Path | str, *, force: bool = False) -> None:
        """Write the first field as LDBC Graphalytics' validator reads it: `id value` lines."""
        self.write(path, force=force, format="graphalytics")

    def to_npy(self, path: Path | str, *, force: bool = False) -> None:
        """Write the first field's bare values, by ascending original id."""
        self.write(path, force=force, format="npy")


def _numbers(name: str, values: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """A field as columns of numbers: vectors give one for each place, `name_0`, `name_1` and so on."""
    if values.ndim == 1:
        return {name: values}
    flat = values.reshape(len(values), int(np.prod(values.shape[1:])))
    return {f"{name}_{place}": flat[:, place] for place in range(flat.shape[1])}


def _ordered(values: NDArray[Any], order: NDArray[np.intp] | None) -> NDArray[Any]:
    return values if order is None else values[order]


def _descending(values: NDArray[Any]) -> NDArray[Any]:
    """Keys that sort the largest value first; of whole numbers and truths their complements, which do not overflow."""
    return np.asarray(-values if values.dtype.kind == "f" else ~values)
