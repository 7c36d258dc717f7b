"""The front door of the engine: `run(program, graph, **options)`."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any

from penstock.engine.config import Config
from penstock.engine.program import Program
from penstock.engine.programs.table import named
from penstock.engine.result import Result
from penstock.engine.session import Session
from penstock.storage.errors import InputError
from penstock.storage.graph import Graph


def run(program: Program | type[Program] | str, graph: Graph | Path | str, **options: Any) -> Result:
    """Run a program on a graph and return its Result.

    program: an instance, a class, or a name such as "bfs"; for the last two the program's own parameters are given
    among the options. graph: a Graph, or the path of a graph file. options: see `engine.config.Config`.
    Raises InputError for bad options, parameters or graphs; RunError when a run fails.
    """
    ours = {entry.name for entry in fields(Config)}
    if isinstance(program, str):
        program = named(program)
    if isinstance(program, type):
        parameters = {name: options.pop(name) for name in list(options) if name not in ours}
        program = make(program, parameters)
    opened = graph if isinstance(graph, Graph) else Graph.open(graph)
    with Session(opened, **options) as session:
        return session.run(program)


def make(program: type[Program], parameters: dict[str, Any]) -> Program:
    """An instance of a program from its parameters. Raises InputError naming what is missing or unknown."""
    signature = inspect.signature(program)
    try:
        signature.bind(**parameters)
    except TypeError as error:
        known = ", ".join(signature.parameters) or "none"
        raise InputError(f"{program.__name__}: {error}; its parameters are: {known}") from None
    return program(**parameters)
