"""`--devices auto`: all GPUs of this host, and a rank of its cores only where the forecast says that it pays."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.tools.base.output import seconds
from penstock.tools.run.rank_devices import threads_of
from penstock.tools.run.rates import rates_for

if TYPE_CHECKING:
    from penstock.engine.planning.rank_forecast import CoRun, SharedSweep
    from penstock.engine.program.program import Program
    from penstock.storage.format.graph import Graph
    from penstock.tools.run.job import Job


def auto_devices(job: Job, note: Callable[[str], None]) -> tuple[str, ...]:
    """The devices for a job: the cores where there is no GPU. `note` takes a line for people."""
    from penstock.transfer.devices import cuda

    gpus = tuple(f"cuda:{number}" for number in range(cuda.count()))
    if not gpus:
        return ("cpu",)
    found = _forecast(job, gpus, note)
    best = min(found, key=lambda one: one.alone / one.beside, default=None)
    both = best is not None and best.pays
    if best is not None:
        note(
            f"penstock: --devices auto takes {', '.join(gpus)}{' and the cores' if both else ''}: a sweep would take "
            f"{seconds(best.alone)} on GPUs alone, and {seconds(best.beside)} with the cores"
        )
    return (*gpus, "cpu") if both else gpus


def _forecast(job: Job, gpus: tuple[str, ...], note: Callable[[str], None]) -> list[CoRun]:
    """Of each program of the job."""
    from penstock.engine.planning.rank_forecast import co_run
    from penstock.engine.program.precision import formed
    from penstock.engine.resources.config import Config
    from penstock.transfer.devices.cuda import CudaDevice
    from penstock.transfer.values.rates import Rates

    options: dict[str, Any] = {name: value for name, value in job.execution.options.items() if name != "device"}
    config = Config.of(**options)
    threads = threads_of(config.thread_count, (*gpus, "cpu"))
    graph = job.opened()
    places = ((gpus[0], threads[0]), ("cpu", threads[-1]))
    kinds = [Config.of(**options | {"device": name, "threads": count}) for name, count in places]
    known = [rates_for(graph, kind, note, job.execution.rates, measure=False).rates for kind in kinds]
    device = CudaDevice(0, config.device_memory)
    room = config.device_edge_memory or device.memory_bytes
    device.close()
    gpu, cores = known[0] or Rates.pcie5(threads[0]), known[1] or Rates.host(threads[-1])
    made = (formed(step.make(lambda: graph), graph, config.mode, config.precision) for step in job.steps)
    works = [_sweep(program, graph, config.memory_bytes) for program in made]
    return [co_run(work, len(gpus), gpu, room, cores) for work in works]


def _sweep(program: Program, graph: Graph, host_memory: int) -> SharedSweep:
    """A sweep of a program over one adjacency of a graph; edges travel as they are stored, or plain if that is less."""
    from penstock.engine.planning.rank_forecast import SharedSweep, exchanged_bytes
    from penstock.engine.program.program import weighted

    with_weights, edges = weighted(program, graph), max(1, graph.out.edges)
    plain = graph.out.edge_bytes(with_weights=with_weights)
    stored = float(graph.out.chunk_bytes(with_weights).sum())
    disk = max(0.0, stored - host_memory)
    handed = exchanged_bytes(program, "pull", graph.vertices, graph.vertex_dtype.itemsize)
    return SharedSweep(edges, min(plain, stored / edges), handed, disk, plain if disk else 0.0)
