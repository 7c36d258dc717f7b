"""Owns original ids that are strings as they lie in a graph file: where each ends, and their text; checked when read.

Refuses names that end outside their text, or that are no UTF-8.
"""

from dataclasses import dataclass

import numpy as np
from penstock.storage.base.errors import RunError
from penstock.storage.encoding.string_array import StringArray, first_invalid
from penstock.storage.format.frames import Frames


@dataclass(frozen=True, slots=True)
class NameFrames:
    """The frames of original ids that are strings."""

    ends: Frames
    text: Frames

    def names(self) -> StringArray:
        """Read all names. Raises RunError if they are damaged."""
        text, raw = self.text.whole(), self.ends.whole()
        inside = len(raw) == 0 or int(raw.max()) == len(text) == int(raw[-1])
        ends = raw.astype(np.int64)
        if not inside or (np.diff(ends, prepend=0) < 0).any():
            raise RunError(f"{self.ends.files[0]} is damaged: the ends of its ids do not rise; convert the input again")
        bad = first_invalid(text, ends)
        if bad >= 0:
            raise RunError(
                f"{self.ends.files[0]} is damaged: the id of vertex {bad} is no UTF-8; convert the input again"
            )
        return StringArray(text, ends)
