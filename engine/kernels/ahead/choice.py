"""Which kernels a run uses, and the vertex state that they work on.

Kernels are of one of four kinds: `host`, those of the cores; `cuda`; `reference`, the plain Python definition; `plain`,
that in NumPy. Imports no compiler but that of the kernels that are asked for.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from penstock.engine.kernels.interface import ways_along
from penstock.engine.program.program import needs_rows
from penstock.engine.state.device_state import DeviceState
from penstock.engine.state.state import State, fill_ranges

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from penstock.engine.kernels.interface import Kernels
    from penstock.engine.kernels.probes.host_probes import Probes
    from penstock.engine.program.bindings import Author
    from penstock.engine.program.program import Program
    from penstock.engine.state.device_pages import DevicePages
    from penstock.engine.state.device_state import VertexState
    from penstock.engine.state.state import Fill
    from penstock.storage.checkpoint.state_pages import StatePages
    from penstock.storage.format.graph import Graph
    from penstock.transfer.devices.device import Device

MODULES = {
    "host": ("host.launch", "host.whole_rows.launch_rows", "host.edge_blocks"),
    "cuda": ("cuda.launch", "cuda.whole_rows.launch_rows", "cuda.edge_blocks"),
    "reference": ("reference.vertex", "reference.rows", "reference.edge_blocks"),
    "plain": ("reference.arrays", "reference.arrays", "reference.edge_blocks"),
}
"""Where the kernels of each kind are: those of programs on edges, on whole rows, and on the blocks of a list."""
NAMES = "Kernels", "RowKernels", "BlockKernels"
"""Of their classes, behind the kind: `HostKernels`."""


def kind_on(device: Device, asked: str) -> str:
    """The kind of kernels that a device runs where the option `kernels` asks for these."""
    return asked if asked == "reference" else device.kernels(asked)


def kernel_class(kind: str, graph: Graph, program: Program) -> Any:
    """Import the class of a program's kernels, and no compiler but theirs."""
    number = 2 if graph.layout == "list" else int(needs_rows(program))
    module = import_module(f"penstock.engine.kernels.{MODULES[kind][number]}")
    owner = "Reference" if kind == "plain" and number == 2 else kind.capitalize()  # of lists there is no other
    return getattr(module, owner + NAMES[number])


def new_kernels(
    kind: str, graph: Graph, program: Program, weighted: bool, placed: tuple[Device, dict[int, Any]],
    threads: tuple[int, int | None], phases: int,
) -> Kernels[Any]:  # fmt: skip
    """Kernels of a program that has so many phases, or is one of these.

    placed: the device and what indexes are on it. threads: ours, and those of all ranks.
    """
    where = {"cuda": placed, "host": threads}.get(kind, threads[:1])
    made: Any = kernel_class(kind, graph, program)(program, graph.vertex_dtype, weighted, *where)
    made.hot_first, made.phases = graph.hot_first, phases
    if graph.layout == "list":
        made.ways = ways_along(program.along, directed=graph.directed)
    return made  # type: ignore[no-any-return]


def has_state_there(kind: str) -> bool:
    """Whether vertex state is on the device, behind a link, for kernels of this kind."""
    return kind == "cuda"


def new_state(
    kind: str, graph: Graph, program: Program, author: Author, device: Device, given: Mapping[str, NDArray[Any]],
    fill: Fill, pages: StatePages | None = None,
) -> VertexState:  # fmt: skip
    """The state where kernels of this kind reach it; given, fill, pages: as of `State`."""
    if has_state_there(kind):
        span = 0, graph.vertices
        return DeviceState(program, author, span, graph.vertex_dtype, device, cast("DevicePages | None", pages), given)
    return State(program, author, 0, graph.vertices, graph.vertex_dtype, given, fill, pages)


def fill_of(kind: str, threads: int) -> Fill:
    """What writes first values to arrays of the host: the threads of its kernels, if these are used."""
    if kind != "host":
        return partial(fill_ranges, threads=threads)
    from penstock.engine.kernels.host.vertices import fill

    return partial(fill, threads=threads)


def probes_of(device: Device, threads: int, kernels: str) -> Probes:
    """What measures a device; kernels: the option, by which an emulated one may run a GPU's (simulated)."""
    if device.kernels(kernels) != "cuda":
        from penstock.engine.kernels.probes.host_probes import HostProbes

        return HostProbes(threads)
    from penstock.engine.kernels.probes.cuda_probes import CudaProbes  # numba.cuda only where a device is used

    return CudaProbes(device)
