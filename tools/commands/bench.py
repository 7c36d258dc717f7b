"""`penstock bench`: measurements of this machine, and of Penstock against its peers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from penstock.storage.base.atomic import scratch_folder
from penstock.tools.base.options import ANY, console_options
from penstock.tools.base.output import Console, table
from penstock.tools.base.progress import progress
from penstock.tools.commands.bench_compare import command as compare
from penstock.tools.commands.bench_disk import command as disk
from penstock.tools.commands.bench_routes import command as routes

if TYPE_CHECKING:
    from numpy.typing import NDArray

DEPTHS = (1, 2, 4, 8, 16)
BLOCKS = (128 << 10, 1 << 20, 4 << 20)


@click.group(name="bench", short_help="Measure this machine, and Penstock against others.")
def command() -> None:
    """Measure this machine, and Penstock against others.

    \b
    Examples:
      penstock bench disk web.h5
      penstock bench encodings web.h5
      penstock bench compare --scale 20
      penstock bench compare web.h5
      penstock bench routes web.h5
    """


command.add_command(compare)
command.add_command(disk)
command.add_command(routes)


@command.command()
@click.argument("graphs", nargs=-1, type=ANY, metavar="[GRAPH.h5]...")
@click.option("--scale", type=int, default=18, show_default=True, help="R-MAT, if no graph is named.")
@console_options
def encodings(graphs: tuple[Path, ...], scale: int, console: Console) -> None:
    """Compare encodings of edges: bytes per edge, speed of one core, seconds of a sweep.

    Speeds are in bytes of decoded ids; "to payloads" is reading without unpacking. A sweep is 10^9 edges from a disk of
    3 GB/s, with 2 and with 16 cores that decode.

    \b
    Examples:
      penstock bench encodings
      penstock bench encodings web.h5 roads.h5 --json
    """
    from penstock.storage.read.encoding_benchmark import compare_encodings

    with scratch_folder() as scratch, progress(console) as update:
        rows: list[dict[str, Any]] = []
        for name, neighbors in _neighbors(graphs, scale, scratch):
            for row in map(asdict, compare_encodings(name, neighbors)):
                rows.append(row)
                update(f"{name}: {row['encoding']}", len(rows), None, "measurements")
    cells = [
        [
            f"{row['graph']} {row['encoding']} -{row['level']}",
            f"{row['bytes_per_edge']:.2f}",
            _gigabytes(row["encode_bytes_per_second"]),
            _gigabytes(row["decode_bytes_per_second"]),
            "" if row["payload_bytes_per_second"] is None else _gigabytes(row["payload_bytes_per_second"]),
            f"{row['sweep_seconds_2']:.2f}",
            f"{row['sweep_seconds_16']:.2f}",
        ]
        for row in rows
    ]
    heads = ["encoding", "bytes/edge", "encode", "decode", "to payloads", "sweep, 2 cores", "16 cores"]
    console.answer({"command": "bench encodings", "rows": rows}, table(heads, cells))


def _neighbors(graphs: tuple[Path, ...], scale: int, scratch: Path) -> Iterator[tuple[str, NDArray[Any]]]:
    """Names and neighbors of the graphs, or of a generated one."""
    from penstock.storage.convert.sort.options import ConvertOptions
    from penstock.storage.format.graph import Graph
    from penstock.storage.ingest.synthetic import rmat
    from penstock.storage.read.encoding_benchmark import graph_neighbors
    from penstock.tools.base.graph_making import make_graph

    for path in graphs:
        yield path.stem, graph_neighbors(Graph.open(path))
    if not graphs:
        path = scratch / f"rmat{scale}.h5"
        make_graph(lambda: rmat(scale), path, ConvertOptions(), Console(quiet=True))
        yield path.stem, graph_neighbors(Graph.open(path))


def _gigabytes(rate: float) -> str:
    return f"{rate / 1e9:.2f} GB/s"
