"""The only door to pyarrow for reading: Parquet files, blocks of CSV, tables that other libraries hold."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import PurePath
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import InputError, RunError, brief
from penstock.storage.base.places import Address, Place, open_stored

READ_AHEAD = 256 << 10
"""Bytes of a column of Parquet that are read at once."""
STORED_AHEAD = 4 << 20
"""The same of a file in a store, where a request takes as long as some MiB of an answer."""
WHOLE_SHARE = 4
"""One part in so many of the budget has room for what is decoded as a whole: the text of a column in a row group, which
may be one value, or a record batch."""
BATCH_SHARE = 16
"""One part in so many of the budget may be held as the rows of a batch, as Python's objects or as Arrow's."""
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
"""What Hive and Spark write as a folder's value where a row has none."""
Strings = tuple[NDArray[np.uint8], NDArray[np.int64]]
"""A column of strings: all bytes end to end, and where each begins in them; the last entry is the end."""


@contextmanager
def parquet_file(path: Place) -> Iterator[Any]:
    """Open a Parquet file as pyarrow does; what goes wrong in the block becomes one of our errors.

    Raises:
        InputError: it is no Parquet, or damaged.
        RunError: the disk failed.
    """
    with _reading(path), _parquet(path) as file:
        yield file


def _parquet(path: Place, **known: Any) -> Any:
    """A pyarrow.parquet.ParquetFile, which owns what it reads from."""
    from pyarrow import parquet

    if isinstance(path, Address):
        file, ahead = open_stored(path, ordered=False)[0], STORED_AHEAD
    else:
        file, ahead = path, READ_AHEAD
    return parquet.ParquetFile(file, pre_buffer=False, buffer_size=ahead, **known)


def parquet_batches(path: Place, names: list[str], rows: int, memory: int) -> Iterator[Any]:
    """Columns of a Parquet file (of `with_folders`) in record batches of so many rows, or of fewer where text is long.

    Raises as `parquet_file`, and InputError where the text of a row group is too long for a budget of ``memory`` bytes.
    """
    import pyarrow

    with parquet_file(path) as file:
        stored = [name for name in names if name in file.schema_arrow.names]
        values = _folder_values(path)
        for batch in _stored_batches(path, file, stored, rows, memory):
            for name in names:
                if name not in stored:
                    batch = batch.append_column(name, pyarrow.repeat(values[name], len(batch)))
            yield batch


def _folder_values(path: Place) -> dict[str, Any]:
    """What the names of a file's folders say, as Hive writes them (``year=2024/kind=wire``), as Arrow's scalars."""
    import pyarrow

    parts = (unquote(part).partition("=") for part in PurePath(path).parts[:-1])
    numbers = re.compile(r"\d{1,18}", re.ASCII)
    values = {name: int(value) if numbers.fullmatch(value) else value for name, mark, value in parts if mark}
    return {name: pyarrow.scalar(None if value == _HIVE_NULL else value) for name, value in values.items()}


def with_folders(path: Place, schema: Any, wanted: Sequence[int | str] | None) -> Any:
    """The schema of a Parquet file, and of the values that names of its folders give where they are ``wanted``."""
    import pyarrow

    for name, value in _folder_values(path).items():
        if name in (wanted or ()) and name not in schema.names:
            schema = schema.append(pyarrow.field(name, value.type))
    return schema


