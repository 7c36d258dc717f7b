"""Which values of vertices each step of an iteration reads and writes, by the names of their arrays.

Where memory has no room for all values, a step has only these at hand (`storage/checkpoint/state_pages.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from penstock.engine.program.program import Program, arguments, author_function, functions_of, kept_fields

SENT, INCOMING = ".sent", ".incoming"
"""The arrays of what vertices send, and of messages that have no field."""


def array_of_messages(accumulator: str, fields: Iterable[str], *, apart: bool) -> str:
    """The name of the array in which messages are combined; fields: the kept ones; apart: as of `State`."""
    return (accumulator or INCOMING) if apart else next(iter(fields))


@dataclass(frozen=True)
class StepValues:
    """What a program's steps read: names of fields, and `SENT`.

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
