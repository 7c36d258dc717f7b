"""What a run's record says besides what happened: the job as it took effect, versions, machine, graph, options."""

from __future__ import annotations

import platform
from contextlib import suppress
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from penstock.storage.base.budget import available_memory
from penstock.tools import job_file
from penstock.tools.job import Job
from penstock.tools.rates import Used
from penstock.tools.record_files import RATES

if TYPE_CHECKING:
    from penstock.engine.session import Session

SOFTWARE = ("penstock", "numpy", "numba", "llvmlite", "h5py", "zstandard", "pyarrow", "cupy-cuda13x", "numba-cuda")


def effective(job: Job, session: Session, used: Used) -> str:
    """The text of a job file with every option as it took effect, and every output by its name in the run directory."""
    portable = job.portable()
    found = dict(portable.given)
    found |= {"host_memory": session.config.memory_bytes, "threads": session.config.thread_count, "run_dir": "."}
    found["stripes"] = [path.absolute() for path in job.execution.stripes]
    if session.device is None:
        found["device"] = "cpu"
    if used.calibration is not None:
        found["rates"] = RATES
    return job_file.text_of(portable, found)


def facts_of(session: Session) -> dict[str, Any]:
    """What a run was made with, and on."""
    from penstock.engine.calibration.calibrate import machine_facts
    from penstock.storage.format.fingerprint import fingerprint
    from penstock.transfer.devices.host import HostDevice

    graph, config = session.graph, session.config
    device = session.device or HostDevice("cpu", config.thread_count)
    return {
        "versions": _versions(),
        "machine": machine_facts(device) | {"host": platform.node(), "system": platform.platform()},
        "device": device.name,
        "available_memory": available_memory(),
        "graph": {
            "path": graph.path and graph.path.absolute(),
            "id": graph.graph_id,
            **fingerprint(graph),
            "bytes": graph.file_bytes,
        },
        "options": {entry.name: getattr(config, entry.name) for entry in fields(config) if entry.name != "rates"},
    }


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in SOFTWARE:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
