"""The options of making a graph file, for `convert` and `generate`, and what is said of it."""

import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from penstock.storage.base.budget import default_host_memory, format_bytes, peak_resident_bytes
from penstock.storage.convert.sort.options import ConvertOptions, ConvertProgress, ConvertReport
from penstock.storage.ingest.core.source import Source
from penstock.storage.ingest.text.columns import TakenColumns
from penstock.tools.base.options import ANY, FOLDER, HOST_MEMORY, THREADS, option, option_group, stripe_option
from penstock.tools.base.output import Console, pairs, seconds
from penstock.tools.base.progress import ProgressBars, compiling_shown, progress


def _conversion(**given: Any) -> ConvertOptions:
    given["host_memory"] = given["host_memory"] or default_host_memory()
    given["stripes"] = tuple(given["stripes"])
    if str(given["windows"]).isdecimal():
        given["windows"] = int(given["windows"])
    return ConvertOptions(**given)


OPTIONS = (
    option(
        "--layout",
        type=click.Choice(["rows", "list"]),
        default="rows",
        help="rows: sorted by vertex. list: in the order of the input, in one pass, and open to 'penstock append'.",
    ),
    option(
        "--direction",
        type=click.Choice(["out", "both"]),
        default="out",
        help="Store out-edges alone, or in-edges too (both), so that programs can pull.",
    ),
    option("--undirected", is_flag=True, help="Each input edge goes both ways."),
    option(
        "--symmetrize",
        is_flag=True,
        help="Add the reverse of each edge, and keep one of parallel edges as --dedupe says.",
    ),
    option(
        "--dedupe",
        type=click.Choice(["first", "sum", "min", "max"]),
        help="Of parallel edges keep one; its weight is the first, the sum, the least, the most.",
    ),
    option("--drop-self-loops", is_flag=True, help="Leave out edges from a vertex to itself."),
    option(
        "--renumber/--no-renumber",
        default=None,
        help="The ids that occur are vertices, and answers have them: so it is by default. --renumber does it with a "
        "table, which takes strings and any ids; --no-renumber makes all ids from 0 to the largest vertices.",
    ),
    option(
        "--order",
        type=click.Choice(["none", "degree", "hubs", "paths"]),
        default="none",
        help="Order of vertices in the file: by id, by falling degree, the best-connected 8 % first, or along "
        "paths (depth first, components in topological order).",
    ),
    option(
        "--windows",
        metavar="auto|N",
        help="Store edges once more, by N ranges of the vertices that they lead to: runs with less memory than the "
        "values of vertices take then read each edge once. auto: as many as --host-memory asks for.",
    ),
    HOST_MEMORY,
    option("--scratch", type=FOLDER, help="Folder for temporary data; beside the output if none."),
    stripe_option(
        "Spread the file over these folders, each on a disk of its own. Repeatable. Folders inside that of the output "
        "may be moved and copied with it."
    ),
    option(
        "--encoding",
        type=click.Choice(["packed", "plain"]),
        default="packed",
        help="packed is small and fast; plain can be read by any HDF5 tool with the zstd plugin.",
    ),
    THREADS,
    option("--force", is_flag=True, help="Replace an existing output."),
)

VERTICES = option(
    "--vertices",
    "vertices_file",
    type=ANY,
    help="A file with a vertex id per line: exactly these exist, isolated ones too; an edge with another is refused. "
    "0:N is ids 0 to N-1. In a table (.csv, .tsv, .parquet, .graphml, .gml) other columns are properties, which "
    "run --join adds to answers.",
)

BIPARTITE = option(
    "--bipartite",
    is_flag=True,
    help="Sources and targets are apart, as users and items: an id on both sides is two vertices.",
)

making = option_group("conversion", _conversion, *OPTIONS)
"""Give a command that makes its own edges the options of a conversion, as a `ConvertOptions`."""

converting = option_group("conversion", _conversion, VERTICES, BIPARTITE, *OPTIONS)
"""The same for a command that reads edges, and perhaps vertices, from files."""


