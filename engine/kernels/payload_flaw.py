"""What is said of packed edges that could not be decoded."""

from __future__ import annotations

from penstock.storage.base.errors import RunError


def flaw(chunk: int) -> RunError:
    """The error about a chunk."""
    return RunError(
        f"packed edges of chunk {chunk} are malformed, or name a vertex that does not exist: the graph file or memory "
        "is damaged; check the file with: penstock verify"
    )
