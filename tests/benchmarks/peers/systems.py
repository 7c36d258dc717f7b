"""The programs: the files each needs, its command lines, and where its output names seconds and bytes.

Each is built by the user, and named with its folder by `--peer NAME=FOLDER`. A build that writes the value of every
vertex, in order, to the file that a variable names (`ANSWERS`) has its answers compared; others are timed only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from penstock.storage.format.graph import Graph

from benchmarks.peers import formats
from benchmarks.peers.process import run

ANSWERS = "PEER_ANSWERS"
"""The variable that names the file for a program's answer."""
SWEEPS = 10


@dataclass(frozen=True)
class Gap:
    """The GAP benchmark (Beamer, Asanovic, Patterson 2015), in memory; as many trials a process as are asked for."""

    folder: Path
    graph: Path
    weighted: Path
    delta: int = 1

    answers: ClassVar = {
        "bfs": "i4",
        "sssp": "i4",
        "pagerank10": "f4",
        "pagerank": "f4",
        "cc": "i4",
        "betweenness": "f4",
        "triangles": "u8",
    }

    def words(self, algorithm: str, source: int, trials: int) -> list[object]:
        """The command line of an algorithm."""
        kernel, options = {
            "bfs": ("bfs", ["-r", source]),
            "sssp": ("sssp", ["-r", source, "-d", self.delta]),
            "pagerank10": ("pr", ["-i", SWEEPS, "-t", 0]),
            "pagerank": ("pr", ["-i", 1000, "-t", 1e-6]),
            "cc": ("cc", []),
            "betweenness": ("bc", ["-i", 1, "-r", source]),
            "triangles": ("tc", []),
        }[algorithm]
        return [self.folder / kernel, "-f", self.weighted if kernel == "sssp" else self.graph, "-n", trials, *options]

    @staticmethod
    def seconds(text: str) -> list[float]:
        """Seconds of each trial."""
        return [float(found) for found in re.findall(r"Trial Time:\s+([\d.]+)", text)]


@dataclass(frozen=True)
class ACGraph:
    """ACGraph (Chen et al., SIGMOD 2026): asynchronous, from disk, a pool of blocks in memory."""

    folder: Path
    graph: Path
    threads: int
    pool_mib: int = 64

    answers: ClassVar = {"bfs": "i4", "cc": "i4"}
    parents: ClassVar = False

    @classmethod
    def prepared(cls, folder: Path, graph: Graph, stem: Path, threads: int) -> ACGraph:
        """Have its files made by its formatter, where they are not there."""
        rows, made = stem.with_suffix(".csr"), stem.with_suffix(".acg")
        if not made.exists():
            if not rows.exists():
                formats.write_csr(graph, rows)
            run([folder / "formatter", rows, made])
        return cls(folder, made, threads)

    def words(self, algorithm: str, source: int) -> list[object] | None:
        """The command line of an algorithm, None where it has none that ends in time."""
        name = {"bfs": "bfs", "cc": "wcc_lp"}.get(algorithm)
        options = ["-tn", self.threads, "-cmb", self.pool_mib, "-src", source]
        return None if name is None else [self.folder / name, self.graph, *options]

    @staticmethod
    def seconds(text: str) -> float:
        """Seconds of the algorithm."""
        return float(_found(r"calc: ([\d.]+)ms", text)) / 1e3


@dataclass(frozen=True)
class Blaze:
    """Blaze (Kim, Swanson, SC 2022): online binning, pages read asynchronously."""

    folder: Path
    index: Path
    neighbors: Path
    threads: int

    answers: ClassVar = {"bfs": "u4", "cc": "u4", "pagerank10": "f4"}
    parents: ClassVar = True

    @classmethod
    def prepared(cls, folder: Path, graph: Graph, stem: Path, threads: int) -> Blaze:
        """Write its files, where they are not there."""
        index, neighbors = stem.with_suffix(".blz.index"), stem.with_suffix(".blz.adj.1.0")
        if not index.exists() or not neighbors.exists():
            formats.write_blaze(graph, index, neighbors)
        return cls(folder, index, neighbors, threads)

    def words(self, algorithm: str, source: int) -> list[object] | None:
        """The command line of an algorithm."""
        name, options = {
            "bfs": ("bfs", [f"-startNode={source}"]),
            "cc": ("wcc", [f"-inIndexFilename={self.index}", f"-inAdjFilenames={self.neighbors}"]),
            "pagerank10": ("pagerank", [f"-maxIterations={SWEEPS}", "-epsilon=0", "-epsilon2=0"]),
        }[algorithm]
        sizes = [f"-computeWorkers={self.threads}", "-ioBufferSize=32", "-binSpace=16", "-binningRatio=0.5"]
        return [self.folder / name, *sizes, *options, self.index, self.neighbors]

    @staticmethod
    def seconds(text: str) -> float:
        """Seconds of the algorithm."""
        return float(_found(r"_MAIN, Time, TMAX, (\d+)", text)) / 1e3


@dataclass(frozen=True)
class GridGraph:
    """GridGraph (Zhu, Han, Chen, ATC 2015): a grid of edge blocks, streamed; its budget is a fraction of a GiB."""

    folder: Path
    grid: Path
    budget_mib: int = 128

    answers: ClassVar[dict[str, str]] = {}
    parents: ClassVar = True

    @classmethod
    def prepared(cls, folder: Path, graph: Graph, stem: Path, threads: int) -> GridGraph:
        """Have its grid made by its preprocess, where it is not there."""
        pairs, grid = stem.with_suffix(".pairs"), stem.with_suffix(".grid")
        if not grid.exists():
            formats.write_pairs(graph, pairs)
            run([folder / "preprocess", "-i", pairs, "-o", grid, "-v", graph.vertices, "-p", 8, "-t", 0])
            pairs.unlink()
        return cls(folder, grid)

    def words(self, algorithm: str, source: int) -> list[object] | None:
        """The command line of an algorithm."""
        budget = f"{self.budget_mib / 1024:g}"
        return {
            "bfs": [self.folder / "bfs", self.grid, source, budget],
            "cc": [self.folder / "wcc", self.grid, budget],
            "pagerank10": [self.folder / "pagerank", self.grid, SWEEPS, f"{self.budget_mib / 1024 * 1.25:g}"],
        }[algorithm]

    @staticmethod
    def seconds(text: str) -> float:
        """Seconds of the algorithm."""
        return float(_found(r"([\d.]+) seconds", text.strip().splitlines()[-1]))


OutOfCore = ACGraph | Blaze | GridGraph
OUT_OF_CORE: dict[str, type[ACGraph] | type[Blaze] | type[GridGraph]] = {
    "acgraph": ACGraph,
    "blaze": Blaze,
    "gridgraph": GridGraph,
}


def _found(pattern: str, text: str) -> str:
    """The one group of a pattern in a program's output. Raises RuntimeError where it is not there."""
    found = re.search(pattern, text)
    if found is None:
        raise RuntimeError(f"no {pattern!r} in the output:\n{text[-1000:]}")
    return found.group(1)
