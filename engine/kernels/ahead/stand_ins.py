"""What stands for a run while its kernels are compiled ahead: its program, a row index, edges, scalars."""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.engine.program.bindings import Author, scalar_values
from penstock.storage.encoding.payload import BLOCK
from penstock.storage.format.index import WIDEST_SHIFT, Index
from penstock.transfer.values.task import TaskRecord
from penstock.transfer.values.view import Payloads, View

VERTICES = 4096


def row_index() -> Index:
    """An index of rows without edges."""
    return Index(np.zeros(2, np.int64), np.zeros(VERTICES + 1, np.uint32), WIDEST_SHIFT)


def view_of(job: dict[str, Any], route: str) -> View:
    """One edge, of the job's dtypes, that has come by a route."""
    weights = None if job["weights"] is None else np.zeros(1, job["weights"])
    return View(0, 1, 0, VERTICES, np.zeros(1, job["vertices"]), weights, TaskRecord(route, "out", (0,)))


def packed_view_of() -> View:
    """Packed edges of no block, for kernels that decode them."""
    payloads = Payloads(np.zeros(1, np.int64), BLOCK)
    words, record = np.zeros(1, np.uint32), TaskRecord("filter", "out", (0,))
    return View(0, 0, 0, VERTICES, words, None, record, payloads=payloads)


def scalars_of(program: Any, author: Author) -> tuple[Any, ...]:
    """What the author's functions read besides fields."""
    facts = {"iteration": 0, "vertices": VERTICES, "due": np.inf, "settled": -np.inf}
    facts.update(dict.fromkeys(author.totals, 0.0))
    return scalar_values(program, author, facts)
