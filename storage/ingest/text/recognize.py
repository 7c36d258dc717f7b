"""Files that are no edge lists though they are text, or look like it: known by how they begin and refused.

Numbers in them could be read as edges of another graph, without an error.
"""

import re

from penstock.storage.base.errors import InputError

_EDGES = "write its edges as CSV (networkx: nx.write_edgelist(G, 'edges.csv', delimiter=',', data=False))"
_XML = f"of GraphML name the file .graphml, or give --format graphml; of others {_EDGES}"
_JSON = "write an object's ends and weight as a line of CSV (jq -r '[.source, .target] | @csv')"

_TEXTS: tuple[tuple[re.Pattern[bytes], str, str], ...] = (
    (re.compile(rb"\{\s*[\"}\n]|\[\s*[\[{\"\n]"), "JSON", _JSON),
    (
        re.compile(rb"<(\?xml|!DOCTYPE|!--|graphml|gexf|html|svg)", re.IGNORECASE),
        "XML",
        "GraphML is read (--format graphml); of others " + _EDGES,
    ),
    (re.compile(rb"(?>(?:Creator |#).*\s+)*+graph\s*\["), "GML", "--format gml reads it"),
    (re.compile(rb"(strict\s+)?(di)?graph\s*+[\w\"]*+\s*+\{", re.IGNORECASE), "Graphviz DOT", _EDGES),
    (re.compile(rb"\*(vertices|network)\b", re.IGNORECASE), "Pajek", _EDGES),
)
_PARQUET = "write it as Parquet (pyarrow: parquet.write_table(feather.read_table(FILE), 'edges.parquet'))"
_BINARIES: tuple[tuple[int, bytes, str, str], ...] = (
    (0, b"ARROW1", "an Arrow file (Feather)", "--format feather reads it"),
    (0, b"FEA1", "a Feather file", _PARQUET),
    (0, b"\xff\xff\xff\xff", "a stream of Arrow", "write it as Parquet (pyarrow: ipc.open_stream(FILE).read_all())"),
    (
        0,
        b"SQLite format 3\0",
        "a SQLite database",
        "--format sqlite --query 'select source, target from edges' reads it",
    ),
    (8, b"DUCK", "a DuckDB database", "--format duckdb --query 'select source, target from edges' reads it"),
    (0, b"ORC", "an ORC file", "write it as Parquet"),
    (0, b"Obj\x01", "an Avro file", "write it as Parquet"),
    (0, b"%PDF", "a PDF document", "name a list of edges"),
)


def refuse_content(first: bytes, file: str) -> None:
    """Refuse what begins as no list of edges does. first: as many bytes as are known, without a byte-order mark.

    Raises:
        InputError: it is another format.
    """
    begin = first.lstrip(b"\xef\xbb\xbf \t\r\n")
    for pattern, kind, way_out in _TEXTS:
        if pattern.match(begin):
            raise InputError(f"{file} is {kind}, which is no list of edges; {way_out}")
    for at, magic, kind, way_out in _BINARIES:
        if first[at : at + len(magic)] == magic:
            raise InputError(f"{file} is {kind}, and no text; {way_out}")
