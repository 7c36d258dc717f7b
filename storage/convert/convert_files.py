"""Graph files are made and changed by Python programs: functions take the options of the commands of their names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any

from penstock.storage.base.atomic import keep_inputs
from penstock.storage.base.budget import default_host_memory, parse_bytes
from penstock.storage.base.errors import InputError, for_python
from penstock.storage.base.places import Place, place_of
from penstock.storage.convert import append as _append
from penstock.storage.convert import remove as _remove
from penstock.storage.convert.convert import convert_opened
from penstock.storage.convert.convert_again import NoEdges
from penstock.storage.convert.sort.options import ConvertOptions, ConvertProgress
from penstock.storage.convert.sort.workspace import ignore
from penstock.storage.format.graph import Graph
from penstock.storage.ingest.core.source import IngestOptions, parse_columns, parse_delimiter, parse_names
from penstock.storage.ingest.open_source import open_source
from penstock.storage.ingest.tables.folders import keep_read

_NAMES = {"vertices": "vertices_file", "stripe": "stripes"}
"""Options of the command line that have another name here."""
_PATHS = ("vertices_file", "scratch")
_READING = (
    "columns",
    "delimiter",
    "query",
    "query_reads",
    "weights",
    "header",
    "comment",
    "string_ids",
    "edge_properties",
)


@for_python
def convert(
    inputs: str | PathLike[str] | Sequence[str | PathLike[str]],
    output: str | PathLike[str],
    *,
    format: str | None = None,
    progress: Callable[[ConvertProgress], None] | None = None,
    **options: Any,
) -> Graph:
    """Turn raw edge lists into a graph file, within a memory budget, whole or not at all.

    Parameters
    ----------
    inputs : path or sequence of paths
        Files of one format, which make one graph.
    output : path
        The graph file to write.
    format : str, optional
        Of the inputs, as `penstock convert --help` lists them; found out from names and first bytes if not given.
    progress : callable, optional
        Called now and then with a `ConvertProgress`: ``stage`` ("read", "map", "out", "in", "windows"), ``done`` and
        ``total`` (bytes of the input, then edges).
    **options
        Those of `penstock convert`: ``columns`` ("payer,payee,amount", or a sequence of names or positions),
        ``delimiter``, ``query``, ``query_reads`` (a file or folder, or several), ``edge_properties`` ("amount,kind", or
        a sequence of names), ``weights``, ``header``, ``comment``, ``string_ids``, ``vertices`` (a file, or a number n
        for 0 to n-1), ``bipartite``, ``layout``,
        ``direction``, ``undirected``, ``symmetrize``, ``dedupe``, ``drop_self_loops``, ``renumber``, ``order``,
        ``windows``, ``host_memory`` (bytes, or a text such as "1GiB"), ``scratch``, ``stripe`` (a folder or several),
        ``encoding``, ``threads``, ``force``.

    Returns
    -------
    Graph
        The graph file, opened.

    Raises
    ------
    InputError
        The input, an option or the output cannot be used; nothing is left on disk.
    RunError
        The disk is full or failed; nothing is left on disk, and a graph that was there stays.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from penstock.engine import convert
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "calls.csv").write_text("from,to\\nann,bob\\nbob,cy\\n")
    >>> convert(folder / "calls.csv", folder / "calls.h5", renumber=True).neighbors("ann").tolist()
    ['bob']
    """
    conversion, given = _options(options)
    paths, target = _places(inputs), Path(output)
    keep_inputs(target, [] if conversion.vertices_file is None else [conversion.vertices_file])
    keep_read(target, paths)
    read = conversion.reading(given, target)
    convert_opened(lambda: open_source(paths, format, read), target, conversion, progress or ignore)
    return Graph.open(target)


@for_python
def append(
    graph: str | PathLike[str],
    inputs: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    format: str | None = None,
    **options: Any,
) -> Graph:
    """Add edges to a graph file, as `penstock append` does; whole or not at all.

    Parameters
    ----------
    graph : path
        The graph file.
    inputs : path or sequence of paths
        Files of one format, which hold the edges.
    format : str, optional
        Of the inputs; found out if not given.
    **options
        Those of `penstock append`: ``columns``, ``delimiter``, ``query``, ``query_reads``, ``weights``, ``header``,
        ``comment``, ``string_ids``, ``host_memory``, ``scratch``, ``stripe``, ``threads``, as for `convert`.

    Returns
    -------
    Graph
        The graph file, opened.

    Raises
    ------
    InputError
        The edges do not suit the graph; it is as it was.
    RunError
        The disk is full or failed; the graph is as it was.
    """
    how, given = _options(options)
    paths, target = _places(inputs), Path(graph)
    keep_read(target, paths)
    read = _append.read_as(target, how.stripes, how.reading(given, target))
    _append.append_opened(lambda: open_source(paths, format, read), target, scratch=how.scratch, **_room(how))
    return Graph.open(target, stripes=how.stripes)


@for_python
def remove(
    graph: str | PathLike[str],
    inputs: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    *,
    vertices: Sequence[int | str] = (),
    format: str | None = None,
    **options: Any,
) -> Graph:
    """Remove edges from a graph file, as `penstock remove` does; whole or not at all.

    Parameters
    ----------
    graph : path
        The graph file.
    inputs : path or sequence of paths
        Files of one format: all edges with these ends are removed.
    vertices : sequence of int or str
        Vertices of which all edges are removed.
    format : str, optional
        Of the inputs; found out if not given.
    **options
        As for `append`, without ``weights`` and ``scratch``.

    Returns
    -------
    Graph
        The graph file, opened.

    Raises
    ------
    InputError
        The graph has no such edge or vertex; it is as it was.
    RunError
        The disk is full or failed; the graph is as it was.
    """
    how, given = _options(options)
    paths, target = _places(inputs), Path(graph)
    keep_read(target, paths)
    read = replace(_append.read_as(target, how.stripes, how.reading(given, target)), weights=False)
    _remove.remove(open_source(paths, format, read) if paths else NoEdges(), target, vertices=vertices, **_room(how))
    return Graph.open(target, stripes=how.stripes)


@for_python
def compact(graph: str | PathLike[str], **options: Any) -> Graph:
    """Write a graph file that edges were added to, or removed from, in one again, as `penstock compact` does.

    Parameters
    ----------
    graph : path
        The graph file.
    **options
        ``host_memory``, ``scratch``, ``stripe``, ``threads``, as for `convert`.

    Returns
    -------
    Graph
        The graph file, opened.

    Raises
    ------
    RunError
        The disk is full or failed; the graph is as it was.
    """
    how, target = _options(options)[0], Path(graph)
    _append.compact(target, scratch=how.scratch, **_room(how))
    return Graph.open(target, stripes=how.stripes)


def _room(how: ConvertOptions) -> dict[str, Any]:
    """What a change of a graph file may take, and where its shards are."""
    return {"stripes": how.stripes, "host_memory": how.host_memory, "threads": how.threads}


def _options(options: dict[str, Any]) -> tuple[ConvertOptions, IngestOptions]:
    """How to convert and how to read, as options say."""
    named = {_NAMES.get(name, name): value for name, value in options.items()}
    conversion = _conversion({name: value for name, value in named.items() if name not in _READING})
    read_as: dict[str, Any] = {name: named.get(name) for name in _READING}
    if (columns := named.get("columns")) is not None:
        read_as["columns"] = parse_columns(columns) if isinstance(columns, str) else tuple(columns)
    if (delimiter := named.get("delimiter")) is not None:
        read_as["delimiter"] = parse_delimiter(delimiter)
    kept = named.get("edge_properties")
    read_as["edge_properties"] = parse_names(kept) if kept is None or isinstance(kept, str) else tuple(kept)
    read_as["query_reads"] = _paths(named.get("query_reads") or ())
    return conversion, IngestOptions(**read_as)


def _places(inputs: str | PathLike[str] | Sequence[str | PathLike[str]]) -> list[Place]:
    return [place_of(one) for one in ([inputs] if isinstance(inputs, str | PathLike) else inputs)]


def _paths(given: str | PathLike[str] | Sequence[str | PathLike[str]]) -> tuple[Path, ...]:
    return tuple(Path(one) for one in ([given] if isinstance(given, str | PathLike) else given))


def _conversion(given: dict[str, Any]) -> ConvertOptions:
    """The options of the conversion. Raises InputError for a name that is none, with the nearest that is."""
    known = [entry.name for entry in fields(ConvertOptions)]
    for name in given:
        if name not in known:
            near = get_close_matches(name, [*known, *_NAMES, *_READING], 1)
            meant = f"did you mean {near[0]}? " if near else ""
            raise InputError(f"convert has no option {name}; {meant}help(penstock.convert) lists them all")
    memory = given.pop("host_memory", None)
    if memory is None:
        memory = default_host_memory()
    stripes = given.pop("stripes", ())
    if isinstance(given.get("vertices_file"), int):
        given["vertices_file"] = f"0:{given['vertices_file']}"
    for name in _PATHS:
        if given.get(name) is not None:
            given[name] = Path(given[name])
    return ConvertOptions(
        host_memory=parse_bytes(memory) if isinstance(memory, str) else int(memory),
        stripes=_paths(stripes),
        **given,
    )
