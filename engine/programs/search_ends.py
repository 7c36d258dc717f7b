"""Where a search may end: at vertices that are asked for (`target`), or at a distance (`cutoff`).

The answer holds what is as near as the horizon: the cutoff, or the farthest target where that is nearer. How much more
a run has seen by then depends on routes and devices; so what is beyond is emptied.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.program import fields_of, value_of
from penstock.engine.program.vertex_ids import originals_of, vertices_of
from penstock.engine.program.vertex_ranges import each_range
from penstock.storage.format.graph import Graph

Vertices = int | str | Sequence[int | str]
"""One original id, or several."""


class Ending:
    """What searches share that may end early; comes before `Program` among the bases.

    parents: whether the answer has parents. target: original ids, or None. cutoff: the largest distance of the answer,
    or None. The distances are the first field, and none of them is smaller than its predecessors' on a path.
    """

    target: Vertices | None = None
    cutoff: float | None = None
    parents: bool | None = None
    bounded = False
    by_ranges: ClassVar[bool] = True
    watched: Sequence[int] = ()

    def end_at(self, target: Vertices | None, cutoff: float | None) -> None:
        """Set both; called by the constructor."""
        self.target, self.cutoff = target, cutoff
        self.bounded = target is not None or cutoff is not None

    @property
    def wants_parents(self) -> bool:
        """Whether the answer has parents: by default if there is a target."""
        return self.target is not None if self.parents is None else self.parents

    def watch(self, graph: Graph) -> None:
        """Look up the targets. Raises InputError for one that the graph does not have."""
        if self.target is not None:
            self.watched = vertices_of(graph, originals_of(self.target, "target")).tolist()

    def horizon(self, values: NDArray[Any]) -> float:
        """As `Program.horizon`: the distance of the farthest target, if all are reached, and at most the cutoff."""
        last = self.last(values)
        return math.inf if last is None else float(last)

    def last(self, values: NDArray[Any]) -> Any:
        """The largest distance that the answer needs, from those of the targets; None: there is no limit yet."""
        found = values.max() if len(values) and not np.any(values == self._unreached(values.dtype)) else None
        return self.cutoff if found is None or (self.cutoff is not None and self.cutoff < found) else found

    def beyond(self, values: NDArray[Any], last: Any) -> NDArray[np.bool_]:
        """Which values are larger than the last one."""
        found: NDArray[np.bool_] = values > last
        return found

    def cut(self, state: dict[str, NDArray[Any]]) -> None:
        """Empty what is beyond the horizon, in every field of the answer."""
        fields = fields_of(type(self))  # type: ignore[arg-type]
        distances = state[next(iter(fields))]
        last = self.last(distances[np.asarray(self.watched, np.int64)])
        if last is None:
            return
        emptied = [(state[name], value_of(field.unreached, state[name].dtype)) for name, field in fields.items()]

        def empty(first: int, end: int) -> None:
            beyond = first + np.flatnonzero(self.beyond(distances[first:end], last))
            for values, absent in emptied:
                if absent is not None and len(beyond):
                    values[beyond] = absent

        each_range(empty, len(distances))

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, Any]:
        """The answer, as far as it is asked for."""
        self.cut(state)
        found: dict[str, Any] = super().finish(graph, state)  # type: ignore[misc]
        return found

    def _unreached(self, dtype: np.dtype[Any]) -> Any:
        first = next(iter(fields_of(type(self)).values()))  # type: ignore[arg-type]
        return value_of(first.unreached, dtype)
