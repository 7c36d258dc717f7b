"""`penstock bench`: measurements of this machine, and of Penstock against its peers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from penstock.storage.base.atomic import scratch_folder
from penstock.storage.base.budget import cores, format_bytes
from penstock.storage.base.errors import InputError
from penstock.tools.base.options import ANY, FOLDER, SIZE, console_options
from penstock.tools.base.output import Console, seconds, table
from penstock.tools.base.progress import ProgressBars, progress
from penstock.tools.commands.bench_compare import command as compare
from penstock.tools.commands.bench_routes import command as routes

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.storage.base.measurement import RateSample
    from penstock.tools.bench.disk import RawRead, SweepPart

DEFAULT_SIZE = 1 << 30
RAW_SHARE = 0.5
"""Of the time, for raw reads of a graph file; the rest is for a sweep."""
PART_NAMES = {
    "best": "best raw reads",
    "raw": "a sweep's reads, raw",
    "payloads": "a sweep, payloads",
    "decoded": "a sweep, decoding",
}


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
    from penstock.storage.read.probes import compare_encodings

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
    from penstock.storage.read.probes import graph_neighbors
    from penstock.tools.base.graph_making import make_graph

    for path in graphs:
        yield path.stem, graph_neighbors(Graph.open(path))
    if not graphs:
        path = scratch / f"rmat{scale}.h5"
        make_graph(lambda: rmat(scale), path, ConvertOptions(), Console(quiet=True))
        yield path.stem, graph_neighbors(Graph.open(path))


def _gigabytes(rate: float) -> str:
    return f"{rate / 1e9:.2f} GB/s"


@command.command()
@click.argument("graph", type=ANY, metavar="[GRAPH.h5]", required=False)
@click.option("--folder", type=FOLDER, help="On the disk to measure, if no graph is named (this folder).")
@click.option("--size", type=SIZE, help="Size of the test file there (1GiB).")
@click.option(
    "--seconds", "limit", type=click.FloatRange(0.1), default=10.0, show_default=True, help="Seconds to read, in all."
)
@click.option("--threads", type=click.IntRange(1), help="Threads that decode (one per core).")
@console_options
def disk(
    graph: Path | None, folder: Path | None, size: int | None, limit: float, threads: int | None, console: Console
) -> None:
    """How fast the disk gives data: direct reads, by order, size and reads in flight.

    Of a GRAPH.h5 the file itself is read, with all its shards, at places spread over it: what a run that reads it from
    disk will see. Then the reads of a sweep, raw and by the reader that a run has; the last line tells whether the disk
    or the reader limits. Without a graph a test file is written and read: new and small, it may be faster than a large
    old one.

    \b
    Examples:
      penstock bench disk web.h5
      penstock bench disk web.h5 --seconds 30 --json
      penstock bench disk --folder /mnt/ssd --size 8GiB
    """
    if graph is not None and (folder is not None or size is not None):
        raise InputError("a graph is named: --folder and --size are for a test file; leave them out")
    facts: dict[str, Any] = {"command": "bench disk"}
    with progress(console) as update:
        if graph is None:
            lines = _new_file(folder or Path(), size or DEFAULT_SIZE, limit, facts, update)
        else:
            lines = _graph_file(graph, limit, threads or cores(), facts, update)
    console.answer(facts, lines)


def _new_file(folder: Path, size: int, limit: float, facts: dict[str, Any], update: ProgressBars) -> list[str]:
    from penstock.storage.format.direct_io import OpenFile
    from penstock.storage.read.disk_probe import direct_files, whole_file, write_probe_file
    from penstock.tools.bench.disk import raw_reads

    with scratch_folder(folder) as scratch:
        path = scratch / "probe"
        written = write_probe_file(path, size, lambda done: update("writing", done, size, "bytes"))
        with direct_files([OpenFile(path)]) as files:
            raw = raw_reads(files, [whole_file(0, size)], limit, _steps(update))
    facts |= {"write_bytes_per_second": size / written} | _raw_facts(raw)
    return [*_tables(raw), f"writing {format_bytes(size)} took {seconds(written)}"]


def _graph_file(path: Path, limit: float, threads: int, facts: dict[str, Any], update: ProgressBars) -> list[str]:
    from penstock.storage.format.graph import Graph
    from penstock.storage.read.disk_probe import direct_files, edge_stretches
    from penstock.tools.bench.disk import raw_reads, sweep_parts, verdict

    graph, step = Graph.open(path), _steps(update)
    if not graph.edges:
        raise InputError(f"{path} holds no edges to read")
    stretches = edge_stretches(graph)
    size = sum(stretch.needed for stretch in stretches)
    with direct_files(graph.open_files) as files:
        raw = raw_reads(files, stretches, limit * RAW_SHARE, step)
        best = max(raw, key=lambda one: one.sample.rate)
        parts = sweep_parts(graph, files, best, (limit * (1 - RAW_SHARE), threads), step)
    amount = sum(one.sample.amount for one in raw) + sum(part.read.amount for part in parts.values())
    facts |= {"file": path, "edge_bytes": size, "bytes": amount, "threads": threads} | _raw_facts(raw)
    facts["sweep"] = [
        {"name": name, "read_bytes": part.read_bytes, "in_flight": part.read.at, "cpu_share": part.cpu}
        | _rate_facts(part.read)
        for name, part in parts.items()
    ]
    facts["verdict"] = verdict(parts)
    read = f"{path}: {format_bytes(size)} of edges, {format_bytes(amount)} read"
    return [read, "", *_tables(raw), *_part_table(parts, best), "", verdict(parts)]


def _steps(update: ProgressBars) -> Callable[[], None]:
    steps = count(1)
    return lambda: update("measuring", next(steps), None, "measurements")


def _raw_facts(raw: Sequence[RawRead]) -> dict[str, Any]:
    return {
        "read_bytes_per_second": max(one.sample.rate for one in raw),
        "reads": [
            {"order": one.order, "block_bytes": one.block_bytes, "in_flight": one.sample.at} | _rate_facts(one.sample)
            for one in raw
        ],
    }


def _rate_facts(sample: RateSample) -> dict[str, Any]:
    return {"bytes": sample.amount, "seconds": sample.seconds, "bytes_per_second": sample.rate}


def _tables(raw: Sequence[RawRead]) -> list[str]:
    """A table for each order: rates by reads in flight (rows) and size."""
    by = {(one.order, one.sample.at, one.block_bytes): f"{one.sample.rate / 1e9:.2f}" for one in raw}
    depths, sizes = (sorted(set(found)) for found in ((one.sample.at for one in raw), (one.block_bytes for one in raw)))
    lines: list[str] = []
    for order in dict.fromkeys(one.order for one in raw):
        heads = [f"GB/s {order}, reads in flight", *map(format_bytes, sizes)]
        lines += [*table(heads, [[at, *(by.get((order, at, size), "–") for size in sizes)] for at in depths]), ""]
    return lines


def _part_table(parts: Mapping[str, SweepPart], best: RawRead) -> list[str]:
    names = PART_NAMES | {"best": f"{PART_NAMES['best']}, {best.order}"}
    most = parts["best"].read.rate
    cells = [
        [
            names[name],
            format_bytes(part.read_bytes),
            part.read.at,
            f"{part.read.rate / 1e9:.2f}",
            f"{part.read.rate / most:.0%}",
            f"{part.cpu:.0%}",
        ]
        for name, part in parts.items()
    ]
    return table(["in turns", "reads of", "in flight", "GB/s", "of best", "of all cores"], cells)
