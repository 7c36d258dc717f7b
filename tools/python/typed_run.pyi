"""Types of `penstock.run`: options and parameters of each program; written by tests/support/typed_run.py."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Required, TypedDict, Unpack, overload

from numpy.typing import NDArray
from penstock.engine.program.program import Program
from penstock.engine.resources.config import Tuning
from penstock.engine.state.records import RunProgress
from penstock.engine.state.result import Result
from penstock.storage.format.graph import Graph
from penstock.transfer.values.rates import Rates

Vertices = int | str | Sequence[int] | Sequence[str] | NDArray[Any]
"""Ids of the input."""
Given = Mapping[Any, float] | NDArray[Any]
"""Numbers of vertices."""

class TuningOptions(TypedDict, total=False):
    throttle: float | None
    """Bytes per second and stripe that are read."""
    model: Literal["measured", "published"]
    """The cost model."""
    link_rate: float | None
    """Bytes per second of an emulated link."""
    feedback: bool
    """Correct the rates by measured seconds of earlier iterations, if the link has a rate."""
    combine: int
    """Filter partitions that travel as one task, at most; 1: none."""
    priority: bool
    """Largest pending value first, instead of ascending order."""
    local_rounds: int
    """Further rounds on the edges of a loaded view (asynchronous programs)."""
    layers: int
    """Layers of rows of which one after another sends until it is quiet (programs of free order; it helps SSSP
    where edges do not all fit, and not PageRank); 0: no layers."""
    residency: Literal["value", "none"]
    """Which edges stay on a device that cannot hold all: what saves most traffic, or none."""

class RunOptions(TypedDict, total=False):
    progress: bool | Callable[[RunProgress], None]
    checkpoint: Path | str | None
    checkpoint_every: str | int | None
    resume: bool
    where: str | None
    weight_column: str | None
    host_memory: int | str | None
    """Most memory to allocate, for instance 800MiB; interpreter and libraries take up to 150MiB more. By default a
    share of what is free."""
    direct_io: bool
    """Read past the page cache, where possible."""
    scratch: Path | None
    """Folder for values of vertices that memory has no room for; beside the graph if none."""
    direction: Literal["auto", "push", "pull"]
    """Along out-edges, against in-edges, or whichever is cheaper now."""
    mode: Literal["auto", "sync", "async"]
    """Updates seen in the next iteration (sync) or at once (async)."""
    precision: Literal["double", "single"]
    """Type of real numbers: float64, or float32 in half of the memory (PageRank and programs like it)."""
    partition_bytes: int | str
    """Bytes of edges for which a route is chosen at once (32MiB)."""
    threads: int | None
    """Threads; every core by default."""
    device: str
    """cpu, cuda:N, or auto: the first GPU if there is one."""
    shares: Sequence[float] | None
    """Relative speeds of the ranks, by which they get edges at the start. By default their threads."""
    repartition: bool
    """Move edges between ranks while a program runs, where some are busy for longer."""
    device_memory: int | str | None
    """Most memory to take on the GPU (nine tenths of what is free)."""
    device_edge_memory: int | str | None
    """Most GPU memory for edges, those on their way included (what vertices leave)."""
    route: Literal["auto", "resident", "filter", "compaction", "zero-copy", "blocks", "cel"]
    """How edges reach the GPU; auto decides for every partition. cel: searches only."""
    packed: Literal["auto", "never"]
    """Whether edges that a GPU cannot hold plain travel to it bit-packed, and stay there so."""
    kernels: Literal["host", "reference", "cuda"]
    """reference: the plain Python definition; cuda: those of a GPU, simulated on an emulated device."""
    rates: Rates | None
    """What this machine moves per second; None: built-in figures."""
    tuning: Tuning | TuningOptions
    """How edges reach a device, in parts, for research and tests."""

class _Source(TypedDict, total=False):
    source: Required[Vertices]

class _Cutoff(TypedDict, total=False):
    cutoff: float | None

class _MaxIter(TypedDict, total=False):
    max_iter: int

class _Weight(TypedDict, total=False):
    weight: bool | str | None

class _Earlier(TypedDict, total=False):
    earlier: str | Path | None

class _Tol(TypedDict, total=False):
    tol: float

class _Seed(TypedDict, total=False):
    seed: int

class BfsOptions(RunOptions, _Source, _Cutoff, _MaxIter, total=False):
    parents: bool
    target: Vertices | None

class SsspOptions(RunOptions, _Source, _Weight, _Cutoff, _Earlier, _MaxIter, total=False):
    delta: float | None
    parents: bool | None
    target: Vertices | None

class DistancesOptions(RunOptions, _Source, _Weight, _Cutoff, total=False): ...

class WidestOptions(RunOptions, _Source, _Weight, _Cutoff, _MaxIter, total=False):
    parents: bool | None
    target: Vertices | None

class ReachabilityOptions(RunOptions, _Source, _MaxIter, total=False): ...

class PhpOptions(RunOptions, _Source, _Tol, _MaxIter, _Weight, total=False):
    damping: float
    alpha: float | None

class PagerankOptions(RunOptions, _Tol, _MaxIter, _Weight, _Earlier, total=False):
    damping: float
    personalization: Given | None
    alpha: float | None
    dangling: Given | None
    nstart: Given | None

class KatzOptions(RunOptions, _Tol, _MaxIter, _Weight, total=False):
    alpha: float
    beta: float
    normalized: bool

class EigenvectorOptions(RunOptions, _Tol, _MaxIter, _Weight, total=False): ...

class BetweennessOptions(RunOptions, _Seed, total=False):
    source: Vertices | None
    k: int | None
    normalized: bool
    raw: bool

class ClosenessOptions(RunOptions, _Seed, _Weight, total=False):
    source: Vertices | None
    k: int | None
    wf_improved: bool

class HarmonicOptions(RunOptions, _Seed, _Weight, total=False):
    source: Vertices | None
    k: int | None
    normalized: bool

class HyperballOptions(RunOptions, _Seed, _MaxIter, total=False):
    log2m: int
    reverse: bool

class WccOptions(RunOptions, _Earlier, total=False): ...

class LouvainOptions(RunOptions, _Seed, _Tol, _Weight, _Earlier, total=False):
    resolution: float
    sweeps: int
    iterations: int
    directed: bool

class LeidenOptions(RunOptions, _Seed, _Tol, _Weight, total=False):
    resolution: float
    sweeps: int
    iterations: int
    directed: bool

class CdlpOptions(RunOptions, _MaxIter, total=False): ...

class KcoreOptions(RunOptions, _MaxIter, total=False):
    k: Required[int]

class TrussnessOptions(RunOptions, total=False):
    k: int

class MsfOptions(RunOptions, _Weight, total=False): ...
class BridgesOptions(RunOptions, _Seed, total=False): ...

class FastrpOptions(RunOptions, _Seed, _Weight, _MaxIter, total=False):
    dimension: int
    steps: Sequence[float]

class CfOptions(RunOptions, _MaxIter, _Tol, _Seed, total=False):
    rank: int
    regularization: float
    rate: float
    momentum: float
    spread: float

class HeatOptions(RunOptions, _MaxIter, _Tol, _Weight, total=False):
    initial: Given | None
    fixed: Given | None
    ambient: float
    time_step: float | None

class CircuitOptions(RunOptions, _MaxIter, _Tol, _Weight, total=False):
    fixed: Required[Given]
    floating: bool

class NeuralOptions(RunOptions, _MaxIter, _Tol, _Weight, total=False):
    inputs: Required[Given]
    function: str
    gain: float
    bias: float

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
def run(
    program: Literal["php", "personalized_pagerank", "adsorption"],
    graph: Graph | Path | str,
    **options: Unpack[PhpOptions],
) -> Result: ...
@overload
def run(program: Literal["pagerank"], graph: Graph | Path | str, **options: Unpack[PagerankOptions]) -> Result: ...
@overload
def run(program: Literal["katz"], graph: Graph | Path | str, **options: Unpack[KatzOptions]) -> Result: ...
@overload
def run(
    program: Literal["eigenvector", "hits"], graph: Graph | Path | str, **options: Unpack[EigenvectorOptions]
) -> Result: ...
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
def run(program: Literal["wcc"], graph: Graph | Path | str, **options: Unpack[WccOptions]) -> Result: ...
@overload
def run(
    program: Literal["scc", "coloring", "articulation", "degrees", "triangles", "lcc"],
    graph: Graph | Path | str,
    **options: Unpack[RunOptions],
) -> Result: ...
@overload
def run(program: Literal["louvain"], graph: Graph | Path | str, **options: Unpack[LouvainOptions]) -> Result: ...
@overload
def run(program: Literal["leiden"], graph: Graph | Path | str, **options: Unpack[LeidenOptions]) -> Result: ...
@overload
def run(
    program: Literal["cdlp", "coreness", "mis"], graph: Graph | Path | str, **options: Unpack[CdlpOptions]
) -> Result: ...
@overload
def run(program: Literal["kcore"], graph: Graph | Path | str, **options: Unpack[KcoreOptions]) -> Result: ...
@overload
def run(
    program: Literal["trussness", "diameter"], graph: Graph | Path | str, **options: Unpack[TrussnessOptions]
) -> Result: ...
@overload
def run(program: Literal["msf", "strength"], graph: Graph | Path | str, **options: Unpack[MsfOptions]) -> Result: ...
@overload
def run(program: Literal["bridges"], graph: Graph | Path | str, **options: Unpack[BridgesOptions]) -> Result: ...
@overload
def run(program: Literal["fastrp"], graph: Graph | Path | str, **options: Unpack[FastrpOptions]) -> Result: ...
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
