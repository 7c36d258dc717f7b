"""Rows of `--query "select a, b, w from t"` of SQLite and DuckDB (`pip install duckdb`); Arrow files (Feather).

Columns, ids and weights are as in Parquet. Rows come in batches. A query is a read: one select, which writes nothing,
opens no other file (DuckDB: those that the options allow) and sets nothing, whatever views the database has. What
SQLite gives at once, and what DuckDB works in, is a part of the budget.
"""

import importlib
import sqlite3
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from marshal import dumps
from pathlib import Path
from typing import Any

from penstock.storage.base.atomic import scratch_folder
from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import InputError, RunError, brief
from penstock.storage.base.places import Place, local
from penstock.storage.encoding.string_array import LONGEST_NAME
from penstock.storage.ingest.core.arrow import BATCH_SHARE, feather_batches, feather_schema, gathered, record_batch
from penstock.storage.ingest.core.source import LONGEST_VALUE, IngestOptions
from penstock.storage.ingest.formats.parquet import ParquetSource, columns_of, holds_strings
from penstock.storage.ingest.text.columns import TakenColumns, note_columns

MOST_ROWS = 1 << 14
ENGINE_SHARE = 4
"""One part in so many of the budget is DuckDB's to work in; what needs more goes to scratch files."""
VECTOR = 2048
"""Rows that DuckDB works on at once."""
TEXT = "VARCHAR", "JSON"
"""Types of DuckDB whose values may be long."""
READS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})
"""What SQLite may be asked to do."""
PRAGMAS = "trusted_schema = off", "cell_size_check = on", "cache_size = -2000", "mmap_size = 0"
"""A database may be hostile: its views call no function with effects, damage is seen, its header chooses no cache."""
ONE_SELECT = "--query is one select, and may not write, attach, set or load anything"


class BatchSource(ParquetSource):
    """Rows in record batches. See `core.source.Source`. format: "sqlite", "duckdb" or "feather"."""

    format = ""

    def _rows(self, path: Place) -> Generator[tuple[TakenColumns, list[Any], int | None]]:
        with closing(record_batches(path, self.format, self._options)) as found:
            for batch in found:
                taken = columns_of(path, batch.schema.names, self._options)
                note_columns(self.columns_taken, taken)
                yield taken, [batch.column(name) for name in self._wanted(taken)], None


def batch_source(paths: Sequence[Place], format: str, options: IngestOptions) -> BatchSource:
    """The files as a source, of text where the options say so or the first rows do. Raises InputError."""
    path = paths[0]
    named = options.string_ids
    if named is None:
        named = holds_strings(path, _schema(path, format, options), options)
    source = BatchSource(paths, options)
    source.format, source.named = format, named
    return source


def _schema(path: Place, format: str, options: IngestOptions) -> Any:
    """The schema of a table, None of a query without rows. Raises InputError."""
    if format == "feather":
        return feather_schema(path)
    with closing(record_batches(path, format, options)) as found:
        return getattr(next(found, None), "schema", None)


def record_batches(path: Place, format: str, options: IngestOptions) -> Generator[Any]:
    """Yield the record batches of a table. Raises InputError."""
    if format == "feather":
        yield from feather_batches(path, options.host_memory)
        return
    path = local(path)
    if options.query is not None:
        yield from (_duckdb_batches if format == "duckdb" else _sqlite_batches)(path, options.query, options)
    else:
        tables = f" (tables: {brief(', '.join(_sqlite_tables(path)))})" if format == "sqlite" else ""
        raise InputError(
            f"{path} is a {'SQLite' if format == 'sqlite' else 'DuckDB'} database{tables}; --query says what to read, "
            "such as 'select source, target from edges'"
        )


def _sqlite_batches(path: Path, query: str, options: IngestOptions) -> Iterator[Any]:
    most = options.host_memory // BATCH_SHARE
    with _refusing_query(path, query), _sqlite(path) as database, closing(database.execute(query)) as cursor:
        if cursor.description is None:
            raise _query_error(path, query, f"gives no rows; {ONE_SELECT}")
        names, read, held = [column[0] for column in cursor.description], 0, 0
        rows: list[tuple[Any, ...]] = []
        step = max(1, most // (LONGEST_VALUE * len(names)))  # they fit, whatever is in them
        while found := cursor.fetchmany(step):
            rows += found
            held += len(dumps(found, 2))  # about as long as the values are, in less time than asking each of them
            if held >= most or len(rows) >= MOST_ROWS:
                yield _batch_of(path, names, rows, read)
                read, held, rows = read + len(rows), 0, []
        if rows:
            yield _batch_of(path, names, rows, read)


def _batch_of(path: Path, names: list[str], rows: list[tuple[Any, ...]], first: int) -> Any:
    if len(set(names)) < len(names):
        listed = brief(", ".join(names))
        raise InputError(f"{path}: the columns of the query are {listed}; give each a name of its own (as)")
    try:
        return record_batch({name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)})
    except TypeError as error:
        last = first + len(rows) - 1
        raise InputError(
            f"{path}, rows {first} to {last} (from 0): a column has values of several types ({brief(str(error))}); "
            "cast them"
        ) from error


def _sqlite_tables(path: Path) -> list[str]:
    try:
        with _sqlite(path) as database:
            return [
                name for (name,) in database.execute("select name from sqlite_schema where type in ('table', 'view')")
            ]
    except sqlite3.Error as error:
        raise InputError(f"{path} is no readable SQLite database: {brief(str(error))}; fetch it again") from error


