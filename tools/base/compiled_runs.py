"""What `penstock compile` runs to find out which kernels there are: small graphs, and programs in all their ways.

A word of a line that begins with / is a file of the folder in which it is run.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.engine.programs.catalogue import ProgramInfo

MAKING = """
generate rmat --scale 9 --edge-factor 8 --weights 1..9 --output /rmat.txt
generate grid --rows 20 --columns 20 --output /grid.h5
generate uniform --vertices 400 --edges 3000 --output /pairs.bin
generate web --vertices 400 --output /web.txt.gz
generate rmat --scale 14 --edge-factor 64 --direction both --output /disk.h5 --host-memory 64MiB
generate uniform --vertices 1048576 --edges 1048576 --direction both --output /many.h5
convert /pairs.bin /pairs.h5 --format binary64
convert /1.txt /plain.h5 --no-weights --direction both
convert /1.txt /both.h5 --no-weights --undirected
convert /1.txt /1.h5 --weights --direction both
convert /100.txt /100.h5 --weights --direction both
convert /1000.txt /1000.h5 --weights --direction both
convert /0.5.txt /0.5.h5 --weights --direction both
convert /0.1.txt /0.1.h5 --weights --direction both
convert /1.txt /list.h5 --layout list --no-weights
convert /1.txt /weighted-list.h5 --layout list --weights
append /list.h5 /pairs.bin --format binary64
append /plain.h5 /pairs.bin --format binary64
export /1.h5 /1.csv
export /0.1.h5 /0.1.parquet
export /list.h5 /list.tsv.gz
convert /1.csv /csv.h5 --weights --direction both
convert /0.1.parquet /parquet.h5 --direction both
convert /names.csv /names.h5 --renumber --direction both
convert /names.csv /sides.h5 --bipartite
convert /names.csv /listed.h5 --renumber --vertices /people.csv
convert /arcs.gr /dimacs.h5
convert /entries.mtx /matrix.h5
convert /mesh.graph /mesh.h5
convert /rows.adj /rows.h5
convert /1.txt /merged.h5 --weights --symmetrize --dedupe sum --drop-self-loops
convert /1.txt /numbered.h5 --weights --renumber
convert /1.txt /degree.h5 --no-weights --order degree
convert /1.txt /hubs.h5 --no-weights --order hubs
convert /1.txt /paths.h5 --no-weights --order paths
convert /list.h5 /sorted.h5
info /plain.h5 --degrees
verify /1.h5
verify /list.h5
verify /names.h5
extract /plain.h5 /around.h5 --around 1 --hops 2
extract /1.h5 /light.h5 --weights ..5 --drop-isolated
extract /plain.h5 /core.h5 --core 2
extract /plain.h5 /largest.h5 --largest-component
walk /plain.h5 --length 8 --walks-per-vertex 2 --output /walks.txt
walk /1.h5 --length 8 --walks-per-vertex 2 --p 0.5 --q 2 --output /walks.npy
walk /disk.h5 --threads 2 --length 4 --walks-per-vertex 1 --host-memory 16MiB --output /walks.csv
similarity /both.h5 --k 5 --output /similar.csv
similarity /plain.h5 --pairs /pairs.csv --output /pairs-similar.csv
calibrate --device cpu --file /disk.h5
demo
"""
GRAPHS = "/plain.h5", "/both.h5", "/list.h5"
WEIGHTED = "/1.h5", "/100.h5", "/1000.h5", "/0.5.h5", "/0.1.h5", "/weighted-list.h5"
"""With weights of each type."""
NEEDED = {"source": "--source 1", "k": "--k 2", "fixed": "--fixed /held.csv", "inputs": "--inputs /held.csv"}
"""How parameters are given that a program cannot do without; a word that begins with / is a file."""
BESIDES = {"katz": ("--alpha 0.0001",), "heat": ("--fixed /held.csv",)}
"""What some programs get besides: no graph fits their defaults."""
MORE = {"parents": "--parents", "target": "--target 2", "cutoff": "--cutoff 5", "k": "--k 2", "source": "--source 1"}
"""Parameters that make further runs."""
FEW = {"k": "--k 2", "max_iter": "--max-iter 3"}
"""What makes a run on a graph that does not fit short."""
WAYS = "--threads 1", "--direction push", "--direction pull", "--mode async"
"""Of runs on the first graph, and on the first with weights."""
ON_DISK, LEAST = "/disk.h5 --threads 2 --host-memory", "12MiB"
"""A graph that does not fit into so much memory, which more threads' buffers would exceed."""
BUDGETS = {"cdlp": "20MiB", "hyperball": "20MiB"} | dict.fromkeys(("triangles", "lcc"), "42MiB")
BUDGETS |= dict.fromkeys(("louvain", "leiden"), "67MiB")
"""Of programs that take more."""
NARROW = {"bfs": ("25MiB", "21MiB --no-parents"), "reachability": ("21MiB",)}
"""Of programs with a form for short memory, on a graph of many vertices: 1 MiB above the least."""
FITTING = "degrees", "cf"
"""Programs that do not read that graph from disk: one takes so much that it fits, and it has no ratings."""
PHASES_OF_ROWS = "louvain", "leiden"
"""Programs with phases on whole rows, which a list does not have."""
FORMED = "pagerank", "personalized_pagerank"
"""Programs with `vertex` that have a form without it for `--mode async`; others refuse that."""


