"""Which columns of a table are source, target and weight, and what is reported of the choice.

One rule for text with a header, CSV, Parquet and tables in memory. The first two columns are source and target, with
``weights`` the third is the weight. Where the names of the columns say otherwise, or say nothing and there are more
columns than that, the choice is the user's.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from penstock.storage.base.errors import InputError, brief

SOURCE_NAMES = frozenset({"source", "src", "from", "u", "start", "origin", "sender", "payer"})
TARGET_NAMES = frozenset({"target", "dst", "dest", "destination", "to", "v", "end", "receiver", "payee"})
WEIGHT_NAMES = frozenset({"weight", "w", "cost", "distance", "length", "capacity", "amount", "rating"})
"""Names of columns that are understood, in any case, with or without a last ``id`` or ``node`` (``FromNodeId``)."""

WANTED = "name the columns with --columns (source, target and, third, weight)"


_TYPED = re.compile(r"(?<=.):(int|long|short|byte|float|double)$|\([^()]*\)$")
"""What Neo4j's importer writes behind a name: a type, or a space of ids."""


class Columns(NamedTuple):
    """Positions (from 0) of source, target and weight (-1: no weight) in a line."""

    source: int = 0
    target: int = 1
    weight: int = -1


@dataclass(frozen=True, slots=True)
class TakenColumns:
    """What was taken of a file's table.

    ``names`` are those of its header (empty: it has none), ``width`` is how many columns it has, ``delimiter`` what
    divides them (empty: blanks or commas, or no text), ``comments`` how many lines were passed over before the table.
    """

    file: str
    columns: Columns
    names: tuple[str, ...] = ()
    width: int = 2
    delimiter: str = ""
    comments: int = 0

    def facts(self) -> dict[str, Any]:
        """For machines."""
        spelled = {
            role: None if at < 0 else self.names[at] if at < len(self.names) else at
            for role, at in zip(("source", "target", "weight"), self.columns, strict=True)
        }
        return {
            "file": self.file,
            **spelled,
            "positions": [at for at in self.columns if at >= 0],
            "of": self.width,
            "header": bool(self.names),
            "delimiter": self.delimiter or None,
        }

    def told(self) -> str:
        """For people: which column is what, which are not read, how the columns are known."""
        roles = zip(("source", "target", "weight"), self.columns, strict=True)
        taken = ", ".join(f"{role} = {self._spelled(at)}" for role, at in roles if at >= 0)
        others = [self._spelled(at) for at in range(self.width) if at not in self.columns]
        left = f"; not read: {', '.join(others[:6])}{' ...' * (len(others) > 6)}" if others else ""
        how = "; the first line is a header" if self.names and self.delimiter else ""
        if not self.names and self.delimiter:
            how = "; no header"
        if self.comments:
            how += f"; {self.comments} line{'s' * (self.comments != 1)} of comments before"
        return taken + left + how

    def same_as(self, other: "TakenColumns") -> bool:
        """Whether another file's table is taken in the same way."""
        return (self.columns, self.names, self.width) == (other.columns, other.names, other.width)

    def _spelled(self, at: int) -> str:
        return f"{brief(self.names[at])!r} ({at})" if at < len(self.names) else f"column {at}"


def note_columns(taken: list[TakenColumns], new: TakenColumns) -> None:
    """Add what was taken of a file to ``taken``, unless another file was read in the same way."""
    if not any(new.same_as(known) for known in taken):
        taken.append(new)


def find_columns(names: Sequence[str], wanted: tuple[int | str, ...], file: str) -> Columns:
    """The positions of ``wanted`` columns (numbers, or names found in the header ``names``).

    Raises:
        InputError: a name that the header does not have, or has twice.
    """
    bare = [name.strip(" \"'") for name in names]
    found = []
    for column in wanted:
        if isinstance(column, int):
            found.append(column)
        elif bare.count(column) > 1:
            raise InputError(
                f"{file}: {bare.count(column)} columns are named {brief(column)!r}; give its number to --columns"
            )
        elif column in bare:
            found.append(bare.index(column))
        else:
            seen = f"it has {brief(', '.join(bare))}" if bare else "it has no header line"
            raise InputError(f"{file}: no column is named {brief(column)!r} ({seen}); see --columns")
    return Columns(*found)


def choose_columns(names: Sequence[str], width: int, weights: bool | None, file: str) -> Columns:
    """The columns of a table for which none were named: the first two and, for ``weights``, the third.

    ``names`` are those of the header, empty if there is none; ``width`` is how many columns there are.

    Raises:
        InputError: names say otherwise, or there are more columns and no names that say which.
    """
    roles = [role_of(name) for name in names]
    if _stands_elsewhere(roles, "source", 0) or _stands_elsewhere(roles, "target", 1):
        raise InputError(f"{file}: its columns are {_listed(names)}; {_suggested(names, roles)}")
    if weights and width > 3 and _stands_elsewhere(roles, "weight", 2):
        raise InputError(f"{file}: its columns are {_listed(names)}; {_suggested(names, roles)}")
    unsaid = width > 3 or (width == 3 and bool(names) and roles[2] != "weight")
    if unsaid and not weights and roles[:2] != ["source", "target"]:
        listed = f"columns are {_listed(names)}" if names else f"lines have {width} columns"
        raise InputError(f"{file}: its {listed}, and which of them are source and target is not known; {WANTED}")
    return Columns(0, 1, 2) if weights else Columns(0, 1)


def role_of(name: str) -> str:
    """What a column is by its name: source, target or weight; empty if the name is not known."""
    bare = re.sub(r"[^a-z0-9]", "", _TYPED.sub("", name.lower()))
    for _ in range(2):
        bare = re.sub(r"(?<=.)(id|node)$", "", bare)
    for role, known in (("source", SOURCE_NAMES), ("target", TARGET_NAMES), ("weight", WEIGHT_NAMES)):
        if bare in known:
            return role
    return ""


def id_spaces(names: Sequence[str]) -> set[str]:
    """The spaces of ids that the ends of edges have in a header of Neo4j's importer: `:START_ID(User)`."""
    found = (re.fullmatch(r"[^:]*:(?:START|END)_ID\(([^)]*)\)", name.strip(), re.IGNORECASE) for name in names)
    return {match[1] for match in found if match}


def known_header(names: Sequence[str]) -> bool:
    """Whether both a source and a target are among some names."""
    return {"source", "target"} <= {role_of(name) for name in names}


def _stands_elsewhere(roles: list[str], role: str, place: int) -> bool:
    return role in roles and roles[place : place + 1] != [role]


def _listed(names: Sequence[str]) -> str:
    return brief(", ".join(names[:12]) + (" ..." if len(names) > 12 else ""))


def _suggested(names: Sequence[str], roles: list[str]) -> str:
    """The way out; spelled for the columns that are meant in all likelihood."""
    meant = [roles.index(role) for role in ("source", "target", "weight") if role in roles]
    if not {"source", "target"} <= set(roles):
        return WANTED
    words = [brief(names[at]) if "," not in names[at] else str(at) for at in meant]
    return f"{WANTED}, perhaps --columns {','.join(words)}"
