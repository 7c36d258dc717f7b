"""Which parameters only say where a run ends: a run goes on from a checkpoint with a higher max_iter, or a lower tol.

A program names them (`Program.extendable`). They are no part of what makes two runs the same one; all iterations that a
run has done are those of the run that ends later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.engine.execution.loop import Loop
    from penstock.engine.program.program import Program

Identity = Mapping[str, Any]


def without_limits(identity: Identity, program: Program) -> dict[str, Any]:
    """Return a program's fingerprint without the parameters that only say where a run ends."""
    parameters = {name: value for name, value in identity["parameters"].items() if name not in program.extendable}
    return {**identity, "parameters": parameters}


def goes_on(there: Identity, here: Identity, program: Program) -> list[str]:
    """Return why a run with these limits does not go on where another one was, in words; nothing where it does."""
    had, have = there["parameters"], here["parameters"]
    found = []
    for name, word in (("max_iter", "higher"), ("tol", "lower")):
        if name in program.extendable and name in had and name in have:
            earlier = have[name] < had[name] if word == "higher" else have[name] > had[name]
            if earlier:
                found.append(f"its {name} was {had[name]}, here it is {have[name]}, and only a {word} one goes on")
    return found


def is_extended(there: Identity, here: Identity, program: Program) -> bool:
    """Whether a limit is another one."""
    return any(there["parameters"].get(name) != here["parameters"].get(name) for name in program.extendable)


def reconsider(loop: Loop) -> None:
    """Let a loop that was done ask its program again, whose limits are others now."""
    if loop.finished and loop.iteration:
        loop.finished = loop.converged = loop.program.done(loop.iteration - 1, loop.totals)


def may_be_extended(program: Program, loop: Loop) -> bool:
    """Whether the iteration that a loop has done is the last one of a run that could go on with other limits."""
    phase = loop.phase
    last = phase is None or (phase.count is not None and phase.number == phase.count - 1)
    return bool(program.extendable) and last and (loop.finished or loop.iteration >= loop.program.max_iter)
