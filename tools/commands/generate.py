"""`penstock generate`: graphs made from a seed, as graph files or raw edge lists."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from penstock.storage.base.atomic import check_target
from penstock.storage.base.budget import format_bytes, peak_resident_bytes
from penstock.storage.base.errors import InputError
from penstock.storage.convert.sort.options import ConvertOptions
from penstock.tools.base.graph_making import make_graph, making
from penstock.tools.base.options import OUTPUT, WEIGHT_RANGE, is_graph_name, lasting_console_options
from penstock.tools.base.output import Console, pairs, seconds
from penstock.tools.base.progress import compiling_shown, progress

if TYPE_CHECKING:
    from penstock.storage.ingest.synthetic import SyntheticSource

ANYWHERE = {"force", "threads", "host_memory"}
"""Conversion's options that an edge list has a use for, too."""


@click.group(name="generate", short_help="Make a graph from a seed.")
def command() -> None:
    """Make a graph from a seed: the same one on any machine with any number of threads.

    The name of --output says what is written: a graph file (.h5) with all options of `convert`, or
    an edge list, text (.txt, .txt.gz) or little-endian pairs (.bin).

    \b
    Examples:
      penstock generate rmat --scale 22 --edge-factor 16 --seed 1 --output rmat22.h5
      penstock generate grid --rows 2000 --columns 3000 --output roads.h5
      penstock generate web --vertices 1000000 --output web.txt.gz
    """


def _model(described: Callable[[], None]) -> click.Command:
    """A subcommand of a documented name with options: those of the function of that name in `ingest.synthetic`."""

    @lasting_console_options
    def act(output: Path, conversion: ConvertOptions, console: Console, **model: Any) -> None:
        from penstock.storage.ingest import synthetic

        check_target(output, force=conversion.force)
        began = time.perf_counter()
        source = getattr(synthetic, described.__name__)(**model)
        if conversion.threads is not None:
            source.threads = conversion.threads
        if is_graph_name(output):
            facts, lines = make_graph(lambda: source, output, conversion, console)
        else:
            facts, lines = _write_list(source, output, conversion, console)
        facts |= {"command": "generate", "model": source.name, "seconds": time.perf_counter() - began}
        console.answer(facts, [f"{source.name}", *lines])

    outputting = click.option("--output", type=OUTPUT, required=True, help="File to write: .h5, .txt, .txt.gz or .bin.")
    acting: Any = outputting(making(act))
    given: Any = described
    options = [*acting.__click_params__, *given.__click_params__]
    functools.update_wrapper(acting, described)
    acting.__click_params__ = options
    return command.command(name=described.__name__)(acting)


def _write_list(
    source: SyntheticSource, output: Path, conversion: ConvertOptions, console: Console
) -> tuple[dict[str, Any], list[str]]:
    """Write a list of edges; return what to say about it. Raises InputError for options of graph files."""
    from penstock.storage.ingest.edge_list_writer import write_edges

    for field in fields(ConvertOptions):
        if field.name not in ANYWHERE and getattr(conversion, field.name) != field.default:
            name = {"vertices_file": "vertices", "stripes": "stripe"}.get(field.name, field.name)
            raise InputError(
                f"--{name.replace('_', '-')} says nothing about an edge list; name the output "
                f"{output.with_suffix('.h5').name} to make a graph file"
            )
    began = time.perf_counter()
    with progress(console) as update, compiling_shown(update):
        size = write_edges(
            source,
            output,
            force=conversion.force,
            threads=conversion.threads,
            progress=lambda edges: update("writing", edges, source.edges, "edges"),
        )
    took = time.perf_counter() - began
    facts = {
        "output": output,
        "vertices": source.known_vertices,
        "edges": source.edges,
        "output_bytes": size,
        "peak_memory_bytes": peak_resident_bytes(),
    }
    rows = [
        ("vertices", f"{source.known_vertices:,}"),
        ("edges", f"{source.edges:,}"),
        ("size", format_bytes(size)),
        ("time", seconds(took)),
    ]
    return facts, [str(output), *pairs(rows, indent="  ")]


SEED = click.option("--seed", type=int, default=1, show_default=True, help="Another, other graph.")
WEIGHTS = click.option("--weights", type=WEIGHT_RANGE, help="Random whole weights, e.g. 1..63.")
FACTOR = click.option("--edge-factor", type=int, default=16, show_default=True, help="Edges per vertex.")


@_model
@click.option("--scale", type=int, required=True, help="2^SCALE vertices.")
@FACTOR
@SEED
@WEIGHTS
@click.option(
    "--quadrants",
    type=float,
    nargs=3,
    default=(0.57, 0.19, 0.19),
    show_default=True,
    help="Probabilities a b c of the four quadrants; d is the rest.",
)
@click.option(
    "--scramble/--no-scramble",
    default=True,
    show_default=True,
    help="Renumber the vertices by a random bijection, or leave the hubs in front.",
)
def rmat() -> None:
    """R-MAT, as in the Graph500: skewed degrees, duplicates and self-loops kept.

    
    Examples:
      penstock generate rmat --scale 20 --output rmat20.h5
      penstock generate rmat --scale 24 --weights 1..63 --seed 7 --direction both --output r.h5
      penstock generate rmat --scale 22 --output rmat22.txt.gz
    """


@_model
@click.option("--vertices", type=int, required=True, help="Number of vertices.")
@click.option("--edges", type=int, required=True, help="Number of edges.")
@SEED
@WEIGHTS
def uniform() -> None:
    """Both ends of every edge drawn evenly.

    
    Examples:
      penstock generate uniform --vertices 1000000 --edges 16000000 --output uniform.h5
    """


@_model
@click.option("--rows", type=int, required=True, help="Rows of vertices.")
@click.option("--columns", type=int, required=True, help="Columns of vertices.")
@SEED
@click.option("--weights", type=WEIGHT_RANGE, default="1..255", show_default=True, help="Random weights.")
def grid() -> None:
    """A road-like grid: undirected, weighted, low degrees, long diameter.

    
    Examples:
      penstock generate grid --rows 2000 --columns 3000 --output roads.h5
    """


@_model
@click.option("--vertices", type=int, required=True, help="Number of pages.")
@FACTOR
@SEED
@WEIGHTS
def web() -> None:
    """Web-like: pages copy links from their neighbors, and link near more often than far.

    
    Examples:
      penstock generate web --vertices 1000000 --edge-factor 20 --output web.h5
    """
