"""What the state of vertices has alike in host memory and on a device: arrays of values, marks, and what is at hand.

Owns where messages are combined, parts of a state, values that come in pages, and which values each step of an
iteration reads and writes: where memory has no room for all, a step has only these at hand
(`storage/checkpoint/state_pages.py`). What the arrays are is for `state.py` and `device_state.py` to say.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from penstock.engine.program.program import Program, arguments, author_function, functions_of, kept_fields

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.state.compacted_rows import CompactedRows
    from penstock.engine.state.grouped_sources import GroupedSources
    from penstock.engine.state.unmatched_rows import UnmatchedRows
    from penstock.storage.checkpoint.state_pages import StatePages
    from penstock.storage.format.index import Index


SENT, INCOMING = ".sent", ".incoming"
"""The arrays of what vertices send, and of messages that have no field."""


def array_of_messages(accumulator: str, fields: Iterable[str], *, apart: bool) -> str:
    """The name of the array in which messages are combined; fields: the kept ones; apart: as of `State`."""
    return (accumulator or INCOMING) if apart else next(iter(fields))


class StateArrays(ABC):
    """The values and marks of the vertices [first, last).

    fields: name -> array (last - first, *shape); arrays: the same in declared order, as kernels take them. sent: what
    active vertices send. pending: who will be active; active: who is; touched: who has got messages. vertices: room for
    a list of them. lines: of memory that the listed frontier's rows take, where they are counted. pages: what holds the
    arrays of values where there is no room for all. compacted: rows that pushes have kept there, if any, and walk in
    place of all; accepted: those that they keep for another phase.
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
    message_shape: tuple[int, ...]
    lines: int | None = None
    sent_ahead: tuple[float, ...] | None = None  # on a device only
    groups: GroupedSources | None = None  # these two on the cores only
    unmatched: UnmatchedRows | None = None
    pages: StatePages | None
    compacted: CompactedRows | None = None
    accepted: CompactedRows | None = None
    _paged: dict[str, Any]
    _incoming: Any = None
    _accumulator: str
    _apart = False

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
    @abstractmethod
    def partial(self) -> NDArray[np.float64]:
        """The Globals' shares, float64 (shares, globals), in host memory: as kernels have left them."""

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
            kind = np.dtype((self.sent.dtype, self.message_shape))
            self._incoming = self.pages.add(INCOMING, kind, self.identity)
        elif not self._accumulator:
            self._incoming = self._new_messages()
        if self.active is not self.pending:
            self.mark_apart()

    def mark_apart(self) -> None:
        """Give the marks of a walk a bitmap of their own also where messages go into the first field."""
        if self.touched is self.pending:
            self.touched = self._new_marks()

    def swap(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Use these arrays as fields, which are like ours; returns ours."""
        self.sent_ahead = None
        ours = {name: self.fields[name] for name in fields}
        self.fields.update(fields)
        self.arrays = tuple(self.fields.values())
        return ours

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
        then = [(unit[1], unit) for unit in self.pages.of([name for name in names if name not in fresh], v1, until)]
        behind = self.pages.of_rows(rows, v1, min(until, self.pages.vertices)) if until > v1 else []
        then += [(unit[1] - 1, unit) for unit in behind]  # the first of their rows are wanted with the page before
        with self.pages.held(wanted, changes, fresh, [unit for _, unit in sorted(then, key=itemgetter(0))]):
            yield


@dataclass(frozen=True)
class StepValues:
    """What a program's steps read and write: names of fields, and `SENT`.

    by_role: of each function of the author, and of all Globals as one, the fields of the vertex itself. source, target:
    what a message is made of and what decides whether it is taken, less where it goes to. changing: fields that are
    not constant. has_send, in_place: as of `Author`. sweeps: whether all vertices send in every iteration. asks_degree:
    whether messages are made of the degrees of their sources, which only the index of all edges has.
    """

    by_role: dict[str, frozenset[str]]
    source: frozenset[str]
    target: frozenset[str]
    changing: frozenset[str]
    has_send: bool
    in_place: bool
    accumulator: str
    sweeps: bool
    asks_degree: bool

    @classmethod
    def of(cls, program: Program) -> StepValues:
        """What a program's functions ask for, by the names of their arguments."""
        fields = kept_fields(program)
        by_role: dict[str, frozenset[str]] = {}
        for role, function in functions_of(program):
            by_role[role] = by_role.get(role, frozenset()) | (frozenset(arguments(function)) & fields.keys())
        edge = author_function(program, "edge")
        named = () if edge is None else arguments(edge)
        pointed = frozenset(name[7:] for name in named if name.startswith("target_")) & fields.keys()
        has_send = "send" in by_role
        source = by_role.get("edge", frozenset()) | ({SENT} if has_send else set())
        target = pointed | by_role.get("cond", frozenset()) | by_role.get("suffices", frozenset())
        if program.combine == "union":  # trees of both ends are linked
            source = frozenset(fields)
        changing = frozenset(name for name, spec in fields.items() if not spec.constant)
        ends = program.accumulator, program.everywhere, "degree" in named
        return cls(by_role, source, target, changing, has_send, program.in_place, *ends)

    def reads(self, *roles: str) -> frozenset[str]:
        """What functions of these roles read of the vertex itself."""
        return frozenset().union(*(self.by_role.get(role, frozenset()) for role in roles))

    def walked(self, messages: str, *, pushes: bool) -> tuple[frozenset[str], frozenset[str]]:
        """What kernels over edges read of the vertices that edges lead to, and of those whose rows they are in.

        messages: the array where these are combined.
        """
        taken = self.target | {messages}
        return (taken, self.source) if pushes else (self.source, taken)

    def emptied(self, messages: str) -> frozenset[str]:
        """The array of messages, if a walk begins with nothing in it: of sweeps, where messages have a place apart."""
        return frozenset({messages} if self.sweeps and messages in (INCOMING, self.accumulator) else ())

    def at_hand(self, each: Mapping[str, int], messages: str, *, pushes: bool) -> tuple[int, int]:
        """Bytes of a vertex of a window, and of one of the rows beside it, in a walk; each: bytes of a value, by array.

        A vertex of a window that gets new values takes the place of one of a row.
        """
        far, near = self.walked(messages, pushes=pushes)
        behind = self.applies(messages) - far if pushes else frozenset[str]()
        window, rows, later = (sum(each[name] for name in names) for names in (far, near, behind))
        return window, max(rows, later)

    @property
    def sends(self) -> frozenset[str]:
        """What is written before messages go."""
        return frozenset({SENT} if self.has_send else ())

    def applies(self, messages: str) -> frozenset[str]:
        """What is read where messages arrived, which are in this array."""
        arrived = SENT if self.in_place and self.has_send else messages
        return self.changing | self.reads("vertex", "active", "global") | {arrived, messages}

    def applied_within(self, messages: str) -> bool:
        """Whether a window's vertices may have new values while other windows wait for what the old ones send."""
        return self.source.isdisjoint(self.changing | {messages})
