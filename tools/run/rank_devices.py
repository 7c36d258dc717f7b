"""Which device each rank of a host computes on, and its part of the host's threads and memory.

Ranks that `--devices` started have the device that it names for them. Those that mpiexec or srun started take theirs
from `--devices`, or with `--device auto` the GPU with the number of their place on the host. `--devices auto` takes all
GPUs of this host, and a rank of its cores only where the forecast says that it pays.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.storage.base.errors import InputError
from penstock.tools.base.joined_ranks import LAUNCHED
from penstock.tools.base.output import seconds
from penstock.tools.run.rates import rates_for
from penstock.tools.run.run_options import ALL, AUTO, names_of

if TYPE_CHECKING:
    from penstock.engine.planning.rank_forecast import CoRun, SharedSweep
    from penstock.engine.program.program import Program
    from penstock.storage.format.graph import Graph
    from penstock.tools.base.joined_ranks import Joined
    from penstock.tools.run.job import Job

GPU_THREADS = 4
"""Most threads of a GPU's rank beside ranks of CPU cores: it reads and gathers with them, and computes with none."""


def gpus_here() -> tuple[str, ...]:
    """The names of all GPUs of this host."""
    from penstock.transfer.devices import cuda

    return tuple(f"cuda:{number}" for number in range(cuda.count()))


def all_gpus() -> tuple[str, ...]:
    """The names of all GPUs of this host. Raises InputError where there is none."""
    found = gpus_here()
    if not found:
        raise InputError(
            "--devices all: CUDA sees no device here; check the driver with nvidia-smi, or take ranks of CPU cores, as "
            "in --devices cpu,cpu"
        )
    return found


def options_of_rank(given: Mapping[str, Any], devices: Sequence[str], own: int) -> dict[str, Any]:
    """Of the engine's options that were given those of a rank: ranks of a host divide its memory and its threads.

    devices: of each rank of the host, in their order; own: which of them it is.
    """
    from penstock.engine.resources.config import Config

    config = Config.of(**given)
    return {
        **given,
        "device": devices[own],
        "threads": threads_of(config.thread_count, devices)[own],
        "host_memory": config.memory_bytes // len(devices),
    }


def threads_of(threads: int, devices: Sequence[str]) -> list[int]:
    """How many of the host's threads each of its ranks takes: equal parts, but a GPU beside cores few."""
    equal = max(1, threads // len(devices))
    gpus = sum(_is_gpu(name) for name in devices)
    if gpus in (0, len(devices)):
        return [equal] * len(devices)
    few = min(equal, GPU_THREADS)
    rest = max(1, (threads - gpus * few) // (len(devices) - gpus))
    return [few if _is_gpu(name) else rest for name in devices]


def host_ranks(joined: Joined, devices: tuple[str, ...], device: str) -> tuple[tuple[str, ...], int]:
    """Which devices the ranks of this host compute on, and which of them this is. Raises InputError for too few GPUs.

    devices: as `--devices` names them, none without it; device: as `--device` does. All ranks call it.
    """
    from penstock.engine.ranks.rank_devices import devices_of_host

    launched = os.environ.get(LAUNCHED)
    names = names_of(launched) if launched else () if devices == (AUTO,) else devices
    return devices_of_host(joined.communicator, _named(names, joined) if names else device)


def _is_gpu(name: str) -> bool:
    return name.startswith("cuda")


def _named(names: tuple[str, ...], joined: Joined) -> str:
    """The device that `--devices` names for this rank."""
    names = all_gpus() if names == (ALL,) else names
    size, local = joined.communicator.size, len(joined.mates)
    if len(names) == local:
        return names[joined.mates.index(joined.communicator.rank)]
    if len(names) == size:
        return names[joined.communicator.rank]
    raise InputError(
        f"--devices names {len(names)} devices, and there are {size} ranks, {local} of them on this host: name one for "
        "each rank of a host"
    )


def auto_devices(job: Job, note: Callable[[str], None]) -> tuple[str, ...]:
    """The devices for a job: the cores where there is no GPU. `note` takes a line for people."""
    gpus = gpus_here()
    if not gpus:
        return ("cpu",)
    found = _co_runs(job, gpus, note)
    best = min(found, key=lambda one: one.alone / one.beside, default=None)
    both = best is not None and best.pays
    if best is not None:
        note(
            f"penstock: --devices auto takes {', '.join(gpus)}{' and the cores' if both else ''}: a sweep would take "
            f"{seconds(best.alone)} on GPUs alone, and {seconds(best.beside)} with the cores"
        )
    return (*gpus, "cpu") if both else gpus


def _co_runs(job: Job, gpus: tuple[str, ...], note: Callable[[str], None]) -> list[CoRun]:
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
