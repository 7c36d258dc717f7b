"""Types of `penstock.convert`: options of `penstock convert`; written by tests/support/typed_convert.py."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Literal

from penstock.storage.convert.sort.options import ConvertProgress
from penstock.storage.format.graph import Graph

_Path = str | PathLike[str]

def convert(
    inputs: _Path | Sequence[_Path],
    output: _Path,
    *,
    progress: bool | Callable[[ConvertProgress], None] = False,
    format: Literal[
        "text",
        "csv",
        "matrix-market",
        "dimacs",
        "metis",
        "adjacency",
        "rows",
        "webgraph",
        "npy",
        "npz",
        "binary32",
        "binary64",
        "csr",
        "parquet",
        "graphar",
        "icebug",
        "graph",
        "graphml",
        "gml",
        "sqlite",
        "duckdb",
        "feather",
    ]
    | None = None,
    columns: str | Sequence[int | str] | None = None,
    query: str | None = None,
    query_reads: _Path | Sequence[_Path] = (),
    delimiter: str | None = None,
    edge_properties: str | Sequence[str] | None = None,
    weights: bool | None = None,
    header: bool | None = None,
    comment: str | None = None,
    string_ids: bool = False,
    vertices: _Path | None = None,
    bipartite: bool = False,
    layout: Literal["rows", "list"] = "rows",
    direction: Literal["out", "both"] = "out",
    undirected: bool = False,
    symmetrize: bool = False,
    dedupe: Literal["first", "sum", "min", "max"] | None = None,
    drop_self_loops: bool = False,
    renumber: bool | None = None,
    order: Literal["none", "degree", "hubs", "paths"] = "none",
    windows: int | Literal["auto"] | None = None,
    host_memory: int | str | None = None,
    scratch: _Path | None = None,
    stripe: _Path | Sequence[_Path] = (),
    encoding: Literal["packed", "plain"] = "packed",
    threads: int | None = None,
    force: bool = False,
) -> Graph:
    """Turn raw edge lists into a graph file.

    format: Format of the input; detected from names and first bytes by default.
    columns: Columns of source, target and perhaps weight, by name or from 0: from,to,km or 0,1,2.
    query: Read the rows of this query of a SQLite or DuckDB database: one select.
    query_reads: A file or folder that --query may read besides a DuckDB database. Repeatable.
    delimiter: Character between the columns of CSV, or tab; detected by default.
    edge_properties: Keep these columns beside the edges, for --where and --weight of a run: amount,date,kind;
        with a type where it is not that of the column: amount:float.
    weights: Take a third column as weight, or not.
    header: The first line names columns, or not.
    comment: Pass over lines of text that begin with this character, as with # and %.
    string_ids: Ids are strings; detected with --renumber or --bipartite.
    vertices: A file with a vertex id per line: exactly these exist, isolated ones too; an edge with another is
        refused. 0:N is ids 0 to N-1. In a table (.csv, .tsv, .parquet, .graphml, .gml) other columns are
        properties, which run --join adds to answers.
    bipartite: Sources and targets are apart, as users and items: an id on both sides is two vertices.
    layout: rows: sorted by vertex. list: in the order of the input, in one pass, and open to 'penstock append'.
    direction: Store out-edges alone, or in-edges too (both), so that programs can pull.
    undirected: Each input edge goes both ways.
    symmetrize: Add the reverse of each edge, and keep one of parallel edges as --dedupe says.
    dedupe: Of parallel edges keep one; its weight is the first, the sum, the least, the most.
    drop_self_loops: Leave out edges from a vertex to itself.
    renumber: The ids that occur are vertices, and answers have them: so it is by default. --renumber does it
        with a table, which takes strings and any ids; --no-renumber makes all ids from 0 to the largest
        vertices.
    order: Order of vertices in the file: by id, by falling degree, the best-connected 8 % first, or along paths
        (depth first, components in topological order).
    windows: Store edges once more, by N ranges of the vertices that they lead to: runs with less memory than
        the values of vertices take then read each edge once. auto: as many as --host-memory asks for.
    host_memory: Most memory to allocate, for instance 800MiB; interpreter and libraries take up to 150MiB more.
        By default a share of what is free.
    scratch: Folder for temporary data; beside the output if none.
    stripe: Spread the file over these folders, each on a disk of its own. Repeatable. Folders inside that of
        the output may be moved and copied with it.
    encoding: packed is small and fast; plain can be read by any HDF5 tool with the zstd plugin.
    threads: Threads; every core by default.
    force: Replace an existing output.
    """