@contextmanager
def _sqlite(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database, to be read. Raises RunError where it changes meanwhile.

    SQLite makes files beside a database with a write-ahead log, and needs a folder that it may write to, even where
    nothing is in the log; such a database is opened as one that does not change.
    """
    with path.open("rb") as file:
        unlogged = file.read(19)[18:] == b"\2" and not Path(f"{path.resolve()}-wal").exists()
    before = path.stat()
    place = f"{path.resolve().as_uri()}?{'immutable=1' if unlogged else 'mode=ro'}"
    with closing(sqlite3.connect(place, uri=True)) as database:
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
        for pragma in PRAGMAS:
            database.execute(f"pragma {pragma}")
        with suppress(sqlite3.OperationalError):  # of a SQLite without them; those of others are there from now on
            database.execute("select 1 from json_each('[]'), json_tree('[]')")
        database.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in READS else sqlite3.SQLITE_DENY)
        yield database
    after = path.stat()
    if unlogged and (before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size):
        raise RunError(f"{path} was changed while it was read; convert it again")


def _duckdb_batches(path: Path, query: str, options: IngestOptions) -> Iterator[Any]:
    """Columns that are not taken are null; of ids that are text there is as much as shows that one is too long."""
    try:
        duckdb = importlib.import_module("duckdb")
    except ImportError as error:
        raise InputError(f"{path} is a DuckDB database, which takes pip install 'duckdb>=1.4'") from error
    with (
        _refusing_query(path, query, duckdb.Error),
        scratch_folder(options.scratch) as scratch,
        duckdb.connect(str(path), read_only=True, config=_duckdb_settings(options, scratch)) as database,
    ):
        for setting in _duckdb_locks(options):
            database.execute(setting)
        if not _is_one_select(duckdb, database, query):
            raise _query_error(path, query, ONE_SELECT)
        inner = f"({query.strip().rstrip(';')}\n)"  # in brackets it cannot begin with something that writes
        asked = database.sql(f"select * from {inner}")
        names, kinds = list(asked.columns), list(map(str, asked.types))
        taken = [column for column in columns_of(path, names, options).columns if column >= 0]
        kept = {wanted.partition(":")[0] for wanted in options.edge_properties}
        taken += [at for at, name in enumerate(names) if name in kept and at not in taken]
        fields = [_duckdb_field(at, kind, at in taken) for at, kind in enumerate(kinds)]
        listed = ", ".join(f"{field} as {_quoted(name, chr(34))}" for field, name in zip(fields, names, strict=True))
        aliases = ", ".join(f"c{at}" for at in range(len(names)))
        found = database.sql(f"select {listed} from {inner} as q({aliases})")
        most = options.host_memory // BATCH_SHARE
        texts = sum(kinds[column] in TEXT for column in taken)
        rows = min(VECTOR, max(1, most // (LONGEST_NAME * texts))) if texts else VECTOR
        reader = getattr(found, "to_arrow_reader", None) or found.fetch_record_batch  # its name before duckdb 1.5
        yield from gathered(reader(rows), MOST_ROWS, most)


def _duckdb_settings(options: IngestOptions, scratch: Path) -> dict[str, Any]:
    """What a database is opened with."""
    return {
        "memory_limit": f"{options.host_memory // ENGINE_SHARE}B",
        "threads": options.workers,
        "temp_directory": str(scratch),
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "disabled_optimizers": "expression_rewriter,statistics_propagation",  # they make constants outside of its limit
    }


def _duckdb_locks(options: IngestOptions) -> Iterator[str]:
    """What is set before a query, and for good: which files it may read."""
    places = [place for path in options.query_reads for place in (path.absolute(), path.resolve())]
    folders, files = ([place for place in places if place.is_dir() == is_folder] for is_folder in (True, False))
    for name, allowed in (("allowed_directories", folders), ("allowed_paths", files)):
        if allowed:
            yield f"set {name} = [{', '.join(_quoted(str(place)) for place in allowed)}]"
    yield "set enable_external_access = false"
    yield "set lock_configuration = true"


def _is_one_select(duckdb: Any, database: Any, query: str) -> bool:
    try:
        return [one.type for one in database.extract_statements(query)] == [duckdb.StatementType.SELECT]
    except (ValueError, TypeError):  # of a statement that DuckDB's Python does not know, of text that is no Unicode
        return False


def _duckdb_field(at: int, kind: str, taken: bool) -> str:
    """The expression for a column of a query."""
    if not taken:
        return "null"
    return f"system.main.left(c{at}, {LONGEST_NAME + 1})" if kind in TEXT else f"c{at}"


def _quoted(text: str, mark: str = "'") -> str:
    """A text, or a name (mark: "), as SQL has it."""
    return mark + text.replace(mark, 2 * mark) + mark


@contextmanager
def _refusing_query(path: Path, query: str, engine_error: type[Exception] = sqlite3.Error) -> Iterator[None]:
    """Make an InputError of what an engine raises, DuckDB's Arrow reader included."""
    try:
        yield
    except (engine_error, OSError, UnicodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = brief(str(error).partition("\n")[0])
        if "authoriz" in reason or "vtable constructor" in reason:
            reason = ONE_SELECT
        elif getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_TOOBIG:
            reason = f"a value or a row has more than {format_bytes(LONGEST_VALUE)}; leave its column out of the query"
        elif reason.startswith("Out of Memory Error"):
            reason += "; give more --host-memory, or leave long values out of the query"
        elif "disabled by configuration" in reason:
            reason += "; --query-reads allows files and folders"
        raise _query_error(path, query, reason) from error


def _query_error(path: Path, query: str, reason: str) -> InputError:
    return InputError(f"{path}: --query {brief(query)!r}: {reason}")
