"""What the suites share: repeating and noting a measurement, the `penstock` command, and the name of the machine.

A runner with `turns` measures in turn with another process (`alternate.py`): after each value it waits until the other
has measured the same, before it prepares what comes next.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import re
import resource
import subprocess
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from benchmarks.history import Figure

Once = Callable[[], float | Mapping[str, tuple[float, str]]]
"""Measures once: a value, or (value, unit) by name."""


class Turns(Protocol):
    """The other end of a comparison of two processes."""

    def take(self, suite: str, values: Mapping[str, tuple[float, str]]) -> None:
        """Send what was measured, (value, unit) by name, and return when it is this process's turn again."""


@dataclass(frozen=True)
class Choices:
    """What the command line chose; None: the suite's own default.

    memory: bytes of edges on the device as texts ("1GiB", "25%", "resident"). given: further options of a Session.
    only: parts of figure names, of which one must match. busy: loops that keep cores busy. peers: folders by name.
    """

    repeats: int = 5
    scale: int | None = None
    side: int = 1500
    memory: tuple[str, ...] = ()
    blocks: tuple[int, ...] = ()
    deltas: tuple[float, ...] = ()
    share: float = 0.25
    hubs: bool = False
    check: bool = False
    details: bool = False
    graph: str | None = None
    device: str = "cpu"
    folder: str | None = None
    busy: int = 0
    only: tuple[str, ...] = ()
    peers: dict[str, str] = field(default_factory=dict)
    given: dict[str, Any] = field(default_factory=dict)


class Runner:
    """Measures, collects the figures, and says on stderr what happens. `wrong`: answers that differ from the host's."""

    def __init__(self, choices: Choices, turns: Turns | None = None) -> None:
        self.choices = choices
        self.figures: list[Figure] = []
        self.wrong: list[str] = []
        self.suite = ""
        self._turns = turns
        self._began = time.perf_counter()

    @property
    def alternating(self) -> bool:
        """Whether another checkout measures the same in turn."""
        return self._turns is not None

    def say(self, text: str) -> None:
        if self._turns is None:
            print(f"{time.perf_counter() - self._began:7.1f}s {text}", file=sys.stderr, flush=True)

    def wants(self, *names: str) -> bool:
        """Whether the user asks for one of these figures."""
        only = self.choices.only
        return not only or any(word in name for word in only for name in names)

    def measure(
        self, name: str, unit: str, once: Once, *, untimed: int = 1, note: Callable[[], str] = lambda: ""
    ) -> None:
        """Call `once` as often as is asked for, after `untimed` calls; it returns a value, or several by name.

        note: what to say of the last call. The names of several values are appended to `name`.
        """
        if not self.wants(name):
            return
        for _ in range(untimed):
            once()
        values: dict[tuple[str, str], list[float]] = defaultdict(list)
        for _ in range(self.choices.repeats):
            found = once()
            parts = found if isinstance(found, Mapping) else {"": (found, unit)}
            for part, (value, of) in parts.items():
                values[f"{name} {part}".rstrip(), of].append(value)
            if self._turns is not None:
                self._turns.take(self.suite, {f"{name} {part}".rstrip(): each for part, each in parts.items()})
        for figure in (Figure(self.suite, *key, tuple(found), note()) for key, found in values.items()):
            self.figures.append(figure)
            times = " ".join(f"{value:.4g}" for value in figure.values)
            self.say(f"{figure.name}: {figure.median:.4g} {figure.unit} ({times}) {figure.note}".rstrip())

    def compare_answers(self, name: str, mine: Mapping[str, Any], other: Mapping[str, Any]) -> None:
        """Say whether two answers are equal; those with fractions may differ by 1e-9 of their sum, in L1."""
        for part, values in mine.items():
            expected = other[part]
            if values.dtype.kind == "f":
                gap = float(np.abs(values - expected).sum())
                good = gap <= (0.02 if "residual" in name else 1e-9) * max(1.0, float(np.abs(expected).sum()))
            else:
                gap, good = float(np.count_nonzero(values != expected)), bool(np.array_equal(values, expected))
            self.say(f"{name}.{part}: {'equal to the host' if good else 'WRONG'} ({gap:g})")
            if not good:
                self.wrong.append(f"{name}.{part}")


