"""Edges that have been read, with what is known of them: what reading hands to sorting."""

from dataclasses import dataclass

from penstock.storage.convert.renumber.name_store import Original
from penstock.storage.convert.sort.seen_ids import OccurringIds
from penstock.storage.convert.sort.spill import Spill
from penstock.storage.convert.sort.weights import WeightExtent
from penstock.storage.ingest.core.source import RowSource


@dataclass(frozen=True, slots=True, kw_only=True)
class InputEdges:
    """What reading came to: where the edges are, of which vertices and with what weights; their original ids
    if ids were changed; of two sides, how many sources; how many vertices have no edge (None: not known yet).

    ids: those that the store's edges are in; None where they are in vertices. renumbered: whether ids that occur were
    found not to be 0 to n-1.
    """

    store: Spill | RowSource
    vertices: int
    input_edges: int
    weights: WeightExtent | None
    original: Original = None
    left: int | None = None
    without_edges: int | None = None
    ids: OccurringIds | None = None
    renumbered: bool = False
