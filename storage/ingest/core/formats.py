"""The formats of raw input, a record each: how a file of it is recognized, what opens it, which options it takes.

A new format is a file that yields its edges, and a record here: the table in `formats.md` is made of the records and
of the first lines of these files. Files of no format here that look like lists of edges are refused: their numbers
could be read as edges of another graph, without an error.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from penstock.storage.base.errors import InputError
from penstock.storage.base.places import Place

Recognize = Callable[[bytes, str], bool]
"""Whether a file that begins so, of so much of a suffix, is of a format."""
NAMED = ("string_ids",)
TABLE = (*NAMED, "edge_properties")
QUERIED = (*TABLE, "query")


def _begins(magic: bytes, at: int = 0) -> Recognize:
    return lambda first, suffix: first.startswith(magic, at)


def _matches(pattern: bytes) -> Recognize:
    found = re.compile(pattern)
    return lambda first, suffix: found.match(_text_of(first)) is not None


def _is_matrix_market(first: bytes, suffix: str) -> bool:
    """Whether it is a MatrixMarket file, or was meant to be one."""
    banner = first.lstrip(b" \t\xef\xbb\xbf").lower().startswith((b"%%matrix", b"%matrixmarket"))
    return banner or (suffix == ".mtx" and first.startswith(b"%%"))


def _is_graphml(first: bytes, suffix: str) -> bool:
    return _text_of(first).startswith(b"<") and re.search(rb"<([\w.-]+:)?graphml[\s>]", first) is not None


def _text_of(first: bytes) -> bytes:
    return first.lstrip(b"\xef\xbb\xbf \t\r\n")


@dataclass(frozen=True)
class Format:
    """One format of raw input.

    Parameters
    ----------
    name : str
        As `--format` has it.
    opens : str
        ``module:name`` below `penstock.storage.ingest` of what makes a `Source` of paths (or of the one path of a file
        that is a `whole` graph), `given` and `IngestOptions`. The module is imported when a file is opened.
    takes : tuple of str
        The options of `IngestOptions` that not every format has.
    suffixes : tuple of str
        By which text is of this format.
    recognizes : callable, optional
        Whether the first bytes are of this format, whatever the name.
    called : str
        What a file of it is called where it was taken for text; "" where it may be.
    """

    name: str
    opens: str
    given: tuple[Any, ...] = ()
    whole: bool = False
    takes: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    recognizes: Recognize | None = None
    called: str = ""


FORMATS = {
    one.name: one
    for one in (
        Format("text", "text.edge_list:text_source", takes=(*NAMED, "comment")),
        Format("csv", "tables.delimited:delimited_source", takes=(*TABLE, "delimiter"), suffixes=(".csv", ".tsv")),
        Format("matrix-market", "formats.matrix_market:MatrixMarketSource", whole=True, recognizes=_is_matrix_market),
        Format("dimacs", "formats.dimacs:DimacsSource", whole=True, suffixes=(".gr", ".dimacs")),
        Format("metis", "formats.metis:MetisSource", whole=True, suffixes=(".graph", ".metis")),
        Format("adjacency", "formats.adjacency:AdjacencySource", ("adjacency",), suffixes=(".adj", ".adjlist")),
        Format("rows", "formats.adjacency:AdjacencySource", ("rows",)),
        Format("webgraph", "formats.adjacency:AdjacencySource", ("webgraph",), suffixes=(".graph-txt",)),
        Format("npy", "formats.npy:NpySource", recognizes=_begins(b"\x93NUMPY")),
        Format(
            "npz",
            "formats.npz:NpzSource",
            whole=True,
            recognizes=lambda first, suffix: suffix == ".npz" and first.startswith(b"PK\x03\x04"),
        ),
        Format("binary32", "formats.binary:PairSource", ("<u4",)),
        Format("binary64", "formats.binary:PairSource", ("<u8",)),
        Format("csr", "formats.csr:CsrSource"),
        Format("parquet", "formats.parquet:parquet_source", takes=TABLE, recognizes=_begins(b"PAR1")),
        Format(
            "graphar",
            "formats.graphar:GraphArSource",
            whole=True,
            takes=("edge_properties",),
            suffixes=(".yml", ".yaml"),
        ),
        Format("icebug", "formats.icebug:IcebugSource", whole=True, takes=("edge_properties",)),
        Format("graph", "formats.graph_file:GraphFileSource", whole=True, recognizes=_begins(b"\x89HDF\r\n\x1a\n")),
        Format(
            "graphml",
            "formats.graphml:graphml_source",
            whole=True,
            takes=NAMED,
            suffixes=(".graphml",),
            recognizes=_is_graphml,
        ),
        Format(
            "gml",
            "formats.gml:gml_source",
            whole=True,
            suffixes=(".gml",),
            recognizes=_matches(rb"(?>(?:Creator |Version |#).*\s+)*+graph\s*\["),
            called="GML",
        ),
        Format(
            "sqlite",
            "formats.queries:batch_source",
            ("sqlite",),
            takes=QUERIED,
            recognizes=_begins(b"SQLite format 3\0"),
            called="a SQLite database",
        ),
        Format(
            "duckdb",
            "formats.queries:batch_source",
            ("duckdb",),
            takes=(*QUERIED, "query_reads"),
            recognizes=_begins(b"DUCK", 8),  # behind a checksum, of any bytes
            called="a DuckDB database",
        ),
        Format(
            "feather",
            "formats.queries:batch_source",
            ("feather",),
            takes=TABLE,
            recognizes=_begins(b"ARROW1"),
            called="an Arrow file (Feather)",
        ),
    )
}
"""By name; those that a beginning tells are tried in this order."""

_EDGES = "write its edges as CSV (networkx: nx.write_edgelist(G, 'edges.csv', delimiter=',', data=False))"
_JSON = "write an object's ends and weight as a line of CSV (jq -r '[.source, .target] | @csv')"
_FEA1 = "write it as Parquet (pyarrow: parquet.write_table(feather.read_table(FILE), 'edges.parquet'))"
_STREAM = "write it as Parquet (pyarrow: ipc.open_stream(FILE).read_all())"
_OTHERS: tuple[tuple[Recognize, str, str], ...] = (
    (_matches(rb"\{\s*[\"}\n]|\[\s*[\[{\"\n]"), "JSON", _JSON),
    (
        _matches(rb"(?i)<(\?xml|!DOCTYPE|!--|graphml|gexf|html|svg)"),
        "XML",
        f"GraphML is read (--format graphml); of others {_EDGES}",
    ),
    (_matches(rb"(?i)(strict\s+)?(di)?graph\s*+[\w\"]*+\s*+\{"), "Graphviz DOT", _EDGES),
    (_matches(rb"(?i)\*(vertices|network)\b"), "Pajek", _EDGES),
    (_begins(b"FEA1"), "a Feather file", _FEA1),
    (_begins(b"\xff\xff\xff\xff"), "a stream of Arrow", _STREAM),
    (_begins(b"ORC"), "an ORC file", "write it as Parquet"),
    (_begins(b"Obj\x01"), "an Avro file", "write it as Parquet"),
    (_begins(b"%PDF"), "a PDF document", "name a list of edges"),
)
_OTHER_SUFFIXES = {
    ".gexf": "GEXF",
    ".mat": "MATLAB",
    ".nkbg002": "NetworKit's binary format",
    ".nkbg003": "NetworKit's binary format",
}


def suffix_of(file: Place) -> str:
    """Return the last suffix of a name, in lower case, that is not of a compression; "" where there is none."""
    suffixes = [suffix.lower() for suffix in PurePath(file).suffixes]
    return next((one for one in reversed(suffixes) if one not in (".gz", ".bz2", ".xz", ".zst")), "")


def recognized(first: bytes, suffix: str) -> Format | None:
    """Return the format of a file that begins so, None where the beginning says nothing. suffix: of its name."""
    return next((one for one in FORMATS.values() if one.recognizes and one.recognizes(first, suffix)), None)


def format_of_suffix(suffix: str, file: str) -> Format:
    """Return the format of text in a file of that suffix. Raises InputError for one of another format's name."""
    if suffix in _OTHER_SUFFIXES:
        raise InputError(
            f"{file}: files named {suffix} are {_OTHER_SUFFIXES[suffix]}, which is no edge list and "
            "cannot be read yet; --format text reads it as a list of edges all the same"
        )
    return next((one for one in FORMATS.values() if suffix in one.suffixes), FORMATS["text"])


def refuse_content(first: bytes, file: str) -> None:
    """Refuse what begins as no list of edges does. first: as many bytes as are known.

    Raises
    ------
    InputError
        It is of another format.
    """
    for one in FORMATS.values():
        if one.called and one.recognizes and one.recognizes(first, ""):
            query = " --query 'select source, target from edges'" if "query" in one.takes else ""
            raise InputError(f"{file} is {one.called}, which is no list of edges; --format {one.name}{query} reads it")
    for recognizes, kind, way_out in _OTHERS:
        if recognizes(first, ""):
            raise InputError(f"{file} is {kind}, which is no list of edges; {way_out}")
