"""`penstock convert`: raw edge lists in, a graph file out."""

from pathlib import Path
from typing import Any

import click
from penstock.storage.base.atomic import check_target, keep_inputs
from penstock.storage.base.errors import InputError
from penstock.storage.base.places import Place
from penstock.storage.convert.sort.options import ConvertOptions
from penstock.storage.ingest.core.formats import FORMATS
from penstock.storage.ingest.core.source import IngestOptions, parse_columns, parse_delimiter, parse_names
from penstock.storage.ingest.tables.folders import keep_read
from penstock.tools.base.graph_making import converting, make_graph
from penstock.tools.base.options import (
    ANY,
    OUTPUT,
    PLACE,
    is_graph_name,
    lasting_console_options,
    option,
    option_group,
)
from penstock.tools.base.output import Console


def _reading(columns: str | None, delimiter: str | None, edge_properties: str | None, **given: Any) -> IngestOptions:
    names = None if columns is None else parse_columns(columns)
    mark = None if delimiter is None else parse_delimiter(delimiter)
    kept = parse_names(edge_properties)
    return IngestOptions(columns=names, delimiter=mark, edge_properties=kept, **given)


reading = option_group(
    "reading",
    _reading,
    option("--columns", help="Columns of source, target and perhaps weight, by name or from 0: from,to,km or 0,1,2."),
    option("--query", metavar="SQL", help="Read the rows of this query of a SQLite or DuckDB database: one select."),
    option(
        "--query-reads",
        type=ANY,
        multiple=True,
        metavar="PATH",
        help="A file or folder that --query may read besides a DuckDB database. Repeatable.",
    ),
    option("--delimiter", help="Character between the columns of CSV, or tab; detected by default."),
    option(
        "--edge-properties",
        metavar="NAMES",
        help="Keep these columns beside the edges, for --where and --weight of a run: amount,date,kind; with a type "
        "where it is not that of the column: amount:float.",
    ),
    option("--weights/--no-weights", default=None, help="Take a third column as weight, or not."),
    option("--header/--no-header", default=None, help="The first line names columns, or not."),
    option("--comment", metavar="C", help="Pass over lines of text that begin with this character, as with # and %."),
    option("--string-ids", is_flag=True, help="Ids are strings; detected with --renumber or --bipartite."),
)


naming = option_group(
    "naming",
    dict,
    option(
        "--format",
        type=click.Choice(list(FORMATS)),
        help="Format of the input; detected from names and first bytes by default.",
    ),
    option("--any-suffix", is_flag=True, help="The output's name need not end in .h5."),
)


@click.command(name="convert", short_help="Turn raw edge lists into a graph file.")
@click.argument("inputs", nargs=-1, required=True, type=PLACE, metavar="INPUT...")
@click.argument("output", type=OUTPUT, metavar="OUTPUT.h5")
@naming
@reading
@converting
@lasting_console_options
def command(
    inputs: tuple[Place, ...],
    output: Path,
    naming: dict[str, Any],
    reading: IngestOptions,
    conversion: ConvertOptions,
    console: Console,
) -> None:
    """Turn raw edge lists into a graph file.

    INPUT is text (blanks, tabs or commas; # and % comments), CSV, MatrixMarket, GraphML, Parquet, a
    database (--query) or another of the formats of --format; text, CSV and the like may be gz, bz2, xz or
    zst; - is standard input. Several inputs make one graph. An input may be a folder, a pattern of
    names, a table of Delta Lake or Iceberg, and an address: s3://bucket/key, gs://bucket/key.

    Files named .csv or .tsv, quoted fields and --delimiter are CSV: only the delimiter divides fields.
    The first two columns are source and target. A header with names like source, src, from, target,
    dst, to, weight is understood; where it says otherwise, or there are four columns and more (three
    with other names), --columns is asked for. The report tells which columns were taken. A line of text
    with more or fewer columns than the first one is an error, unless --columns says which to read.

    \b
    Examples:
      penstock convert web-Google.txt.gz web.h5
      penstock convert roads.csv roads.h5 --columns from,to,metres --undirected
      penstock convert part-*.parquet all.h5 --direction both --dedupe first
      penstock convert mesh.graph.bz2 mesh.h5
      penstock convert s3://shop/payments/ payments.h5 --columns payer,payee,amount
      penstock convert shop.db follows.h5 --query "select follower, followed from follows"
      penstock convert ratings.csv ratings.h5 --bipartite --weights
      penstock convert payments.csv payments.h5 --columns payer,payee,amount --renumber
      penstock convert follows.csv social.h5 --vertices people.csv --renumber
      penstock convert friends.txt friends.h5 --format adjacency --renumber
      penstock convert follows.txt follows.h5 --direction both --order degree
      penstock convert --format csr offsets.bin neighbors.bin weights.bin graph.h5
      zcat edges.gz | penstock convert - graph.h5 --renumber --host-memory 1GiB
      penstock convert big.txt big.h5 --stripe /ssd0 --stripe /ssd1 --scratch /ssd2
    """
    vertices = conversion.vertices_file
    keep_inputs(output, [] if vertices is None else [vertices])
    keep_read(output, inputs)
    if not (naming["any_suffix"] or is_graph_name(output)):
        raise InputError(
            f"{output} does not end in .h5, and the last name is that of the graph file to write; add one, such as "
            f"{output.name.partition('.')[0] or 'graph'}.h5, or allow this one by --any-suffix"
        )
    check_target(output, force=conversion.force)
    from penstock.storage.ingest.open_source import open_source

    read = conversion.reading(reading, output)
    facts, lines = make_graph(lambda: open_source(inputs, naming["format"], read), output, conversion, console)
    console.answer({"command": "convert", **facts}, lines)
