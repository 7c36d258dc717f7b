"""Owns the options of making a graph file, for `convert` and `generate`, and how it is reported.

Refuses to know where edges come from; storage converts, and its report becomes words and numbers.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from penstock.storage.base.budget import default_host_memory, format_bytes, peak_resident_bytes
from penstock.storage.convert.sort.options import ConvertOptions, ConvertProgress, ConvertReport
from penstock.storage.ingest.core.source import Source
from penstock.storage.ingest.text.columns import TakenColumns
from penstock.tools.base.options import ANY, FOLDER, HOST_MEMORY, THREADS, option, stripe_option, taking
from penstock.tools.base.output import Speaker, pairs, seconds
from penstock.tools.base.progress import Update, progress

STAGES = {
    "read": "reading",
    "map": "numbering",
    "out": "writing out-edges",
    "in": "writing in-edges",
}


def _conversion(**given: Any) -> ConvertOptions:
    given["host_memory"] = given["host_memory"] or default_host_memory()
    given["stripes"] = tuple(given["stripes"])
    return ConvertOptions(**given)


OPTIONS = (
    option(
        "--direction",
        type=click.Choice(["out", "both"]),
        default="out",
        help="Adjacencies to store: out-edges, or in-edges too (so that programs can pull).",
    ),
    option("--undirected", is_flag=True, help="Each input edge goes both ways."),
    option("--symmetrize", is_flag=True, help="Add the reverse of each edge, then --dedupe."),
    option(
        "--dedupe",
        type=click.Choice(["first", "sum", "min", "max"]),
        help="Of parallel edges keep one; its weight is the first, the sum, the least, the most.",
    ),
    option("--drop-self-loops", is_flag=True, help="Leave out edges from a vertex to itself."),
    option("--renumber", is_flag=True, help="For sparse or string ids: number them 0..n-1, keep the map."),
    option("--hub-sort", is_flag=True, help="Put the best-connected 8 % of vertices first."),
    HOST_MEMORY,
    option("--scratch", type=FOLDER, help="Folder for temporary data; beside the output if none."),
    stripe_option("Spread the chunks over these folders, one disk each. Repeatable."),
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
    help="A file with a vertex id per line: exactly these exist, isolated ones too; an edge with another is refused.",
)

BIPARTITE = option(
    "--bipartite",
    is_flag=True,
    help="Ids of sources and of targets are two spaces: number both, targets behind sources.",
)

making = taking("conversion", _conversion, *OPTIONS)
"""Give a command that makes its own edges the options of a conversion, as a `ConvertOptions`."""

converting = taking("conversion", _conversion, VERTICES, BIPARTITE, *OPTIONS)
"""The same for a command that reads edges, and perhaps vertices, from files."""


def watching(update: Update, note: Callable[[str], None]) -> Callable[[ConvertProgress], None]:
    """Turn conversion's progress records into a bar, and announce scratch space once."""
    announced: list[int] = []

    def watch(state: ConvertProgress) -> None:
        if state.scratch_bytes and not announced:
            announced.append(state.scratch_bytes)
            where = f" in {state.scratch}" if state.scratch else ""
            note(f"about {format_bytes(state.scratch_bytes)} of temporary space is used{where}")
        unit = "bytes" if state.stage == "read" else "edges"
        update(STAGES[state.stage], state.done, state.total, unit)

    return watch


@dataclass(frozen=True)
class Made:
    """A conversion's report with what the command line adds to it; one_based: whether the input counts from 1.

    passed_over: what may have been the first edge's weight, which was not asked for. columns: which columns of a
    table were taken, for every input that differs. renumbered: whether only vertices that the input names exist.
    """

    report: ConvertReport
    total_seconds: float
    peak_memory_bytes: int
    one_based: bool = False
    passed_over: str | None = None
    columns: tuple[TakenColumns, ...] = ()
    renumbered: bool = False

    def facts(self) -> dict[str, Any]:
        """For machines."""
        facts = asdict(self.report)
        facts["stage_seconds"] = facts.pop("seconds")
        return {
            **facts,
            "bytes_per_edge": self.bytes_per_edge,
            "one_based": self.one_based,
            "columns": [taken.facts() for taken in self.columns],
            "seconds": self.total_seconds,
            "peak_memory_bytes": self.peak_memory_bytes,
        }

    def lines(self) -> list[str]:
        """For people."""
        report = self.report
        stages = ", ".join(f"{stage} {seconds(t)}" for stage, t in report.seconds.items())
        scratch = format_bytes(report.scratch_bytes) if report.scratch_bytes else None
        stored = "" if report.edges == report.input_edges else f", {report.edges:,} stored"
        kind = "directed" if report.directed else "undirected"
        return [
            f"{report.output}",
            *pairs(
                [
                    ("vertices", f"{report.vertices:,}"),
                    ("no edge", self._edgeless()),
                    ("edges", f"{report.input_edges:,} ({kind}{stored})"),
                    ("weights", report.weight_dtype or self._unasked()),
                    *(("columns", self._told(taken)) for taken in self.columns),
                    ("ids", "from 0: vertex 1 of the input is 0 here" if self.one_based else None),
                    ("size", f"{format_bytes(report.output_bytes)}{self._per_edge()}"),
                    ("time", f"{seconds(self.total_seconds)} ({stages})"),
                    ("scratch", scratch),
                    ("peak memory", format_bytes(self.peak_memory_bytes)),
                ],
                indent="  ",
            ),
        ]

    @property
    def bytes_per_edge(self) -> float | None:
        """Bytes of the graph file for each edge stored in the out-adjacency."""
        return self.report.output_bytes / self.report.edges if self.report.edges else None

    def _edgeless(self) -> str | None:
        found = edgeless(self.report.without_edges)
        return found if found is None or self.renumbered else f"{found} ({UNNAMED})"

    def _unasked(self) -> str | None:
        number = self.passed_over
        return None if number is None else f"none; the first edge has a third column, {number}: --weights takes it"

    def _told(self, taken: TakenColumns) -> str:
        return taken.told() if len(self.columns) == 1 else f"{taken.told()} ({Path(taken.file).name})"

    def _per_edge(self) -> str:
        return "" if self.bytes_per_edge is None else f", {self.bytes_per_edge:.2f} bytes per edge"


UNNAMED = "ids that no edge has count as vertices; --renumber leaves out those that the input does not name"


def edgeless(count: int | None) -> str | None:
    """How many vertices have no edge, for people; None where all have one."""
    return f"{count:,} of the vertices" if count else None


def make_graph(open_source: Callable[[], Source], output: Path, conversion: ConvertOptions, speaker: Speaker) -> Made:
    """Convert what a source gives into a graph file, with a progress bar."""
    from penstock.storage.convert.convert import convert

    began = time.perf_counter()
    with progress(quiet=speaker.silent) as update:
        source = open_source()
        report = convert(source, output, conversion, watching(update, speaker.note))
    one_based = bool(getattr(source, "one_based", False))
    passed_over = getattr(source, "passed_over", None)
    columns = tuple(getattr(source, "columns_taken", ()))
    renumbered = conversion.renumber or conversion.bipartite or conversion.vertices_file is not None
    renumbered = renumbered or bool(getattr(source, "named", False))
    peak, taken = peak_resident_bytes(), time.perf_counter() - began
    return Made(report, taken, peak, one_based, passed_over, columns, renumbered)