def watching(update: ProgressBars, note: Callable[[str], None]) -> Callable[[ConvertProgress], None]:
    """Turn conversion's progress records into a bar, and announce scratch space once."""
    announced: list[int] = []

    def watch(state: ConvertProgress) -> None:
        if state.scratch_bytes and not announced:
            announced.append(state.scratch_bytes)
            where = f" in {state.scratch}" if state.scratch else ""
            note(f"about {format_bytes(state.scratch_bytes)} of temporary space is used{where}")
        update.convert(state.stage, state.done, state.total)

    return watch


UNNAMED = "--no-renumber: ids that do not occur count as vertices"


def edgeless(count: int | None) -> str | None:
    """How many vertices have no edge, for people; None where all have one."""
    return f"{count:,} of the vertices" if count else None


def size_of(file_bytes: int, edges: int) -> str:
    """The size of a graph file, for people."""
    return format_bytes(file_bytes) + (f", {file_bytes / edges:.2f} bytes per edge" if edges else "")


def make_graph(
    opened: Callable[[], Source], output: Path, conversion: ConvertOptions, console: Console
) -> tuple[dict[str, Any], list[str]]:
    """Convert what a source gives into a graph file, with a progress bar; return what is said of it.

    The first is for machines, the second for people.
    """
    from penstock.storage.convert.convert import convert_opened

    began = time.perf_counter()
    with progress(console) as update, compiling_shown(update):
        watch = watching(update, console.note)
        report, source = convert_opened(opened, output, conversion, watch, console.note)
    if conversion.windows == "auto" and not report.windows:
        console.note(
            f"no windows: half of {format_bytes(conversion.host_memory)} has room for 8 bytes of each of the vertices"
        )
    facts = asdict(report)
    facts["stage_seconds"] = facts.pop("seconds")
    facts |= {
        "bytes_per_edge": report.output_bytes / report.edges if report.edges else None,
        "one_based": bool(getattr(source, "one_based", False)),
        "columns": [taken.facts() for taken in getattr(source, "columns_taken", ())],
        "seconds": time.perf_counter() - began,
        "peak_memory_bytes": peak_resident_bytes(),
    }
    return facts, _lines(facts, report, source, named=conversion.renumber is not False)


def _lines(facts: dict[str, Any], report: ConvertReport, source: Source, *, named: bool) -> list[str]:
    """The same for people; named: whether all vertices are named by the input."""
    stages = ", ".join(f"{stage} {seconds(t)}" for stage, t in report.seconds.items())
    stored = "" if report.edges == report.input_edges else f", {report.edges:,} stored"
    kind = "directed" if report.directed else "undirected"
    isolated = edgeless(report.without_edges)
    if isolated is not None and not (named or getattr(source, "named", False)):
        isolated += f" ({UNNAMED})"
    third = getattr(source, "passed_over", None)
    unasked = None if third is None else f"none; the first edge has a third column, {third}: --weights takes it"
    taken: tuple[TakenColumns, ...] = getattr(source, "columns_taken", ())  # one for every input that differs
    columns = [one.told() + (f" ({Path(one.file).name})" if len(taken) > 1 else "") for one in taken]
    rows: list[tuple[str, object]] = [
        ("vertices", f"{report.vertices:,}"),
        ("no edge", isolated),
        ("edges", f"{report.input_edges:,} ({kind}{stored})"),
        ("weights", report.weight_dtype or unasked),
        *(("columns", told) for told in columns),
        ("properties", ", ".join(f"{name} ({kind})" for name, kind in report.properties.items()) or None),
        ("of edges", ", ".join(f"{name} ({kind})" for name, kind in report.edge_properties.items()) or None),
        ("ids", "from 0: vertex 1 of the input is 0 here" if facts["one_based"] else None),
        ("windows", f"{report.windows}, of {report.window_vertices:,} vertices" if report.windows else None),
        ("size", size_of(report.output_bytes, report.edges)),
        ("time", f"{seconds(facts['seconds'])} ({stages})"),
        ("scratch", format_bytes(report.scratch_bytes) if report.scratch_bytes else None),
        ("peak memory", format_bytes(facts["peak_memory_bytes"])),
    ]
    return [f"{report.output}", *pairs(rows, indent="  ")]
