"""What a loop is between two iterations, as numbers and arrays; and a new loop brought to where another was.

Accumulators hold the combiner's identity then (but where triangles have met in part), and indexes and caches come from
the graph: neither is kept. Arrays are those of host memory whatever the device, so that a run may go on on another one.
Owns the names in a checkpoint of a loop; refuses arrays that are not of this run's dtypes and shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.state.state import Frontier
from penstock.storage.base.errors import RunError, brief
from penstock.storage.checkpoint.file import Checkpoint, CheckpointError

if TYPE_CHECKING:
    from penstock.engine.execution.loop import Loop
    from penstock.storage.checkpoint.file import Values

MARKED = 1 << 22
"""Vertices whose bits are unpacked together."""
_JSON_FIELDS: dict[str, Callable[[Any], Any]] = {
    "iteration": int,
    "totals": dict,
    "unexplored": int,
    "unvisited": int,
    "direction": str,
    "everything": bool,
    "converged": bool,
    "finished": bool,
    "met": int,
}
"""A loop's numbers that are kept, and what each is in JSON."""

Fields = Mapping[str, "Values"]


class RestoredRun:
    """A whole checkpoint from which a run goes on; story: what was written beside the arrays."""

    def __init__(self, kept: Checkpoint) -> None:
        self._kept = kept
        self.path: Path = kept.path
        self.story: dict[str, Any] = kept.story

    def fill(self, name: str, out: Values) -> None:
        """Read an array into `out`. Raises RunError where it is not there, or not of that dtype and shape."""
        try:
            self._kept.fill(name, out)
        except (CheckpointError, OSError) as error:
            raise self.damaged(str(error)) from error

    def fill_shared(self, shared: Fields) -> None:
        """Read the fields that a program shares with its phases, whether or not the phase at work had them."""
        for name, array in shared.items():
            own = f"field/{name}"
            self.fill(own if own in self._kept.arrays else f"shared/{name}", array)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Make one RunError of a story that no run has written."""
        try:
            yield
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise self.damaged(f"its content is malformed ({brief(str(error))})") from error

    def damaged(self, why: str) -> RunError:
        """What to raise where it cannot be used."""
        return RunError(f"{self.path} cannot be resumed: {why}; remove it to go on from the one before")


def numbers_of(loop: Loop) -> dict[str, Any]:
    """A loop's numbers, as plain JSON."""
    numbers = {name: kind(getattr(loop, name)) for name, kind in _JSON_FIELDS.items()}
    return numbers | {"limit": loop.due.limit, "before": [loop.before.vertices, loop.before.edges]}


def arrays_of(loop: Loop, shared: Fields) -> Iterator[tuple[str, Values]]:
    """The arrays one by one; an array of a device is in host memory only until the next one is requested."""
    state = loop.state
    loop.kernels.use()
    yield "pending", state.pending_bits()
    for name in state.fields:
        yield f"field/{name}", state.host_field(name)
    if loop.met and not loop.finished:
        assert state.incoming is not None, "triangles are counted apart from the fields"
        yield "messages", state.to_host(state.incoming)
    for name, values in shared.items():
        if name not in state.fields:
            yield f"shared/{name}", values


def restore(loop: Loop, shared: Fields, resumed: RestoredRun) -> None:
    """Bring a new loop to where the one was: its numbers, fields and frontier."""
    state, saved = loop.state, resumed.story["loop"]
    for name in state.fields:
        values = shared.get(name)
        if values is None:
            values = state.room_for(name)
        resumed.fill(f"field/{name}", values)
        state.take({name: values})
    _mark(loop, resumed)
    for name, kind in _JSON_FIELDS.items():
        setattr(loop, name, kind(saved[name]))
    loop.due.go_on(float(saved["limit"]))
    vertices, edges = saved["before"]
    loop.before = Frontier(int(vertices), int(edges))
    if loop.met and not loop.finished:
        if state.incoming is None:
            raise resumed.damaged("its messages have met in part, which those of this program do not")
        messages = np.empty(state.incoming.shape, state.incoming.dtype)
        resumed.fill("messages", messages)
        state.from_host(state.incoming, messages)


def _mark(loop: Loop, resumed: RestoredRun) -> None:
    """Make those pending who were."""
    vertices = loop.graph.vertices
    bits = np.empty(-(-vertices // 8), np.uint8)
    resumed.fill("pending", bits)
    for first in range(0, vertices, MARKED):
        part = np.unpackbits(bits[first // 8 : (first + MARKED) // 8], bitorder="little")[: vertices - first]
        active = np.flatnonzero(part) + first
        if len(active):
            loop.kernels.use()
            loop.kernels.mark(loop.state, active)
