"""The only door to pyarrow for reading: Parquet files, blocks of CSV, tables that other libraries hold."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError, RunError

Strings = tuple[NDArray[np.uint8], NDArray[np.int64]]
"""A column of strings: all bytes end to end, and where each begins in them; the last entry is the end."""


@contextmanager
def parquet_file(path: Path) -> Iterator[Any]:
    """Open a Parquet file as pyarrow does; what goes wrong in the block becomes one of our errors.

    Raises:
        InputError: it is no Parquet, or damaged.
        RunError: the disk failed.
    """
    from pyarrow import parquet

    with _reading(path), parquet.ParquetFile(path, pre_buffer=False) as file:
        yield file


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    import pyarrow

    try:
        yield
    except OSError as error:
        if error.errno is None:  # not the disk's: what was read is of another format
            raise _unreadable(path, error) from error
        raise RunError(f"{path}: reading failed: {error}") from error
    except (pyarrow.ArrowException, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error


def parquet_schema(path: str | Path) -> Any:
    """The schema of a Parquet file, None if it cannot be read (reading the file says why)."""
    import pyarrow
    from pyarrow import parquet

    try:
        return parquet.read_schema(path)
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError):
        return None


def feather_batches(path: Path) -> Iterator[Any]:
    """The record batches of an Arrow file (Feather), as they are in it. Raises as `parquet_file`."""
    import pyarrow

    with _reading(path), pyarrow.OSFile(str(path)) as file, pyarrow.ipc.open_file(file) as reader:
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)


def feather_schema(path: Path) -> Any:
    """The schema of an Arrow file. Raises as `parquet_file`."""
    import pyarrow

    with _reading(path), pyarrow.OSFile(str(path)) as file, pyarrow.ipc.open_file(file) as reader:
        return reader.schema


def gathered(batches: Iterable[Any], rows: int, size: int) -> Iterator[Any]:
    """Join record batches, in order, until so many rows or bytes are together."""
    import pyarrow

    held: list[Any] = []
    count = held_bytes = 0
    for batch in chain(batches, [None]):
        if batch is not None:
            held.append(batch)
            count, held_bytes = count + len(batch), held_bytes + batch.nbytes
        if held and (batch is None or count >= rows or held_bytes >= size):
            yield from pyarrow.Table.from_batches(held).combine_chunks().to_batches()
            held, count, held_bytes = [], 0, 0


def record_batch(columns: dict[str, list[Any]], types: Sequence[str] = ()) -> Any:
    """Columns of Python's values as a record batch, of these types or their own. Raises TypeError for several types."""
    import pyarrow

    kinds = [getattr(pyarrow, name)() for name in types] or [None] * len(columns)
    try:
        arrays = [pyarrow.array(values, kind) for values, kind in zip(columns.values(), kinds, strict=True)]
        return pyarrow.record_batch(arrays, names=list(columns))
    except (pyarrow.ArrowException, OverflowError) as error:
        raise TypeError(str(error).partition("\n")[0]) from error


def csv_columns(block: NDArray[np.uint8], delimiter: str, width: int, wanted: tuple[int, ...]) -> list[Strings]:
    """The bytes of some columns of whole records, out of their quotes.

    block: records of ``width`` fields each, as `records.scan_records` has found them; wanted: the columns' positions.
    """
    import pyarrow
    from pyarrow import csv

    names = [str(number) for number in range(width)]
    chosen = [names[column] for column in wanted]
    table = csv.read_csv(
        pyarrow.BufferReader(pyarrow.py_buffer(block)),
        csv.ReadOptions(use_threads=False, column_names=names, block_size=len(block) + 1),
        csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        csv.ConvertOptions(include_columns=chosen, column_types=dict.fromkeys(chosen, pyarrow.binary())),
    )
    return [strings_of(table.column(name).combine_chunks(), unchecked=True) for name in chosen]


def strings_of(column: Any, *, unchecked: bool = False) -> Strings:
    """The bytes of an array without nulls, as strings of UTF-8; unchecked: of bytes as they are."""
    import pyarrow

    column = column.cast(pyarrow.large_binary() if unchecked else pyarrow.large_string())
    _, offsets, data = column.buffers()
    if len(column) == 0:
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    starts = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    held = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return held[starts[0] : starts[-1]], starts - starts[0]


def as_floats(column: Any) -> Any:
    """A column of decimal numbers as the nearest doubles; any other column as it is."""
    import pyarrow

    return column.cast(pyarrow.float64()) if pyarrow.types.is_decimal(column.type) else column


def arrow_table(table: Any) -> Any:
    """A table of another library, one with an Arrow C stream, as pyarrow's; what the library raises stays its own."""
    import pyarrow

    return pyarrow.RecordBatchReader.from_stream(table).read_all()


def _unreadable(path: Path, error: Exception) -> InputError:
    reason = str(error).partition("\n")[0]
    kind = "Parquet" if path.suffix.lower() == ".parquet" else "Parquet or Arrow"
    return InputError(f"{path} is no readable {kind} file: {reason}; fetch or write it again")
