"""What a part of a graph is to have: conditions on vertices and edges, checked when they are given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from penstock.storage.base.errors import InputError
from penstock.storage.convert.subgraph.kept_edges import Bounds

ALONG = ("out", "in", "both")
Interval = str | tuple[float | None, float | None] | Bounds


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """Which vertices and edges stay: those for which all that is given holds, each judged on the whole graph.

    around, hops, along: what at most `hops` edges lead to from these vertices, along "out"-edges, "in"-edges or
    "both". component_of, largest_component: the weakly connected component of a vertex, or the largest; strong: the
    strongly connected one. core: the k-core. vertices: ids, or a file of them; skip_missing: of which those count that
    the graph has. degrees: of vertices, in and out together. weights: of edges.

    Raises InputError where nothing is given, or what is given excludes each other.
    """

    around: int | str | Sequence[int | str] | None = None
    hops: int = 1
    along: str = "out"
    component_of: int | str | None = None
    largest_component: bool = False
    strong: bool = False
    core: int | None = None
    vertices: Path | str | PathLike[str] | Iterable[int | str] | None = None
    skip_missing: bool = False
    degrees: Bounds | None = None
    weights: Bounds | None = None

    def __post_init__(self) -> None:
        if not self.given:
            raise InputError(
                "nothing says what to extract; give --around, --component-of, --largest-component, --core, --vertices, "
                "--degrees or --weights"
            )
        if self.along not in ALONG:
            raise InputError(f"--along {self.along} is none of {', '.join(ALONG)}")
        if self.hops < 0 or (self.core is not None and self.core < 0):
            raise InputError(f"--hops {self.hops} and --core {self.core}: numbers below 0 have no meaning")
        if self.around is None and (self.hops, self.along) != (1, "out"):
            raise InputError("--hops and --along say how far from --around; name its vertices, or leave them out")
        if self.component_of is not None and self.largest_component:
            raise InputError("--component-of and --largest-component exclude each other; choose one")
        if self.strong and self.component_of is None and not self.largest_component:
            raise InputError("--strong says which components; give --component-of or --largest-component, too")
        if self.skip_missing and self.vertices is None:
            raise InputError("--skip-missing is about --vertices; give a list of ids, or leave it out")

    @property
    def given(self) -> dict[str, Any]:
        """The conditions that were given, as a graph file records them."""
        found: dict[str, Any] = {}
        if self.around is not None:
            found |= {"around": _told(self.around), "hops": self.hops, "along": self.along}
        if self.component_of is not None:
            found["component_of"] = self.component_of
        found |= {name: True for name in ("largest_component", "strong") if getattr(self, name)}
        if self.core is not None:
            found["core"] = self.core
        if self.vertices is not None:
            found["vertices"] = str(self.vertices) if isinstance(self.vertices, str | PathLike) else "a list"
        for name in ("degrees", "weights"):
            bounds = getattr(self, name)
            if bounds is not None:
                found[name] = f"{bounds.low:g}..{bounds.high:g}"
        return found


def bounds_of(given: Interval | None, name: str) -> Bounds | None:
    """A range of numbers as it was given. Raises InputError."""
    if given is None or isinstance(given, Bounds):
        return given
    try:
        low, high = _ends(given) if isinstance(given, str) else given
        found = Bounds(-np.inf if low is None else float(low), np.inf if high is None else float(high))
    except (TypeError, ValueError):
        raise InputError(f"{name} {given} is no range; write it as 0.5..2, 10.. or ..5") from None
    if not found.low <= found.high:
        raise InputError(f"{name} {given} holds no number; write the smaller one first")
    return found


def _ends(text: str) -> tuple[float | None, float | None]:
    low, dots, high = text.partition("..")
    if not dots or not (low.strip() or high.strip()):
        raise ValueError
    return (float(low) if low.strip() else None, float(high) if high.strip() else None)


def _told(source: Any) -> str:
    """The first of some ids, and how many there are."""
    several = [source] if isinstance(source, int | np.integer | str) else list(source)
    return ", ".join(map(str, several[:3])) + (f" and {len(several) - 3} more" if len(several) > 3 else "")
