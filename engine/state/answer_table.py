"""What becomes of an answer's table: files in all formats, Arrow streams, tables of pyarrow, pandas and polars."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Unpack

from penstock.storage.base.places import Place, place_of
from penstock.storage.results.result_tables import bytes_of, write, write_to
from penstock.storage.tables.columns import WriteOptions

if TYPE_CHECKING:
    from penstock.storage.tables.columns import Columns
    from penstock.storage.tables.formats import TableStyle
    from penstock.storage.tables.synced_file import OrderedFile


class AnswerTable(ABC):
    """A table with a row for each vertex: `vertex` (`side`, if the graph is bipartite), and every field."""

    @abstractmethod
    def _table(self) -> Columns:
        """Return the columns, rows by ascending original id, to be read range by range."""

    def _origin(self) -> str:
        """Of which graph and run it is, if another run may begin from it."""
        return ""

    def to_arrow(self) -> Any:
        """Return the table as a pyarrow.Table.

        Returns
        -------
        pyarrow.Table
            `vertex` (original ids; of a bipartite graph `side` too: 0 sources, 1 targets) and every field, rows by
            ascending original id, as in the files; the value of a vertex that was not reached is null. Numbers are
            those of `fields` where vertices are in the order of their ids, not copies.
        """
        from penstock.storage.tables.arrow_tables import record_batches  # Arrow takes long to import

        return record_batches(self._table()).read_all()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Give the same table as a stream of record batches, each made when it is read (Arrow PyCapsule interface)."""
        from penstock.storage.tables.arrow_tables import record_batches

        return record_batches(self._table()).__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """Return the table as a pandas.DataFrame; whole numbers with nulls are of pandas' nullable dtypes (`UInt32`).

        Raises
        ------
        InputError
            pandas is not installed.
        """
        from penstock.storage.tables.arrow_tables import pandas_frame

        return pandas_frame(self._table())

    def to_polars(self) -> Any:
        """Return the table as a polars.DataFrame; absent values are null.

        Raises
        ------
        InputError
            polars is not installed.
        """
        from penstock.storage.tables.arrow_tables import polars_frame

        return polars_frame(self._table())

    def write(
        self,
        path: Place,
        *,
        force: bool = False,
        format: str | None = None,
        threads: int | None = None,
        written: Callable[[int], None] | None = None,
        **style: Unpack[TableStyle],
    ) -> None:
        """Write the result as a table.

        Parameters
        ----------
        path : Path or str
            The file, also of a store (``s3://bucket/key``); its suffix sets the format.
        force : bool
            Replace an existing file.
        format : str, optional
            The format, whatever the suffix: one of `formats_of(ANSWERS)`, such as "csv" or "parquet".
        threads : int, optional
            Most threads that convert values; default: every core.
        written : callable, optional
            Called with the number of bytes written so far, again and again.
        **style : TableStyle
            Options of output, such as ``csv_safe=True``.

        Raises
        ------
        InputError
            The file exists, or the format is unknown or cannot hold the result, or an option is not for it.
        RunError
            The disk is full or failed.
        """
        options = WriteOptions(threads, written, style, self._origin())
        write(place_of(path), self._table(), force=force, format=format, options=options)

    def write_to(
        self, file: OrderedFile, *, format: str = "csv", threads: int | None = None, **style: Unpack[TableStyle]
    ) -> None:
        """Write the table to an open file from its beginning to its end."""
        write_to(file, self._table(), format=format, options=WriteOptions(threads, style=style))

    def bytes_to_write(self, path: Place, format: str | None = None) -> int | None:
        """Return about how many bytes `write` will write; None where only writing can tell."""
        return bytes_of(place_of(path), self._table(), format)

    def to_csv(self, path: Place, *, force: bool = False, **style: Unpack[TableStyle]) -> None:
        """Write CSV with a header; the value of a vertex that was not reached is empty. style: as in `write`."""
        self.write(path, force=force, format="csv", **style)

    def to_parquet(self, path: Place, *, force: bool = False) -> None:
        """Write Parquet; the value of a vertex that was not reached is null."""
        self.write(path, force=force, format="parquet")

    def to_hdf5(self, path: Place, *, force: bool = False) -> None:
        """Write one dataset per column; vertices that were not reached keep the field's `unreached` value."""
        self.write(path, force=force, format="hdf5")

    def to_graphalytics(self, path: Place, *, force: bool = False) -> None:
        """Write the first field as LDBC Graphalytics' validator reads it: `id value` lines."""
        self.write(path, force=force, format="graphalytics")

    def to_npy(self, path: Place, *, force: bool = False) -> None:
        """Write the first field's values, by ascending original id.

        Where ids are not 0 to n-1 it is an array of records, with the ids as field `vertex` (and `side`, if the graph
        is bipartite) and the values as field of their name.
        """
        self.write(path, force=force, format="npy")
