"""Owns which files a name means: a folder, a pattern of names, a table of Delta Lake or Apache Iceberg.

A table is a folder whose log, read by the table's own package, says which of its Parquet files are in it now. Rows that
the log marks as deleted inside a file, and columns that were renamed while files kept the old names, are refused: the
files alone would give other edges than the table has.
"""

import glob
import os
import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import Any

from penstock.storage.base.atomic import keep_inputs
from penstock.storage.base.errors import InputError, PenstockError, brief, installing
from penstock.storage.base.places import Address, FilePlace, Place, exists, names_below, place_of, s3_server

Files = Sequence[FilePlace]
_WILD = re.compile(r"[*?\[]")


def files_of(place: FilePlace) -> Files:
    """Return the files that a name means, in order: itself, those of a table, below a folder, or that match a pattern.

    In a pattern ``*`` matches within one part of a name, ``**`` any parts; a folder that matches is taken whole. Names
    that begin with a point or an underscore are passed over, as Spark and Hive do.

    Raises
    ------
    InputError
        A folder or a pattern without a file, or a table that its files alone do not tell.
    """
    wild = _WILD.search(str(place))
    if isinstance(place, Address):
        found = [place] if exists(place) else _below(place) if wild is None else _matching(place)
    elif place.is_dir():
        found = _below(place)
    elif wild is None or place.exists():
        return [place]
    elif "**" in place.parts:
        found = _matching(place)
    else:  # without a walk through all that is below
        before = len(_before_pattern(place).parts)
        named = [one for one in map(Path, sorted(glob.glob(str(place)))) if not _hidden("/".join(one.parts[before:]))]
        found = [file for one in named for file in (_below(one) if one.is_dir() else [one])]
    if not found:
        raise InputError(f"{place}: there is no file; name files, or a folder or a pattern of such")
    return found


def keep_read(output: Path, inputs: Iterable[Place]) -> None:
    """Refuse an output that is one of the files that inputs mean. Raises as `keep_inputs` and `files_of`."""
    if os.path.exists(output):
        here = (place for place in map(place_of, inputs) if not isinstance(place, Address))
        keep_inputs(output, (file for place in here for file in files_of(place)))


def _below(folder: FilePlace) -> Files:
    names = names_below(folder)
    for mark, files in _TABLES.items():
        if any(re.match(mark, name) for name in names):
            try:
                return [place_of(one) for one in files(folder, names)]
            except PenstockError:
                raise
            except Exception as error:  # of many kinds, by the package
                reason = brief(str(error).partition("\n")[0])
                raise InputError(f"{folder}: the log of the table cannot be read: {reason}; mend the table") from error
    return [folder / name for name in names if not _hidden(name)]


def _hidden(name: str) -> bool:
    return re.search(r"(^|/)[._]", name) is not None


def _before_pattern(pattern: FilePlace) -> FilePlace:
    """The folder that the first part with a pattern lies in."""
    first = next(at for at, part in enumerate(pattern.parts) if _WILD.search(part))
    return type(pattern)(*pattern.parts[:first])


def _matching(pattern: FilePlace) -> Files:
    base = _before_pattern(pattern)
    parts = pattern.parts[len(base.parts) :]
    names = [name for name in names_below(base) if not _hidden(name)]
    return [base / name for name in names if _matches(tuple(name.split("/")), parts)]


def _matches(parts: tuple[str, ...], patterns: tuple[str, ...]) -> bool:
    if not parts or not patterns:
        return not patterns  # below a folder that matches
    if patterns[0] == "**":
        return _matches(parts, patterns[1:]) or _matches(parts[1:], patterns)
    return fnmatchcase(parts[0], patterns[0]) and _matches(parts[1:], patterns[1:])


def _delta_files(folder: FilePlace, names: Sequence[str]) -> Sequence[str]:
    table = _package("deltalake", folder).DeltaTable(str(folder))
    features = set(table.protocol().reader_features or ())
    if table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
        features.add("columnMapping")  # which tables of older protocols do not list
    for feature, out in (("deletionVectors", "REORG TABLE ... APPLY (PURGE)"), ("columnMapping", "write it anew")):
        if feature in features:
            raise InputError(f"{folder}: the table has Delta's {feature}, so its files do not tell its rows; {out}")
    root = table.table_uri.removeprefix("file://")  # with %20 for a blank, and what follows is as it is on the disk
    return sorted(
        str(folder / uri.removeprefix(root).lstrip("/")) if uri.startswith(root) else uri for uri in table.file_uris()
    )


def _iceberg_files(folder: FilePlace, names: Sequence[str]) -> Sequence[str]:
    numbers = {name: re.search(r"metadata/v?(\d+)", name) for name in names if name.endswith(".metadata.json")}
    newest = max(numbers, key=lambda name: int(found[1]) if (found := numbers[name]) else -1)
    options = {"s3.endpoint": server} if (server := s3_server()) else {}
    table = _package("pyiceberg.table", folder).StaticTable.from_metadata(str(folder / newest), options)
    called: dict[int, str] = {}
    for schema in table.schemas().values():
        for field in schema.fields:
            if called.setdefault(field.field_id, field.name) != field.name:
                raise InputError(f"{folder}: the column {field.name} was renamed; rewrite the table's files")
    tasks = list(table.scan().plan_files())
    if any(task.delete_files for task in tasks):
        raise InputError(f"{folder}: the table has files of deleted rows; rewrite its data files (rewrite_data_files)")
    return sorted(task.file.file_path for task in tasks)


_TABLES: dict[str, Callable[[FilePlace, Sequence[str]], Sequence[str]]] = {
    r"_delta_log/\d+\.(json|checkpoint)": _delta_files,
    r"metadata/[^/]*\.metadata\.json": _iceberg_files,
}
"""By the name of a file of its log."""


def _package(name: str, folder: FilePlace) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise InputError(f"{folder} is a table that the package {error.name} reads; {installing('tables')}") from None
