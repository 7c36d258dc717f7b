"""A table of pairs of vertices with their scores, written and read as other tables are, a row a pair."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.vertex_ids import original_names
from penstock.storage.base.errors import InputError, for_python
from penstock.storage.format.graph import Graph
from penstock.storage.tables.columns import Column, Columns, Read, WriteOptions
from penstock.storage.tables.formats import PAIRS, TableStyle, format_of
from penstock.storage.tables.html_table import SHOWN, html_table

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def _shared(common: Floats, sizes: Floats) -> Floats:
    return common


def _jaccard(common: Floats, sizes: Floats) -> Floats:
    return _divided(common, sizes.sum(axis=1) - common)


def _overlap(common: Floats, sizes: Floats) -> Floats:
    return _divided(common, sizes.min(axis=1))


def _cosine(common: Floats, sizes: Floats) -> Floats:
    # not over the root: equal cosines, such as 2/√24 and 3/√54, would be rounded to different numbers
    return np.sqrt(_divided(common * common, sizes[:, 0] * sizes[:, 1]))


def _divided(common: Floats, by: Floats) -> Floats:
    """The quotient, 0 where no neighbor is shared."""
    return np.divide(common, by, out=np.zeros_like(common), where=common > 0)


MEASURES: dict[str, Callable[[Floats, Floats], Floats]] = {
    "jaccard": _jaccard,
    "overlap": _overlap,
    "cosine": _cosine,
    "common": _shared,
}
"""By name, in the order of the kernels' numbers: scores of shared neighbors (n,) and the sizes of both sets (n, 2)."""


@dataclass(frozen=True)
class PairTable:
    """Pairs of vertices, the neighbors that they share, and how similar that makes them.

    Attributes
    ----------
    graph : Graph
        The graph.
    ends : ndarray of int64, shape (n, 2)
        Internal ids of the pairs; `ids` has the original ones.
    common : ndarray of int64, shape (n,)
        How many neighbors the two share.
    sizes : ndarray of int64, shape (n, 2)
        How many distinct neighbors each of the two has, itself not counted.
    """

    graph: Graph
    ends: Integers
    common: Integers
    sizes: Integers

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.ends)

    def __repr__(self) -> str:
        """One line: how many pairs, of how many vertices."""
        return f"<PairTable of {len(self):,} pairs of {self.graph.vertices:,} vertices: {', '.join(self._columns())}>"

    def _repr_html_(self) -> str:
        """Return the first pairs as notebooks show them."""
        part = PairTable(self.graph, *(values[:SHOWN] for values in (self.ends, self.common, self.sizes)))
        return html_table(repr(self)[1:-1], {name: one.tolist() for name, one in part.columns().items()}, len(self))

    @property
    def ids(self) -> NDArray[Any]:
        """Original ids of the pairs, (n, 2), integers or strings."""
        return self.graph.original_ids_of(self.ends.ravel()).reshape(-1, 2)

    @for_python
    def scores(self, measure: str = "jaccard") -> Floats:
        """Return the scores of all pairs.

        Parameters
        ----------
        measure : {"jaccard", "overlap", "cosine", "common"}
            Shared neighbors over those of either, over those of the vertex that has fewer, over the root of the
            product of both numbers, or their number itself.

        Returns
        -------
        ndarray of float64, shape (n,)
            Pairs that share no neighbor have 0.

        Raises
        ------
        InputError
            There is no such measure.
        """
        if measure not in MEASURES:
            raise InputError(f"measure is {measure!r}; it must be one of {', '.join(MEASURES)}")
        return self._scored(measure, 0, len(self))

    @for_python
    def write(
        self,
        path: Path | str,
        *,
        force: bool = False,
        format: str | None = None,
        threads: int | None = None,
        **style: Unpack[TableStyle],
    ) -> None:
        """Write the table, whole or not at all.

        Parameters
        ----------
        path : Path or str
            The file; its name says the format, unless `format` does.
        force : bool
            Whether a file of that name may be replaced.
        format : str, optional
            The format: one of `formats_of(PAIRS)`, such as "csv" or "parquet".
        threads : int, optional
            Most threads that convert; default: every core.
        **style : TableStyle
            Options of output, such as ``csv_safe=True``.

        Raises
        ------
        InputError
            The format is unknown, or the file may not be written, or an option is not for the format.
        RunError
            The disk failed or is full.
        """
        from penstock.storage.results.result_tables import write

        options = WriteOptions(threads, style=style)
        write(Path(path), self._columns(), force=force, format=format_of(Path(path), format, PAIRS), options=options)

    def best(self, measure: str, count: int) -> dict[str, NDArray[Any]]:
        """Return the columns of the pairs with the largest scores, in the order of the table where they are equal."""
        scores = self.scores(measure)
        chosen = np.argsort(-scores, kind="stable")[:count]
        part = PairTable(self.graph, self.ends[chosen], self.common[chosen], self.sizes[chosen])
        return part.columns()

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the table by column: `vertex`, `other`, `common`, `jaccard`, `overlap`, `cosine`.

        For a bipartite graph also `side` and `other_side`: 0 for sources, 1 for targets.
        """
        return {name: column.arrays()[0] for name, column in self._columns().items()}

    def _columns(self) -> Columns:
        """The columns, to be read range by range."""
        names: dict[str, Column] = {}
        for end, (name, side) in enumerate((("vertex", "side"), ("other", "other_side"))):
            names[name] = Column(self.graph.id_dtype, len(self), partial(self._names, end))
            if self.graph.left is not None:
                names[side] = Column.of((self.ends[:, end] >= self.graph.left).astype(np.uint8))
        names["common"] = Column.of(self.common)
        for measure in ("jaccard", "overlap", "cosine"):
            names[measure] = Column(np.dtype(np.float64), len(self), partial(self._scores, measure))
        return names

    def _names(self, end: int) -> Read:
        """Reads original ids of one end."""
        names = original_names(self.graph)
        return lambda first, last: (names(self.ends[first:last, end]), None)

    def _scores(self, measure: str) -> Read:
        """Reads scores."""
        return lambda first, last: (self._scored(measure, first, last), None)

    def _scored(self, measure: str, first: int, last: int) -> Floats:
        return MEASURES[measure](self.common[first:last].astype(np.float64), self.sizes[first:last].astype(np.float64))
