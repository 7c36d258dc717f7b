"""Owns files that state their size before their edges: every id inside it, no entry more, none less.

MatrixMarket's size line and DIMACS' problem line make the same promise; a file that breaks it is
truncated or damaged, and is refused with the line where that shows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.ingest.text.diagnose import is_data, shown
from penstock.storage.ingest.text.edge_list import Parsed


@dataclass(frozen=True, slots=True)
class DeclaredSize:
    """What file ``name`` states in its ``line`` ("size line"): ``entries``, and the largest id of each
    end with its ``words``. ``is_entry`` tells a line of an edge from others, as the parser does."""

    name: str
    line: str
    entries: int
    largest: tuple[int, int]
    words: tuple[str, str]
    whole: str
    is_entry: Callable[[str], bool] = is_data

    def check(self, parsed: Parsed, before: int) -> None:
        """Check a block of edges, ``before`` of which came earlier.

        Raises:
            InputError: it holds one more than stated, or an id outside.
        """
        batch = parsed.batch
        if before + len(batch) > self.entries:
            line, text = self._entry_line(parsed, self.entries - before)
            raise InputError(
                f"{self.name}, line {line}: its {self.line} says {self.entries} entries, and here "
                f"is one more; correct the {self.line}\n    {shown(text)}"
            )
        for ids, size, word in zip((batch.sources, batch.targets), self.largest, self.words, strict=True):
            at = first_outside(ids, size)
            if at is not None:
                line, text = self._entry_line(parsed, at)
                raise InputError(
                    f"{self.name}, line {line}: {word} {ids[at]} is outside 1..{size}, the {self.whole} "
                    f"that its {self.line} states; correct the line\n    {shown(text)}"
                )

    def check_end(self, entries: int) -> None:
        """Check how many entries there were in all.

        Raises:
            InputError: fewer than stated.
        """
        if entries < self.entries:
            raise InputError(
                f"{self.name}: its {self.line} says {self.entries} entries, and it ends after "
                f"{entries}: the file is truncated, or its {self.line} is wrong; fetch it "
                "again, or correct the line"
            )

    def _entry_line(self, parsed: Parsed, entry: int) -> tuple[int, str]:
        """Line number and text of the ``entry``-th entry of a block."""
        seen = -1
        for number, raw in enumerate(parsed.text.tobytes().split(b"\n"), start=1):
            line = raw.decode("utf-8", "replace")
            seen += self.is_entry(line)
            if seen == entry:
                return parsed.lines_before + number, line
        raise AssertionError(f"block has no entry {entry}")


def first_outside(ids: NDArray[Any], size: int) -> int | None:
    """Where the first id outside 1..``size`` is, if there is one."""
    if len(ids) == 0 or (int(ids.min()) >= 1 and int(ids.max()) <= size):
        return None
    outside = ids == 0
    if int(ids.max()) > size:
        outside |= ids > ids.dtype.type(size)
    return int(np.argmax(outside))