def write_inputs(folder: Path) -> None:
    """Write the edges and values that `MAKING` and the programs read."""
    draw = random.Random(1)
    ends = [(v, v + 1) for v in range(1, 100)]
    ends += [(int(300 * draw.random() ** 2) + 1, draw.randrange(1, 300)) for _ in range(3000)]
    edges = [(u, v, draw.randrange(1, 250)) for u, v in ends]
    for unit in ("0.1", "0.5", "1", "100", "1000"):
        text = "".join(f"{u} {v} {w * float(unit):g}\n" for u, v, w in edges)
        (folder / f"{unit}.txt").write_text(text, encoding="ascii")
    arcs = "".join(f"a {u} {v} {w}\n" for u, v, w in edges)
    entries = "".join(f"{u} {v} {w}\n" for u, v, w in edges)
    texts = {
        "names.csv": "from,to\n" + "".join(f"a{u},b{v}\n" for u, v, _ in edges),
        "people.csv": "id,age\n" + "".join(f"{side}{v},{v}\n" for side in "ab" for v in range(302)),
        "pairs.csv": "1,2\n3,4\n",
        "held.csv": "1,1.0\n7,0.5\n",
        "arcs.gr": f"p sp 301 {len(edges)}\n{arcs}",
        "entries.mtx": f"%%MatrixMarket matrix coordinate integer general\n301 301 {len(edges)}\n{entries}",
        "mesh.graph": "3 2\n2 3\n1\n1\n",
        "rows.adj": "1 2 3\n2 3\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="ascii")


def runs_of(info: ProgramInfo) -> Iterator[str]:
    """Command lines that run a program in all ways that have kernels of their own."""
    from penstock.engine.program.program import needs_rows
    from penstock.engine.programs.table import PROGRAMS

    kind = PROGRAMS[info.name]
    of_rows = info.name in PHASES_OF_ROWS or needs_rows(kind)
    synchronous = of_rows or (kind.vertex is not None and info.name not in FORMED)
    parameters = inspect.signature(kind).parameters
    needed = [NEEDED[name] for name, one in parameters.items() if one.default is one.empty]
    line = " ".join(["run", info.name, "--no-calibrate --device cpu", *needed, *BESIDES.get(info.name, ())])
    groups = [
        graphs
        for graphs, serves in ((GRAPHS, not info.needs_weights), (WEIGHTED, info.weighted or info.needs_weights))
        if serves
    ]
    more = [words for name, words in MORE.items() if name in parameters and words not in needed]
    ways = [way for way in WAYS if not (way == "--mode async" and synchronous)]
    for graphs in groups:
        for graph in graphs:
            if not ("list" in graph and of_rows):
                yield f"{line} {graph} --threads 2"
        for words in (*ways, *more):
            yield f"{line} {graphs[0]} {words}"
    if info.name not in FITTING:
        few = [short for name, short in FEW.items() if name in parameters and short not in needed]
        yield " ".join([line, ON_DISK, BUDGETS.get(info.name, LEAST), *few])
    yield from (f"{line} /many.h5 --threads 2 --host-memory {budget}" for budget in NARROW.get(info.name, ()))


def lines_of(programs: list[ProgramInfo]) -> Iterator[str]:
    """Command lines that make the graphs, and run the programs on them."""
    yield from MAKING.strip().splitlines()
    for info in programs:
        yield from runs_of(info)
