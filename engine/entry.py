"""The front door of the engine: `run(program, graph, **options)`."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any

from penstock.engine.checkpoint import Checkpoints
from penstock.engine.config import Config
from penstock.engine.program import Program
from penstock.engine.programs.table import named
from penstock.engine.result import Result
from penstock.engine.session import Session
from penstock.storage.errors import InputError
from penstock.storage.graph import Graph


def run(
    program: Program | type[Program] | str,
    graph: Graph | Path | str,
    *,
    checkpoint: Path | str | None = None,
    checkpoint_every: str | int | None = None,
    resume: bool = False,
    **options: Any,
) -> Result:
    """Run a program on a graph and return its Result.

    program: an instance, a class, or a name such as "bfs"; for the last two the program's own parameters are given
    among the options. graph: a Graph, or the path of a graph file. options: see `engine.config.Config`.
    checkpoint: a folder for checkpoints, which are removed when the run has ended. checkpoint_every: so many iterations
    (10), or a time ("30s", "5min"); by default 5 minutes. resume: go on from the newest one, if there is one.
    Raises InputError for bad options, parameters, graphs or checkpoints; RunError when a run fails.
    """
    ours = {entry.name for entry in fields(Config)}
    if isinstance(program, str):
        program = named(program)
    if isinstance(program, type):
        parameters = {name: options.pop(name) for name in list(options) if name not in ours}
        program = make(program, parameters)
    if checkpoint is None and (resume or checkpoint_every is not None):
        raise InputError("resume and checkpoint_every need checkpoint, the folder of the checkpoints")
    checkpoints = None if checkpoint is None else Checkpoints(checkpoint, checkpoint_every, resume=resume)
    opened = graph if isinstance(graph, Graph) else Graph.open(graph)
    with Session(opened, **options) as session:
        result = session.run(program, checkpoints)
    if checkpoints is not None:
        checkpoints.clear()
    return result


def make(program: type[Program], parameters: dict[str, Any]) -> Program:
    """An instance of a program from its parameters. Raises InputError naming what is missing or unknown."""
    signature = inspect.signature(program)
    try:
        signature.bind(**parameters)
    except TypeError as error:
        known = ", ".join(signature.parameters) or "none"
        raise InputError(f"{program.__name__}: {error}; its parameters are: {known}") from None
    return program(**parameters)
