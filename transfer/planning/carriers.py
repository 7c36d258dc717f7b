"""Whether an iteration brings partitions whole, so that rows that change follow what brought them (route `cel`).

Such a pass leaves less for later: what follows, and what a later partition sends with what an earlier one has found. So
its price is compared with the edges that need not be read in place then. Numbers in, numbers out; a session has one
`Carriers` for each program.
"""

from __future__ import annotations

from dataclasses import dataclass

AGAIN = 2
"""So many times all edges a run sends that begins with all of them: labels 1.8 to 2.0, on a web graph and R-MAT."""


@dataclass
class Carriers:
    """What runs of a program have told, in edges of their frontiers.

    work: of a run without a pass, 0: not known. left: those after the first pass of a run.
    """

    work: int = 0
    left: int = 0

    def saved(self, edges: int, sent: int, *, everything: bool, passed: bool) -> int:
        """How many edges a pass saves that begins with a frontier of `edges`; `everything`: of all there are.

        sent: edges of the run so far, the frontier's included. passed: whether there was a pass before; then nothing
        tells what is left after another.
        """
        if passed:
            return edges
        work = self.work or (AGAIN * edges if everything else 0)
        return edges + max(0, work - sent) - self.left

    def end(self, sent: int, passed: int | None) -> None:
        """Take what a run has sent, and that up to its first pass; None: no pass, 0: from disk, which tells nothing."""
        if passed is None:
            self.work = sent
        elif passed:
            self.left = sent - passed