def _stored_batches(path: Place, file: Any, names: list[str], rows: int, memory: int) -> Iterator[Any]:
    texts = [name for name in names if str(file.schema_arrow.field(name).type).removeprefix("large_") == "string"]
    if not texts:
        yield from file.iter_batches(batch_size=rows, columns=names, use_threads=True)
        return
    with _parquet(path, metadata=file.metadata, read_dictionary=texts) as encoded:
        for group in range(file.metadata.num_row_groups):
            size = max(_column_bytes(file.metadata.row_group(group), texts))
            if size > memory // WHOLE_SHARE:
                raise _too_large(path, f"row group {group} has a column of text", size)
            longest = sum(_longest_known(encoded, group, name) for name in texts)
            fitting = max(1, min(rows, memory // BATCH_SHARE // max(1, longest)))
            yield from file.iter_batches(batch_size=fitting, row_groups=[group], columns=names, use_threads=True)


def _column_bytes(group: Any, names: list[str]) -> list[int]:
    """Bytes of columns in a row group, encoded, as it says."""
    columns = map(group.column, range(group.num_columns))
    return [column.total_uncompressed_size for column in columns if column.path_in_schema in names]


def _longest_known(file: Any, group: int, name: str) -> int:
    """Bytes of the longest value in the dictionary of a column in a row group, which rows may repeat."""
    from pyarrow import compute

    first = next(file.iter_batches(batch_size=1, row_groups=[group], columns=[name]), None)
    return 0 if first is None else compute.max(compute.binary_length(first.column(0).dictionary)).as_py() or 0


@contextmanager
def _reading(path: Place) -> Iterator[None]:
    import pyarrow

    try:
        yield
    except OSError as error:
        if error.errno is None and "AWS Error" not in str(error):  # not the disk's: of another format
            raise _unreadable(path, error) from error
        raise RunError(f"{path}: reading failed: {error}") from error
    except (pyarrow.ArrowException, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error


@contextmanager
def taking(path: Place, names: list[str]) -> Iterator[None]:
    """Make an InputError of what pyarrow refuses of these columns, which were read."""
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, UnicodeDecodeError) as error:
        listed, reason = ", ".join(names), brief(str(error).partition("\n")[0])
        raise InputError(
            f"{path}: the columns {listed} cannot be taken: {reason}; cast them, or name others with --columns"
        ) from error


def parquet_schema(path: Place, wanted: Sequence[int | str] | None) -> Any:
    """The schema of `with_folders`, None of a file that cannot be read (reading it says why)."""
    import pyarrow

    try:
        with _parquet(path) as file:
            return with_folders(path, file.schema_arrow, wanted)
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError):
        return None


def feather_batches(path: Place, memory: int) -> Iterator[Any]:
    """The record batches of an Arrow file (Feather), as they are in it, within a budget. Raises as `parquet_file`."""
    import pyarrow

    with _reading(path), _arrow_file(path) as file, pyarrow.ipc.open_file(file) as reader:
        _ = reader.schema.names  # not decoded before
        try:
            size = _decoded_bytes(file)
        except (IndexError, ValueError) as error:  # what refers beyond the file
            raise _unreadable(path, error) from error
        if size > memory // WHOLE_SHARE:
            raise _too_large(path, "it has record batches", size)
        for number in range(reader.num_record_batches):
            batch = reader.get_batch(number)
            batch.validate(full=True)  # Arrow looks at no offset before it is used
            yield batch


def _arrow_file(path: Place) -> Any:
    """A file that Arrow reads by position, without mapping it."""
    import pyarrow

    return open_stored(path, ordered=False)[0] if isinstance(path, Address) else pyarrow.OSFile(str(path))


def _decoded_bytes(file: Any) -> int:
    """Bytes that the largest record batch of an Arrow file and all dictionaries will have once they are decoded.

    The footer names the blocks, whose messages name their buffers. A compressed buffer begins with its length, or with
    -1 where it is stored as it is (Arrow columnar format 1.5, "IPC File Format" and "Buffer compression").
    """
    end = file.size() - len(b"ARROW1") - 4
    size = int.from_bytes(_bytes_at(file, end, 4), "little")
    footer = _bytes_at(file, end - size, size)
    root = _place(footer, 0)
    dictionaries, batches = (_entries(footer, root, field, _BLOCK) for field in (2, 3))
    held = sum(_block_bytes(file, block) for block in dictionaries)
    return held + max((_block_bytes(file, block) for block in batches), default=0)


_BLOCK = np.dtype({"names": ["offset", "metadata", "body"], "formats": ["<i8", "<i4", "<i8"], "offsets": [0, 8, 16]})
_BUFFER = np.dtype([("offset", "<i8"), ("length", "<i8")])


def _block_bytes(file: Any, block: Any) -> int:
    """Bytes of the buffers of a block of an Arrow file once they are decoded."""
    offset, metadata = int(block["offset"]), int(block["metadata"])
    message = _bytes_at(file, offset, metadata)
    first = 8 if message.startswith(b"\xff\xff\xff\xff") else 4
    header = _field(message, _place(message, first), 2)
    batch = _place(message, header)
    if int(message[_field(message, _place(message, first), 1)]) == 2:  # a dictionary, which holds a batch
        batch = _place(message, _field(message, batch, 1))
    buffers = _entries(message, batch, 2, _BUFFER)
    if not _field(message, batch, 3):
        return int(buffers["length"].sum())
    total = 0
    for start, length in buffers[buffers["length"] > 0].tolist():
        stored = int.from_bytes(_bytes_at(file, offset + metadata + start, 8), "little", signed=True)
        total += length if stored < 0 else stored
    return total


def _bytes_at(file: Any, begin: int, count: int) -> bytes:
    """Bytes of a file. Raises ValueError for a place that it does not have."""
    if not 0 <= begin <= begin + count <= file.size():
        raise ValueError("a part of it is not in the file")
    return bytes(file.read_at(count, begin))


def _place(data: bytes, at: int) -> int:
    """Where a FlatBuffer's reference at a place leads."""
    return at + int.from_bytes(data[at : at + 4], "little")


def _field(data: bytes, table: int, number: int) -> int:
    """Where a field of a FlatBuffer's table is; 0 for one that is absent."""
    names = table - int.from_bytes(data[table : table + 4], "little", signed=True)
    entry = 4 + 2 * number
    if entry >= int.from_bytes(data[names : names + 2], "little"):
        return 0
    offset = int.from_bytes(data[names + entry : names + entry + 2], "little")
    return table + offset if offset else 0


def _entries(data: bytes, table: int, number: int, kind: Any) -> NDArray[Any]:
    """A field of a FlatBuffer's table that holds several structures."""
    field = _field(data, table, number)
    if not field:
        return np.empty(0, kind)
    begin = _place(data, field)
    return np.frombuffer(data, kind, int.from_bytes(data[begin : begin + 4], "little"), begin + 4)


def feather_schema(path: Place) -> Any:
    """The schema of an Arrow file. Raises as `parquet_file`."""
    import pyarrow

    with _reading(path), _arrow_file(path) as file, pyarrow.ipc.open_file(file) as reader:
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


def side_by_side(readers: Sequence[Iterator[Any]], file: str) -> Iterator[Any]:
    """Yield record batches of all columns of several readers, whose rows are the same. Raises InputError where not."""
    import pyarrow

    held: list[Any] = [None] * len(readers)
    while True:
        held = [batch or next(filter(len, reader), None) for reader, batch in zip(readers, held, strict=True)]
        ended = [batch is None for batch in held]
        if any(ended):
            if not all(ended):
                raise InputError(f"{file}: the files of its columns have different numbers of rows; write them again")
            return
        rows = min(map(len, held))
        columns = {name: batch.column(name).slice(0, rows) for batch in held for name in batch.schema.names}
        yield pyarrow.record_batch(columns)
        held = [batch.slice(rows) for batch in held]


def numbered(batches: Iterable[Any], name: str) -> Iterator[Any]:
    """Yield record batches with the number of each row, from 0, as their first column."""
    import pyarrow

    first = 0
    for batch in batches:
        yield batch.add_column(0, name, pyarrow.array(np.arange(first, first + len(batch), dtype=np.uint64)))
        first += len(batch)


def record_batch(columns: Mapping[str, Sequence[Any] | NDArray[Any]], types: Sequence[str] = ()) -> Any:
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


def typed_csv_batches(path: Place, types: dict[str, str], block_bytes: int) -> Iterator[Any]:
    """Columns of a CSV file with a header, of GraphAr's types by name, as record batches; empty fields are null.

    Raises as `parquet_file`.
    """
    import pyarrow
    from pyarrow import csv

    known = {"float": "float32", "double": "float64", "bool": "bool_", "date": "date32"}
    known |= {kind: kind for kind in ("int32", "int64", "string")}
    for name, kind in types.items():
        if kind != "timestamp" and kind not in known:
            raise InputError(
                f"{path}: the column {name} is of the type {brief(kind)}, which GraphAr does not have in CSV"
            )
    kinds = {
        name: pyarrow.timestamp("ms") if kind == "timestamp" else getattr(pyarrow, known[kind])()
        for name, kind in types.items()
    }
    source = open_stored(path, ordered=True)[0] if isinstance(path, Address) else path
    with _reading(path):
        yield from csv.open_csv(
            source,
            csv.ReadOptions(use_threads=False, block_size=block_bytes),
            csv.ParseOptions(newlines_in_values=True),
            csv.ConvertOptions(
                include_columns=list(types),
                column_types=kinds,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )


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


def type_name(kind: Any) -> str:
    """What `edge_properties.TYPES` calls a type of Arrow; empty for one that has no name there."""
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    known = {
        "int": types.is_integer(kind),
        "float": types.is_floating(kind) or types.is_decimal(kind),
        "bool": types.is_boolean(kind),
        "date": types.is_date(kind),
        "timestamp": types.is_timestamp(kind),
        "string": types.is_string(kind) or types.is_large_string(kind),
    }
    return next((name for name, holds in known.items() if holds), "")


def column_values(column: Any, kind: str) -> tuple[NDArray[Any], NDArray[np.bool_] | None, list[str] | None]:
    """A column as numbers of a type of `edge_properties.TYPES`, which are null (None: none), and distinct strings.

    Of strings the numbers are places among these. Raises ValueError where a value is not of that type.
    """
    import pyarrow

    to = {
        "int": pyarrow.int64(),
        "float": pyarrow.float64(),
        "bool": pyarrow.bool_(),
        "date": pyarrow.date32(),
        "timestamp": pyarrow.timestamp("us"),
        "string": pyarrow.string(),
    }[kind]
    if isinstance(column, pyarrow.ChunkedArray):
        column = column.combine_chunks()
    if pyarrow.types.is_timestamp(column.type) and column.type.tz:
        column = column.cast(pyarrow.timestamp(column.type.unit))  # the same moment, in UTC
    if kind == "timestamp" and type_name(column.type) == "string":
        column = _in_utc(column.cast(pyarrow.string()))
    column = column.cast(to)  # pyarrow's errors are ValueErrors
    words = None
    if kind == "string":
        encoded = column.dictionary_encode()
        words, column = encoded.dictionary.to_pylist(), encoded.indices
    null = column.is_null(nan_is_null=kind == "float").to_numpy(zero_copy_only=False)
    plain = {"bool": pyarrow.uint8(), "date": pyarrow.int32(), "timestamp": pyarrow.int64()}.get(kind)
    column = column if plain is None else column.cast(plain)
    values = column.fill_null(0).to_numpy(zero_copy_only=False)
    return values, null if null.any() else None, words


def _in_utc(texts: Any) -> Any:
    """ISO texts as moments, with a zone and without, which is UTC. Raises ValueError where one is none."""
    import pyarrow
    from pyarrow import compute

    moment, none = pyarrow.timestamp("us"), pyarrow.scalar(None, texts.type)
    zoned = compute.match_substring_regex(texts, r"[T ].*(Z|[+-]\d\d(:?\d\d)?)$")
    there = compute.if_else(zoned, texts, none).cast(pyarrow.timestamp("us", "UTC")).cast(moment)
    return compute.coalesce(there, compute.if_else(zoned, none, texts).cast(moment))


def csv_batch(block: NDArray[np.uint8], delimiter: str, names: Sequence[str], types: dict[str, str]) -> list[Any]:
    """Columns of whole records of CSV, as ``types`` says by name, "" for what Arrow finds; empty fields are null.

    Those that are said are text still. names: of all columns. Raises ValueError where records are no CSV.
    """
    import pyarrow
    from pyarrow import csv

    table = csv.read_csv(
        pyarrow.BufferReader(pyarrow.py_buffer(block)),
        csv.ReadOptions(use_threads=False, column_names=list(names), block_size=len(block) + 1),
        csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        csv.ConvertOptions(
            include_columns=list(types),
            column_types={name: pyarrow.string() for name, kind in types.items() if kind},
            null_values=[""],
            strings_can_be_null=True,
        ),
    )
    return [table.column(name).combine_chunks() for name in types]


def arrow_table(table: Any) -> Any:
    """A table of another library, one with an Arrow C stream, as pyarrow's; what the library raises stays its own."""
    import pyarrow

    return pyarrow.RecordBatchReader.from_stream(table).read_all()


def _too_large(path: Place, what: str, size: int) -> InputError:
    return InputError(
        f"{path}: {what} of {format_bytes(size)}, which is decoded as a whole; give --host-memory "
        f"{-(-size * WHOLE_SHARE >> 20)}MiB, or write smaller ones"
    )


def _unreadable(path: Place, error: Exception) -> InputError:
    reason = brief(str(error).partition("\n")[0])
    kind = "Parquet" if str(path).lower().endswith(".parquet") else "Parquet or Arrow"
    return InputError(f"{path} is no readable {kind} file: {reason}; fetch or write it again")