def _command() -> list[str]:
    """The words that start `penstock`, also beside a NumPy that is newer than numba (`prepare_cuda`)."""
    if hasattr(np, "row_stack"):
        return [sys.executable, "-m", "penstock.tools.main"]
    start = "runpy.run_module('penstock.tools.main', run_name='__main__', alter_sys=True)"
    return [sys.executable, "-c", f"import runpy, numpy; numpy.row_stack = numpy.vstack; {start}"]


COMMAND = _command()


def penstock(*words: object, variables: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run the command line in a process of its own: what it answers with --json, and `user_seconds` of its CPU time.

    Also `system_seconds`, `page_faults` and `wall_seconds`; `told_seconds`: what it says of these itself, or None.
    variables: added to the environment of the process.
    Raises RuntimeError with its errors when it fails.
    """
    began, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [*COMMAND, *map(str, words), "--json"], capture_output=True, text=True, env=os.environ | (variables or {})
    )
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"penstock {' '.join(map(str, words))}: exit code {done.returncode}\n{done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer | {
        "wall_seconds": wall,
        "told_seconds": answer.get("wall_seconds"),
        "user_seconds": after.ru_utime - used.ru_utime,
        "system_seconds": after.ru_stime - used.ru_stime,
        "page_faults": after.ru_minflt - used.ru_minflt,
    }


def wall_seconds(*words: object) -> float:
    """Seconds of a `penstock` process from start to end."""
    began = time.perf_counter()
    subprocess.run([*COMMAND, *map(str, words)], check=True, capture_output=True)
    return time.perf_counter() - began


def prepare_cuda() -> None:
    """Load numba-cuda, also beside a NumPy that is newer than it."""
    if not hasattr(np, "row_stack"):
        np.row_stack = np.vstack
    if importlib.util.find_spec("numba_cuda") is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            importlib.import_module("numba.cuda")


def gpu_name() -> str | None:
    """The model of the first GPU, None where there is none that CuPy can use."""
    try:
        import cupy

        return str(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode())
    except Exception:  # CuPy is not installed, or finds no driver: its errors have no common class
        return None


def machine_name(gpu: str | None, cpu: str, cores: int) -> str:
    """A short name that stays the same: the models of GPU and CPU and the count of cores, `h200-xeon-8480-16c`."""
    noise = r"\((?:r|tm|c)\)|@.*|\b(?:nvidia|intel|amd|cpu|processor|\d+-core|hbm\w*|pcie|graphics|geforce)\b"
    words = [re.sub(r"[^a-z0-9]+", "-", re.sub(noise, " ", name.lower())).strip("-") for name in (gpu or "", cpu)]
    return "-".join([*(word for word in words if word), f"{cores}c"])


def machine() -> str:
    """The name of this machine."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return machine_name(gpu_name(), models[0] if models else platform.machine(), len(os.sched_getaffinity(0)))


def checkout() -> Path:
    """The folder of the checkout whose package is imported here: what is measured."""
    spec = importlib.util.find_spec("penstock.engine")
    if spec is None or spec.origin is None:
        raise SystemExit("penstock cannot be imported here; install it, or set PYTHONPATH (README.md)")
    return Path(spec.origin).resolve().parents[1]


def commit_of(folder: Path) -> str:
    """The short name of a checkout's commit, with a `+` after it where the sources differ from it; "" without git."""
    try:
        found = [
            subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True, text=True).stdout.strip()
            for words in (
                ["rev-parse", "--short=7", "HEAD"],
                ["status", "--porcelain", "--", "engine", "storage", "transfer", "tools"],
            )
        ]
    except (OSError, subprocess.CalledProcessError):
        return ""
    return found[0] + ("+" if found[1] else "")
