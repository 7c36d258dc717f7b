"""An iteration in which rows that change follow the carriers that brought them (route `cel`).

    carrier t arrives -> its kernel -> which of its rows have changed? -> they send again, while carrier t + 1 is copied

WolfGraph's Concatenated Edge List (Zhu et al., FGCS 2020) sends rows together with the next partition that is copied.
Here they do not travel again: a carrier is a partition copied whole, and while the next one is on its way, what is
pending and due of its rows is listed on the device and sent from its memory, some rounds. The host waits for nothing.
An edge can be applied several times an iteration: a record of route `cel` says how many. Refuses programs that may not
see their own updates: only pushes of asynchronous programs can.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.program.program import author_function
from penstock.storage.base.errors import InputError
from penstock.transfer.routes.cel import name as route

MOST_ROUNDS = 8
LOADED = ("filter", "resident")
"""Routes whose views can hold the edges of inactive rows too, so that rows that become pending can be walked."""

if TYPE_CHECKING:
    from penstock.engine.execution.run_parts import RunParts
    from penstock.engine.program.program import Program
    from penstock.engine.resources.config import Config
    from penstock.engine.resources.edge_stream import EdgeStream
    from penstock.engine.state.state import Frontier
    from penstock.transfer.values.view import View


def check(program: Program, config: Config, *, asynchronous: bool) -> None:
    """Refuse a program, or options, with which nothing could follow its carriers. Raises InputError."""
    if config.route != route:
        return
    name = type(program).__name__
    way_out = "use --route auto, or a program such as sssp, widest or reachability"
    if not asynchronous:
        why = "and it runs synchronously here"
    elif author_function(program, "send") is not None:
        why = "and what it sends is computed once an iteration, by its send()"
    elif program.along == "both":
        why = "and it sends against the edges too"
    elif config.direction == "pull":
        why, way_out = "and it is to pull", "leave out --direction pull, or use --route auto"
    else:
        return
    raise InputError(f"{name} cannot run by route {config.route}, which serves asynchronous pushes, {why}; {way_out}")


def begin(run: RunParts, stream: EdgeStream, frontier: Frontier) -> None:
    """Say whether a push that begins now brings partitions whole, for rows to follow: where that is forced, or pays."""
    stream.carries = not stream.resident and (stream.pipeline.options.route == route or _pays(run, stream, frontier))


def _pays(run: RunParts, stream: EdgeStream, frontier: Frontier) -> bool:
    alone = run.place[1] == 1 and not run.against and run.state.pages is None and not run.local_rounds
    if not (alone and run.asynchronous and not run.author.has_send):
        return False
    sent = _sent_by(run) + frontier.edges
    pays = stream.carriers_pay(frontier, sent, passed=run.passed is not None)
    if pays and run.passed is None:
        run.passed = 0 if stream.from_disk else sent
    return pays


def _sent_by(run: RunParts) -> int:
    """Edges of the run's frontiers so far."""
    return run.graph.edges - run.unexplored


def end(run: RunParts) -> None:
    """Remember what the run sent, with or without carriers, for the next one of its program."""
    stream = run.streams.get("push")
    if stream is not None and run.asynchronous:
        stream.feedback.carriers.end(_sent_by(run), run.passed)


def rounds(run: RunParts, stream: EdgeStream, view: View) -> int:
    """How often rows of a view may follow, at most; they end where nothing is pending."""
    if view.record.route not in LOADED or stream.resident or not stream.has_all(view):
        return 0
    return MOST_ROUNDS if stream.carries else run.local_rounds
