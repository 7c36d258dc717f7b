"""What all tests of the networkx backend need."""

from __future__ import annotations

from collections.abc import Iterator

import networkx as nx
import pytest


@pytest.fixture(autouse=True)
def _kept_conversions() -> Iterator[None]:
    """networkx keeps converted graphs, which is wanted, and warns of it, which is not."""
    before = set(nx.config.warnings_to_ignore)
    nx.config.warnings_to_ignore.add("cache")
    yield
    nx.config.warnings_to_ignore = before
