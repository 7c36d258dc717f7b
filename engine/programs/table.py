"""The programs that come with Penstock, by name."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

from penstock.engine.programs.catalogue import CATALOGUE, ProgramInfo
from penstock.storage.base.errors import InputError

if TYPE_CHECKING:
    from penstock.engine.program.program import Program


class _Programs(Mapping[str, "type[Program]"]):
    """Classes by name, each imported when it is asked for: a run needs one of them."""

    def __init__(self) -> None:
        self._records = {info.name: info for info in CATALOGUE}

    def __getitem__(self, name: str) -> type[Program]:
        """The class of a program."""
        file, _, kind = self._records[name].home.partition(":")
        found: type[Program] = getattr(importlib.import_module(f"penstock.engine.programs.{file}"), kind)
        return found

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._records)

    def __len__(self) -> int:
        """Return how many programs there are."""
        return len(self._records)

    def __contains__(self, name: object) -> bool:
        """Whether there is a program of this name."""
        return name in self._records


PROGRAMS: Mapping[str, type[Program]] = _Programs()


def grouped() -> dict[str, list[ProgramInfo]]:
    """The programs by group."""
    found: dict[str, list[ProgramInfo]] = {}
    for info in CATALOGUE:
        found.setdefault(info.group, []).append(info)
    return found


def info_of(name: str) -> ProgramInfo | None:
    """The record of the program of this name, as here or as networkx, igraph and cuGraph call it."""
    plain = name.lower().replace("-", "_")
    return next((info for info in CATALOGUE if plain == info.name or plain in info.aliases), None)


def named(name: str) -> type[Program]:
    """The program of this name. Raises InputError with the names there are."""
    info = info_of(name)
    if info is not None:
        return PROGRAMS[info.name]
    near = get_close_matches(name, [word for each in CATALOGUE for word in (each.name, *each.aliases)], 1)
    raise InputError(
        f"there is no program {name!r}{f' (did you mean {near[0]}?)' if near else ''}; choose one of "
        f"{', '.join(sorted(PROGRAMS))}, or give your own as path/to/file.py:ClassName"
    )
