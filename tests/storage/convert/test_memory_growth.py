"""The budget is a ceiling: peak memory of a conversion whose input is three to ten times as large."""

import re
from pathlib import Path

import numpy as np
import pytest
from penstock.storage.base.errors import InputError
from penstock.storage.convert.sort.options import ConvertOptions
from penstock.storage.format.graph import Graph
from support.faults import python

BUDGET = 40 << 20
SCRIPT = """
import gc
import sys
from pathlib import Path

import numpy as np

from penstock.storage.base import budget
from penstock.storage.companion.process import install
from penstock.storage.convert.convert import convert
from penstock.storage.convert.sort.options import ConvertOptions
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.open_source import open_source

memory, raw, folder, extra = int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), eval(sys.argv[4])
rows = raw.name == "offsets"
install()  # as the command: kernels that are missing are compiled by another process

def run(path, name):
    paths = [path, path.with_name("neighbors")] if rows else [path]
    source = open_source(paths, "csr" if rows else "binary32", IngestOptions(host_memory=memory, threads=2))
    options = ConvertOptions(host_memory=memory, threads=2, scratch=folder, **extra)
    return convert(source, folder / name, options)

tiny = folder / "tiny"
tiny.mkdir()
np.arange(4001, dtype="<u8" if rows else "<u4")[: 4001 if rows else 4000].tofile(tiny / raw.name)
np.arange(4000, dtype="<u4")[::-1].tofile(tiny / "neighbors")
run(tiny / raw.name, "tiny.h5")
gc.collect()
before = budget.resident_bytes()
try:
    open("/proc/self/clear_refs", "w").write("5")
except OSError:
    sys.exit("no peak")
report = run(raw, "graph.h5")
print(budget.peak_resident_bytes() - before, report.scratch_bytes, report.edges)
"""


def grown(raw: Path, folder: Path, options: str, budget: int = BUDGET) -> tuple[int, int, int]:
    """Bytes of growth, bytes of scratch, edges written."""
    done = python(SCRIPT, str(budget), str(raw), str(folder), options)
    if "no peak" in done.stderr:
        pytest.skip("this kernel does not let us reset the peak")
    assert done.returncode == 0, done.stderr
    growth, scratch, edges = map(int, done.stdout.split())
    assert {path.name for path in folder.iterdir()} <= {"raw", "offsets", "neighbors", "tiny", "tiny.h5", "graph.h5"}
    return growth, scratch, edges


@pytest.mark.parametrize(
    ("options", "vertices", "times"),
    [
        ("{'direction': 'both', 'dedupe': 'first'}", 1 << 20, 3),
        pytest.param("{'direction': 'both', 'dedupe': 'first'}", 1 << 20, 10, marks=pytest.mark.full),
        pytest.param("{'order': 'degree', 'direction': 'both'}", 1 << 20, 3, marks=pytest.mark.full),
        pytest.param("{'order': 'hubs'}", 1 << 19, 5, marks=pytest.mark.full),
        ("{'order': 'paths'}", 1 << 18, 3),
    ],
)
def test_random_edges(tmp_path: Path, options: str, vertices: int, times: int) -> None:
    """Orders keep more of each vertex, not of each edge."""
    raw = tmp_path / "raw"
    count = times * BUDGET // 8
    random = np.random.default_rng(1)
    with raw.open("wb") as file:
        for _ in range(times):
            random.integers(0, vertices, count // times * 2, np.uint32).tofile(file)
    growth, scratch, edges = grown(raw, tmp_path, options)
    assert growth <= BUDGET
    assert scratch > 0.8 * times * BUDGET
    assert 0.9 * count < edges <= count


def test_the_least_budget_is_taken_at_its_word(tmp_path: Path) -> None:
    """Below it one error before anything is read, which names it."""
    with pytest.raises(
        InputError, match=r"--host-memory 1.0 MiB is too little to convert; give at least \d+MiB"
    ) as said:
        ConvertOptions(host_memory=1 << 20)
    least = int(re.findall(r"at least (\d+)MiB", str(said.value))[0]) << 20
    with pytest.raises(InputError, match="too little"):
        ConvertOptions(host_memory=least - 1)
    raw = tmp_path / "raw"
    np.random.default_rng(4).integers(0, 1 << 20, 3 * least // 4, np.uint32).tofile(raw)
    growth, scratch, _ = grown(raw, tmp_path, "{}", least)
    assert growth <= least
    assert scratch > 2 * least


def test_a_star(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    count = 3 * BUDGET // 8
    pairs = np.full((count, 2), 9, "<u4")
    pairs[:, 1] = np.random.default_rng(2).integers(0, 1 << 22, count)
    pairs.tofile(raw)
    growth, scratch, edges = grown(raw, tmp_path, "{}")
    assert growth <= BUDGET
    assert scratch > 1.6 * 3 * BUDGET
    assert edges == count
    graph = Graph.open(tmp_path / "graph.h5")
    assert graph.out.index().degrees(9, 10).tolist() == [count]


def test_unsorted_rows_and_one_that_is_longer_than_memory(tmp_path: Path) -> None:
    """Raw CSR: rows are sorted piece by piece, and only the long one is spilled."""
    rows, long = 10_000, 3 * BUDGET // 8
    offsets = np.arange(rows + 1, dtype="<u8") * 1000
    offsets[rows // 2 :] += long
    offsets.tofile(tmp_path / "offsets")
    random = np.random.default_rng(3)
    with (tmp_path / "neighbors").open("wb") as file:
        for _ in range(5):
            random.integers(0, rows, int(offsets[-1]) // 5, np.uint32).tofile(file)
        np.zeros(int(offsets[-1]) % 5, "<u4").tofile(file)
    growth, scratch, edges = grown(tmp_path / "offsets", tmp_path, "{}")
    assert growth <= BUDGET
    assert 8 * long <= scratch < 8 * long * 1.5
    assert edges == offsets[-1]
    assert Graph.open(tmp_path / "graph.h5").out.index().degrees(rows // 2 - 1, rows // 2).tolist() == [1000 + long]
