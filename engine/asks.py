"""What a program asks of a session: directions, weights, how its updates are seen, and the memory that follows.

Owns the arithmetic of a run's memory before there is a run, so that a forecast and the run itself have the same.
Reads the row index where the sum needs it, never an edge. Refuses what the graph or the options rule out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from inspect import signature
from typing import TYPE_CHECKING, Any

from penstock.engine import cel, corners, rows
from penstock.engine.block import most_messages
from penstock.engine.equipment import Needs
from penstock.engine.placed import placed_bytes
from penstock.engine.program import Program, author_function, fields_of, needs_rows, weighted, words_of
from penstock.engine.program_check import synchronous_words
from penstock.engine.sides import Walk, walks
from penstock.engine.state import state_bytes
from penstock.storage.errors import InputError

if TYPE_CHECKING:
    from penstock.engine.config import Config
    from penstock.engine.direction import Direction
    from penstock.storage.graph import Adjacency, Graph
    from penstock.transfer.device import Device

PUSHED = ("compaction", *cel.NAMES)  # routes that bring the rows of active vertices only


@dataclass(frozen=True)
class Asks:
    """What one program asks for.

    asynchronous: updates are seen at once. apart: messages have a place of their own. state_bytes: vertex state of all
    devices, and what else the program holds that grows with the vertices.
    """

    program: Program
    directions: dict[Direction, tuple[Walk, ...]]
    weighted: bool
    asynchronous: bool
    apart: bool
    state_bytes: int
    needs: Needs


def asks_of(
    graph: Graph, config: Config, program: Program, shared: Mapping[str, Any], *, device: Device | None, more: int = 0
) -> Asks:
    """What a program asks for.

    shared: fields of the program whose phase it is. device: the one behind a link, if there is one. more: bytes that
    something else takes meanwhile.
    Raises InputError for a direction, mode or route in which the program cannot run on this graph.
    """
    words = synchronous_words(program) if program.self_combining else []
    asynchronous = program.self_combining and config.mode != "sync" and not words
    tolerant = asynchronous or shared or program.order_free or program.combine == "union"
    if config.mode == "async" and not tolerant:
        why = f"{', '.join(words)} would mean nothing there" if program.self_combining else "it is not self_combining"
        raise InputError(
            f"{type(program).__name__} cannot run asynchronously: {why}; leave --mode async out, or use --mode sync"
        )
    cel.check(program, config, asynchronous=asynchronous)
    apart = not asynchronous and program.combine not in ("union", "all")
    by_weight = weighted(program, graph)
    directions = _directions(graph, config, program)
    held = state_bytes(program, graph.vertices, graph.vertex_dtype, apart=apart)
    held += more + sum(array.nbytes for name, array in shared.items() if name not in fields_of(program))
    if program.combine == "all":
        held += rows.row_bytes(program, graph, messages_of(config, device))
    if author_function(program, "corner") is not None:
        held += corners.strip_bytes(graph, room_of(config, device), messages_of(config, device))
    if device is not None:
        held += placed_bytes(graph.vertices, graph.vertex_dtype)
    walked = [walk for walks_of in directions.values() for walk in walks_of]
    needs = Needs.of(graph, walked, by_weight, held * config.devices)
    if program.early_exit and not by_weight and "pull" in directions:
        needs = replace(needs, heads=True)
    return Asks(program, directions, by_weight, asynchronous, apart, held * config.devices, needs)


def room_of(config: Config, device: Device | None) -> int:
    """Bytes of the memory that holds the state: the device's, of which the host must have as much, or the host's."""
    ours = config.memory_bytes
    return ours if device is None else min(ours, device.memory_bytes)


def messages_of(config: Config, device: Device | None) -> int:
    """Messages that a buffer of whole rows should have room for."""
    return most_messages(None if device is None else room_of(config, device))


def name_of(graph: Graph) -> str:
    """How messages call a graph."""
    return "the graph" if graph.path is None else str(graph.path)


def check_weights(graph: Graph, program: Program) -> None:
    """Refuse a graph with weights below zero where the program accepts none."""
    if not (program.non_negative_weights and program.needs_weights) or graph.weight_range is None:
        return
    low = graph.weight_range[0]
    if not low >= 0:
        raise InputError(
            f"{name_of(graph)}: the smallest weight is {low:g}, and this program accepts non-negative weights "
            f"only; {_without_weights(program)}convert the input without weights, or with another column (--columns)"
        )


def _without_weights(program: Program) -> str:
    """The way out of programs that have a parameter `weight`."""
    takes = "weight" in signature(type(program)).parameters
    return "run with --no-weight (in Python weight=False), or " if takes else ""


def sent_along(graph: Graph, program: Program) -> Adjacency:
    """The adjacency whose rows are what each vertex sends along; the out-adjacency where nobody asks."""
    if program.along != "in" or not graph.directed:
        return graph.out
    if graph.into is None and "degree" in words_of(program):
        raise InputError(
            f"{name_of(graph)}: {type(program).__name__} asks for in-degrees, which this graph does not store; "
            "convert it with --direction both"
        )
    return graph.into or graph.out


def _directions(graph: Graph, config: Config, program: Program) -> dict[Direction, tuple[Walk, ...]]:
    """Which directions the run may walk, and how: only those get a share of the budget."""
    forced = "push" if config.route in PUSHED else config.direction
    found = walks(program.along, directed=graph.directed, both_stored=graph.into is not None)
    if forced not in ("auto", *found):
        raise InputError(
            f"{name_of(graph)}: {forced} needs in-edges, which this graph does not store; convert it with "
            f"--direction both, or run with --direction {next(iter(found))}"
        )
    if program.combine == "union":
        return {"push": found["push"]}
    if needs_rows(program):
        if "pull" not in found or len({walk.direction for walk in found["pull"]}) > 1:
            raise InputError(
                f"{name_of(graph)}: {type(program).__name__} works on whole rows, in-edges too, which this graph "
                "does not store; convert it with --direction both"
            )
        return {"pull": found["pull"]}
    if forced in found:
        return {forced: found[forced]}
    if program.everywhere and "pull" in found:
        return {"pull": found["pull"]}
    return found
