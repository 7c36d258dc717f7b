"""Whether an iteration brings partitions whole, so that rows that change follow what brought them (route `cel`).

Such a pass leaves less for later: what follows, and what a later partition sends with what an earlier one has found. So
it is compared with this iteration's frontier read in place and, once runs of the program have told how much that is,
with what is left of the run. Numbers in, a choice out; a session has one `Carriers` for each program.
"""

from __future__ import annotations

from dataclasses import dataclass

USEFUL = 0.5
"""Part of the edges that followed which a run without carriers would have sent, too: others send again later."""


@dataclass
class Carriers:
    """What runs of a program have told.

    seconds: of each carrier of late, 0: not known. work: edges that a run sends; plain: of one without carriers, which
    is not forgotten. left: those that it sent after the first pass.
    """

    seconds: float = 0.0
    work: float = 0.0
    left: float = 0.0
    plain: bool = False

    def pay(self, carried: float, now: float, sent: float | None, each: tuple[float, float]) -> bool:
        """Whether a pass pays that takes `carried` seconds, where reading the frontier in place takes `now`.

        sent: edges of the run so far, the frontier's included; None after a pass: then nothing tells what is left.
        each: seconds of an edge that is read in place later, of many at once and of few.
        """
        if sent is None or carried <= now:
            return carried <= now
        return carried + self.left * each[1] <= now + max(0.0, self.work - sent) * each[0]

    def took(self, seconds: float) -> None:
        """Take what each carrier of a pass took."""
        self.seconds = (self.seconds + seconds) / 2 if self.seconds else seconds

    def end(self, sent: float, followed: float, passed: float | None) -> None:
        """Take a run: edges of its frontiers, those that followed, and those of frontiers up to its first pass."""
        if passed is None:
            self.work, self.plain = sent, True
            return
        self.left = sent - passed
        if not self.plain:
            self.work = sent + USEFUL * followed
