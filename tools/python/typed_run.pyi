"""Types of `penstock.run`: options and parameters of each program; written by tests/support/typed_run.py."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Required, TypedDict, Unpack, overload

from numpy.typing import NDArray
from penstock.engine.program.program import Program
from penstock.engine.state.records import RunProgress
from penstock.engine.state.result import Result
from penstock.storage.format.graph import Graph
from penstock.transfer.values.rates import Rates

Vertices = int | str | Sequence[int] | Sequence[str] | NDArray[Any]
"""Ids of the input."""
Given = Mapping[Any, float] | NDArray[Any]
"""Numbers of vertices."""

class RunOptions(TypedDict, total=False):
    progress: bool | Callable[[RunProgress], None]
    checkpoint: Path | str | None
    checkpoint_every: str | int | None
    resume: bool
    host_memory: int | str | None
    partition_bytes: int | str
    threads: int | None
    direct_io: bool
    direction: Literal["auto", "push", "pull"]
    mode: Literal["auto", "sync", "async"]
    kernels: Literal["host", "reference", "cuda"]
    throttle: float | None
    device: str
    device_memory: int | str | None
    device_edge_memory: int | str | None
    route: Literal["auto", "resident", "filter", "compaction", "zero-copy", "blocks", "cel"]
    model: Literal["measured", "published"]
    link_rate: float | None
    feedback: bool
    combine: int
    priority: bool
    local_rounds: int
    layers: int
    residency: Literal["value", "none"]
    packed: Literal["auto", "never"]
    rates: Rates | None
    repartition: bool
    shares: Sequence[float] | None

class BfsOptions(RunOptions, total=False):
    source: Required[Vertices]
    parents: bool
    target: Vertices | None
    cutoff: float | None
    max_iter: int

class SsspOptions(RunOptions, total=False):
    source: Required[Vertices]
    delta: float | None
    weight: bool | str | None
    parents: bool | None
    target: Vertices | None
    cutoff: float | None
    max_iter: int

class DistancesOptions(RunOptions, total=False):
    source: Required[Vertices]
    weight: bool | str | None
    cutoff: float | None

class WidestOptions(RunOptions, total=False):
    source: Required[Vertices]
    weight: bool | str | None
    parents: bool | None
    target: Vertices | None
    cutoff: float | None
    max_iter: int

class ReachabilityOptions(RunOptions, total=False):
    source: Required[Vertices]
    max_iter: int

class PhpOptions(RunOptions, total=False):
    source: Required[Vertices]
    damping: float
    tol: float
    max_iter: int
    alpha: float | None
    weight: bool | str | None

class PagerankOptions(RunOptions, total=False):
    damping: float
    tol: float
    max_iter: int
    personalization: Given | None
    alpha: float | None
    weight: bool | str | None
    dangling: Given | None
    nstart: Given | None

class PersonalizedPagerankOptions(RunOptions, total=False):
    source: Required[Vertices]
    damping: float
    tol: float
    max_iter: int
    alpha: float | None
    weight: bool | str | None

class KatzOptions(RunOptions, total=False):
    alpha: float
    beta: float
    tol: float
    max_iter: int
    normalized: bool
    weight: bool | str | None

class EigenvectorOptions(RunOptions, total=False):
    tol: float
    max_iter: int
    weight: bool | str | None

class HitsOptions(RunOptions, total=False):
    tol: float
    max_iter: int
    weight: bool | str | None

class BetweennessOptions(RunOptions, total=False):
    source: Vertices | None
    k: int | None
    normalized: bool
    seed: int
    raw: bool

class ClosenessOptions(RunOptions, total=False):
    source: Vertices | None
    k: int | None
    seed: int
    wf_improved: bool
    weight: bool | str | None

class HarmonicOptions(RunOptions, total=False):
    source: Vertices | None
    k: int | None
    seed: int
    normalized: bool
    weight: bool | str | None

class HyperballOptions(RunOptions, total=False):
    log2m: int
    seed: int
    reverse: bool
    max_iter: int

class AdsorptionOptions(RunOptions, total=False):
    source: Required[Vertices]
    damping: float
    tol: float
    max_iter: int
    alpha: float | None
    weight: bool | str | None

class LouvainOptions(RunOptions, total=False):
    resolution: float
    seed: int
    tol: float
    sweeps: int
    weight: bool | str | None

class LeidenOptions(RunOptions, total=False):
    resolution: float
    seed: int
    tol: float
    sweeps: int
    weight: bool | str | None
    iterations: int

class CdlpOptions(RunOptions, total=False):
    max_iter: int

class CorenessOptions(RunOptions, total=False):
    max_iter: int

class KcoreOptions(RunOptions, total=False):
    k: Required[int]
    max_iter: int

class MisOptions(RunOptions, total=False):
    max_iter: int

class MsfOptions(RunOptions, total=False):
    weight: bool | str | None

class BridgesOptions(RunOptions, total=False):
    seed: int

class DiameterOptions(RunOptions, total=False):
    k: int

class CfOptions(RunOptions, total=False):
    rank: int
    max_iter: int
    regularization: float
    rate: float
    momentum: float
    tol: float
    seed: int
    spread: float

class HeatOptions(RunOptions, total=False):
    initial: Given | None
    fixed: Given | None
    ambient: float
    time_step: float | None
    max_iter: int
    tol: float
    dtype: str
    weight: bool | str | None

class CircuitOptions(RunOptions, total=False):
    fixed: Required[Given]
    max_iter: int
    tol: float
    floating: bool
    dtype: str
    weight: bool | str | None

class NeuralOptions(RunOptions, total=False):
    inputs: Required[Given]
    function: str
    gain: float
    bias: float
    max_iter: int
    tol: float
    dtype: str
    weight: bool | str | None

@overload
def run(program: Literal["bfs"], graph: Graph | Path | str, **options: Unpack[BfsOptions]) -> Result: ...
@overload
def run(program: Literal["sssp"], graph: Graph | Path | str, **options: Unpack[SsspOptions]) -> Result: ...
@overload
def run(program: Literal["distances"], graph: Graph | Path | str, **options: Unpack[DistancesOptions]) -> Result: ...
@overload
def run(program: Literal["widest"], graph: Graph | Path | str, **options: Unpack[WidestOptions]) -> Result: ...
@overload
def run(
    program: Literal["reachability"], graph: Graph | Path | str, **options: Unpack[ReachabilityOptions]
) -> Result: ...
@overload
def run(program: Literal["php"], graph: Graph | Path | str, **options: Unpack[PhpOptions]) -> Result: ...
@overload
def run(program: Literal["pagerank"], graph: Graph | Path | str, **options: Unpack[PagerankOptions]) -> Result: ...
@overload
def run(
    program: Literal["personalized_pagerank"], graph: Graph | Path | str, **options: Unpack[PersonalizedPagerankOptions]
) -> Result: ...
@overload
def run(program: Literal["katz"], graph: Graph | Path | str, **options: Unpack[KatzOptions]) -> Result: ...
@overload
def run(
    program: Literal["eigenvector"], graph: Graph | Path | str, **options: Unpack[EigenvectorOptions]
) -> Result: ...
@overload
def run(program: Literal["hits"], graph: Graph | Path | str, **options: Unpack[HitsOptions]) -> Result: ...
@overload
def run(
    program: Literal["betweenness"], graph: Graph | Path | str, **options: Unpack[BetweennessOptions]
) -> Result: ...
@overload
def run(program: Literal["closeness"], graph: Graph | Path | str, **options: Unpack[ClosenessOptions]) -> Result: ...
@overload
def run(program: Literal["harmonic"], graph: Graph | Path | str, **options: Unpack[HarmonicOptions]) -> Result: ...
@overload
def run(program: Literal["hyperball"], graph: Graph | Path | str, **options: Unpack[HyperballOptions]) -> Result: ...
@overload
def run(program: Literal["adsorption"], graph: Graph | Path | str, **options: Unpack[AdsorptionOptions]) -> Result: ...
@overload
def run(program: Literal["wcc"], graph: Graph | Path | str, **options: Unpack[RunOptions]) -> Result: ...
@overload
def run(program: Literal["scc"], graph: Graph | Path | str, **options: Unpack[RunOptions]) -> Result: ...
@overload
def run(program: Literal["louvain"], graph: Graph | Path | str, **options: Unpack[LouvainOptions]) -> Result: ...
@overload
def run(program: Literal["leiden"], graph: Graph | Path | str, **options: Unpack[LeidenOptions]) -> Result: ...
@overload
def run(program: Literal["cdlp"], graph: Graph | Path | str, **options: Unpack[CdlpOptions]) -> Result: ...
@overload
def run(program: Literal["coreness"], graph: Graph | Path | str, **options: Unpack[CorenessOptions]) -> Result: ...
@overload
def run(program: Literal["kcore"], graph: Graph | Path | str, **options: Unpack[KcoreOptions]) -> Result: ...
@overload
def run(program: Literal["mis"], graph: Graph | Path | str, **options: Unpack[MisOptions]) -> Result: ...
@overload
def run(program: Literal["coloring"], graph: Graph | Path | str, **options: Unpack[RunOptions]) -> Result: ...
@overload
def run(program: Literal["msf"], graph: Graph | Path | str, **options: Unpack[MsfOptions]) -> Result: ...
@overload
def run(program: Literal["bridges"], graph: Graph | Path | str, **options: Unpack[BridgesOptions]) -> Result: ...
@overload
def run(program: Literal["articulation"], graph: Graph | Path | str, **options: Unpack[RunOptions]) -> Result: ...
@overload
def run(program: Literal["diameter"], graph: Graph | Path | str, **options: Unpack[DiameterOptions]) -> Result: ...
@overload
def run(program: Literal["degrees"], graph: Graph | Path | str, **options: Unpack[RunOptions]) -> Result: ...
@overload
def run(program: Literal["triangles"], graph: Graph | Path | str, **options: Unpack[RunOptions]) -> Result: ...
@overload
def run(program: Literal["lcc"], graph: Graph | Path | str, **options: Unpack[RunOptions]) -> Result: ...
@overload
def run(program: Literal["cf"], graph: Graph | Path | str, **options: Unpack[CfOptions]) -> Result: ...
@overload
def run(program: Literal["heat"], graph: Graph | Path | str, **options: Unpack[HeatOptions]) -> Result: ...
@overload
def run(program: Literal["circuit"], graph: Graph | Path | str, **options: Unpack[CircuitOptions]) -> Result: ...
@overload
def run(program: Literal["neural"], graph: Graph | Path | str, **options: Unpack[NeuralOptions]) -> Result: ...
@overload
def run(program: Program, graph: Graph | Path | str, **options: Unpack[RunOptions]) -> Result: ...
@overload
def run(program: type[Program], graph: Graph | Path | str, **options: Any) -> Result: ...
