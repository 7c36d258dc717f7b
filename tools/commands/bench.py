"""`penstock bench`: measurements of this machine, and of Penstock against its peers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from penstock.storage.base.atomic import scratch_folder
from penstock.storage.base.budget import format_bytes
from penstock.tools.base.options import ANY, FOLDER, SIZE, console_options
from penstock.tools.base.output import Console, seconds, table
from penstock.tools.base.progress import progress
from penstock.tools.commands.bench_compare import command as compare
from penstock.tools.commands.bench_routes import command as routes

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.storage.base.rate_sample import RateSample

DEPTHS = (1, 2, 4, 8, 16)
BLOCKS = (128 << 10, 1 << 20, 4 << 20)


@click.group(name="bench", short_help="Measure this machine, and Penstock against others.")
def command() -> None:
    """Measure this machine, and Penstock against others.

    \b
    Examples:
      penstock bench disk
      penstock bench encodings web.h5
      penstock bench compare --scale 20
      penstock bench compare web.h5
      penstock bench routes web.h5
    """


command.add_command(compare)
command.add_command(routes)


@command.command()
@click.option("--folder", type=FOLDER, default=".", show_default=True, help="On the disk to measure.")
@click.option("--size", type=SIZE, default="1GiB", show_default=True, help="Size of the test file.")
@console_options
def disk(folder: Path, size: int, console: Console) -> None:
    """How fast the disk gives data: direct reads, by block size and reads in flight.

    \b
    Examples:
      penstock bench disk
      penstock bench disk --folder /mnt/ssd --size 8GiB --json
    """
    from penstock.storage.read.probes import disk_rate, write_probe_file

    size = max(size, BLOCKS[-1])
    with scratch_folder(folder) as scratch, progress(quiet=console.silent) as update:
        probe = scratch / "probe"
        written = write_probe_file(probe, size, lambda done: update("writing", done, size, "bytes"))
        rates: list[tuple[int, RateSample]] = []
        for block, depth in ((b, d) for b in BLOCKS for d in DEPTHS):
            rates.append((block, disk_rate([probe], block, depth, size)))
            update("measuring", len(rates), len(BLOCKS) * len(DEPTHS), "measurements")
    facts = {
        "command": "bench disk",
        "write_bytes_per_second": size / written,
        "read_bytes_per_second": max(rate.rate for _, rate in rates),
        "reads": [
            {
                "block_bytes": block,
                "in_flight": rate.at,
                "bytes": rate.amount,
                "seconds": rate.seconds,
                "bytes_per_second": rate.rate,
            }
            for block, rate in rates
        ],
    }
    by_depth = {depth: [_gigabytes(rate.rate) for _, rate in rates if rate.at == depth] for depth in DEPTHS}
    heads = ["reads in flight", *(f"{format_bytes(block)} blocks" for block in BLOCKS)]
    lines = table(heads, [[depth, *cells] for depth, cells in by_depth.items()])
    lines.append(f"writing {format_bytes(size)} took {seconds(written)}")
    console.answer(facts, lines)


@command.command()
@click.argument("graphs", nargs=-1, type=ANY, metavar="[GRAPH.h5]...")
@click.option("--scale", type=int, default=18, show_default=True, help="R-MAT, if no graph is named.")
@console_options
def encodings(graphs: tuple[Path, ...], scale: int, console: Console) -> None:
    """Compare encodings of edges: bytes per edge, speed of one core, seconds of a sweep.

    A sweep is 10^9 edges from a disk of 3 GB/s, with 2 and with 16 cores that decode.

    \b
    Examples:
      penstock bench encodings
      penstock bench encodings web.h5 roads.h5 --json
    """
    from penstock.storage.read.encoding_benchmark import compare_encodings

    with scratch_folder() as scratch, progress(quiet=console.silent) as update:
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
            f"{row['sweep_seconds_2']:.2f}",
            f"{row['sweep_seconds_16']:.2f}",
        ]
        for row in rows
    ]
    heads = ["encoding", "bytes/edge", "encode", "decode", "sweep, 2 cores", "16 cores"]
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
