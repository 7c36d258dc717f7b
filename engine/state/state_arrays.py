"""What the state of vertices has alike in host memory and on a device: arrays of values, marks, and what is at hand.

Owns where messages are combined, parts of a state, and values that come in pages. What the arrays are is for
`state.py` and `device_state.py` to say.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from copy import copy
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Self

from penstock.engine.program.step_values import INCOMING, array_of_messages

if TYPE_CHECKING:
    from penstock.storage.checkpoint.state_pages import StatePages
    from penstock.storage.format.index import Index


class StateArrays(ABC):
    """The values and marks of the vertices [first, last).

    fields: name -> array (last - first, *shape); arrays: the same in declared order, as kernels take them. sent: what
    active vertices send. pending: who will be active; active: who is; touched: who has got messages. vertices: room for
    a list of them. pages: what holds the arrays of values where there is no room for all.
    """

    first: int
    last: int
    fields: dict[str, Any]
    arrays: tuple[Any, ...]
    sent: Any
    pending: Any
    active: Any
    touched: Any
    vertices: Any
    identity: Any
    pages: StatePages | None
    _paged: dict[str, Any]
    _incoming: Any
    _accumulator: str
    _apart: bool

    @abstractmethod
    def _new_marks(self) -> Any:
        """A bitmap of the vertices, in which nothing is set."""

    @abstractmethod
    def _new_messages(self) -> Any:
        """An array of messages of which none has been combined."""

    @property
    def incoming(self) -> Any:
        """The accumulators of a synchronous run, None before `accumulate_apart`.

        Between iterations they are the identity, or what a field keeps (`Program.accumulator`).
        """
        return self.fields[self._accumulator] if self._apart and self._accumulator else self._incoming

    @property
    def messages(self) -> str:
        """The name of the array where messages are combined."""
        return array_of_messages(self._accumulator, self.fields, apart=self._apart)

    @property
    def target(self) -> Any:
        """Where messages are combined."""
        incoming = self.incoming
        return next(iter(self.fields.values())) if incoming is None else incoming

    def accumulate_apart(self) -> None:
        """Give messages a place of their own (synchronous runs), or that of the program's accumulator.

        Else they go into the first field, and are its values at once.
        """
        if self._apart:
            return
        self._apart = True
        if not self._accumulator and self.pages is not None:
            self._incoming = self.pages.add(INCOMING, self.sent.dtype, self.identity)
        elif not self._accumulator:
            self._incoming = self._new_messages()
        if self.active is not self.pending:
            self.mark_apart()

    def mark_apart(self) -> None:
        """Give the marks of a walk a bitmap of their own also where messages go into the first field."""
        if self.touched is self.pending:
            self.touched = self._new_marks()

    def part(self, first: int, last: int) -> Self:
        """The state of vertices first..last-1, whole spans but for the last, in the same memory.

        The list of a frontier is the whole one's.
        """
        part, here = copy(self), slice(first - self.first, last - self.first)
        part.first, part.last = first, last
        part.fields = {name: values[here] for name, values in self.fields.items()}
        part.arrays = tuple(part.fields.values())
        part._incoming = None if self._incoming is None else self._incoming[here]
        part.sent = self.sent[here] if len(self.sent) == self.last - self.first else self.sent
        part.pending, part.active, part.touched = (
            marks.part(here.start, here.stop) for marks in (self.pending, self.active, self.touched)
        )
        return part

    @contextmanager
    def held(
        self, names: Collection[str], v0: int, v1: int, changes: Collection[str] = (), fresh: Collection[str] = (),
        until: int = 0, rows: Index | None = None,
    ) -> Iterator[None]:  # fmt: skip
        """Have some arrays' values of vertices v0..v1-1 at hand within, as `StatePages.held`, if not all are.

        until: the vertices behind these, up to this one, are wanted next. rows: an index whose rows are wanted, too,
        where these come with the values: what comes ahead of either would take the room of the other.
        """
        if self.pages is None:
            yield
            return
        wanted = self.pages.of(names, v0, v1) + self.pages.of_rows(rows, v0, v1)
        then = self.pages.of([name for name in names if name not in fresh], v1, until)
        then += self.pages.of_rows(rows, v1, min(until, self.pages.vertices)) if until > v1 else []
        with self.pages.held(wanted, changes, fresh, sorted(then, key=itemgetter(1))):
            yield
