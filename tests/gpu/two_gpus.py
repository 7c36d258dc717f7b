"""Ranks on a machine with several GPUs: NCCL's verbs, every program's answer, and the speed of all against one.

    bash tests/gpu/on_device.sh python3 tests/gpu/two_gpus.py [--scale 25] [--only reach] > $OUT/two_gpus.txt

The wheels of mpi4py and mpich lie in `.whl/`. Prints one table last; exit code 1: something is wrong. `--devices`
names what the ranks of all stages compute on, so that the script itself can be tried on cores.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "gpu")]

import numpy as np  # noqa: E402 - after the path
from rank_stages import CASES, WAYS  # noqa: E402
from support.graphs import on_disk, skewed, weighed  # noqa: E402
from support.oracles import EdgeList  # noqa: E402

GROUPS = 4
"""The programs of each set of devices are run by so many jobs at once, since most of their time is compilation."""
PROGRAM_SECONDS = 100
"""Of the time of the script, for the programs' answers."""
PROMISES = {"sweep, streamed": 1.9, "sweep, caches": 2.0, "sssp, caches": 2.0, "wcc, caches": 2.0, "bfs, caches": 1.2}
"""How many times as fast two GPUs are to be."""


class Stages:
    """Starts stages, and says what has gone wrong. `table`: lines to print last."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self._folder, self._end = folder, time.monotonic() + seconds
        self._began = time.monotonic()
        self._count = 0
        self.table: list[str] = []
        self.wrong = 0

    @property
    def left(self) -> float:
        """Seconds until the script has to end."""
        return self._end - time.monotonic()

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self._began:6.1f}s {text}", flush=True)

    def tell(self, line: str, *, good: bool = True) -> None:
        """A line of the table."""
        self.table.append(f"{line}{'' if good else '   WRONG'}")
        self.wrong += not good
        self.say(self.table[-1])

    def start(self, *command: object) -> subprocess.Popen[str]:
        """Start a process in a group of its own."""
        path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
        return subprocess.Popen(
            [str(word) for word in command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"PYTHONPATH": path},
            start_new_session=True,
        )

    def stage(self, name: str, devices: str, *more: object) -> tuple[subprocess.Popen[str], Path]:
        """Start a stage of `rank_stages.py` in a rank for each device: the process, and the file of what it finds."""
        self._count += 1
        file = self._folder / f"{self._count}.jsonl"
        file.touch()
        ranks = len(devices.split(","))
        words = [sys.executable, TESTS / "gpu" / "rank_stages.py", name, devices, file, *more]
        return self.start(*([] if ranks == 1 else ["mpiexec", "-n", ranks]), *words), file

    def ended(self, process: subprocess.Popen[str], seconds: float) -> tuple[int, str]:
        """Its exit code and what it printed; it is killed with all that it started where it takes longer."""
        try:
            text, _ = process.communicate(timeout=max(1.0, min(seconds, self.left)))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            text, _ = process.communicate()
            text += "\nended: it took too long"
        return process.returncode, text


def found_in(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def verbs(stages: Stages, devices: str) -> None:
    """The stage of NCCL itself."""
    process, file = stages.stage("verbs", devices)
    code, text = stages.ended(process, 60)
    for one in found_in(file):
        took = f"{one['seconds'] * 1e3:8.2f} ms" if "seconds" in one else "right" if not one["wrong"] else one["wrong"]
        rate = f", {268.4 / one['seconds'] / 1e3:.0f} GB/s" if "MiB" in one["verb"] else ""
        stages.tell(f"nccl {one['verb']:<32} {took}{rate}", good=not one.get("wrong"))
    if code:
        stages.tell(f"nccl: exit code {code}: {last_of(text)}", good=False)


def programs(stages: Stages, folder: Path, sets: Sequence[str], names: Sequence[str], seconds: float) -> None:
    """Every program on these sets of devices, against the cores of one process."""
    running = []
    for devices in ("cpu", *sets):
        answers = folder / devices
        answers.mkdir()
        for group in range(GROUPS):
            part = names[group::GROUPS]
            if part:
                running.append(
                    (devices, *stages.stage("programs", devices, folder / "graph.h5", answers, ",".join(part)))
                )
    known: dict[str, dict[tuple[str, str], str]] = {devices: {} for devices in ("cpu", *sets)}
    end = time.monotonic() + seconds
    for devices, process, file in running:
        code, text = stages.ended(process, end - time.monotonic())
        known[devices] |= {(one["program"], one["way"]): one.get("error", "") for one in found_in(file)}
        if code:
            stages.say(f"{devices}: exit code {code}\n{text[-1500:]}")
    for devices in sets:
        bad = [text for case in known["cpu"] if (text := compared(folder, devices, case, known[devices]))]
        for text in bad:
            stages.tell(f"  {devices}: {text}", good=False)
        lacking = [name for name in names if (name, "resident") not in known["cpu"]]
        right = len(known["cpu"]) - len(bad)
        stages.tell(f"programs on {devices}: {right} of {len(names) * len(WAYS)} answers are those of the cores"
                    + (f"; not run: {' '.join(lacking)}" if lacking else ""))  # fmt: skip


def compared(folder: Path, devices: str, case: tuple[str, str], known: dict[tuple[str, str], str]) -> str:
    """What is wrong with an answer; nothing if it is that of the cores."""
    title = "-".join(case)
    if case not in known:
        return f"{title}: did not run"
    if known[case]:
        return f"{title}: {known[case]}"
    with np.load(folder / "cpu" / f"{title}.npz") as wanted, np.load(folder / devices / f"{title}.npz") as found:
        for name in wanted.files:
            ours, theirs = found[name], wanted[name]
            close = (
                np.allclose(ours, theirs, rtol=1e-6, atol=1e-9) if theirs.dtype.kind == "f" else (ours == theirs).all()
            )
            if not close:
                return f"{title}.{name}: {np.count_nonzero(ours != theirs)} of {ours.size} values differ"
    return ""


def reach(stages: Stages, devices: str, scale: int, edge_memory: str, seconds: float) -> None:
    """One GPU and all of them."""
    process, file = stages.stage("reach", devices, scale, edge_memory, seconds - 20)
    code, text = stages.ended(process, seconds)
    facts = found_in(file)
    for one in facts:
        if one["figure"] == "graph":
            stages.tell(
                f"R-MAT {scale}, {one['entries']:,} entries, made in {one['seconds']:.1f} s; {edge_memory} a GPU"
            )
    ranks = len(devices.split(","))
    for name, promise in PROMISES.items():
        of = {one["ranks"]: one for one in facts if one["figure"] == name and "ranks" in one}
        if 1 not in of or ranks not in of:
            stages.tell(f"{name:<18} not measured", good=False)
            continue
        one, more = (median(of[count]["ms"]) for count in (1, ranks))
        stages.tell(
            f"{name:<18} one {one:9.2f} ms   {ranks} ranks {more:9.2f} ms   {one / more:5.2f} x (wanted {promise})   "
            f"exchange {of[ranks]['exchange']:6.1%}   link {of[1]['link_gb']:.2f} and {of[ranks]['link_gb']:.2f} GB   "
            f"turns {' '.join(f'{ms:.1f}' for ms in of[1]['ms'])} | {' '.join(f'{ms:.1f}' for ms in of[ranks]['ms'])}"
        )
    if code:
        stages.tell(f"reach: exit code {code}: {last_of(text)}", good=False)
        stages.say(text[-3000:])


def commands(stages: Stages, folder: Path, devices: str) -> None:
    """`penstock run` itself: ranks that it starts, and ranks of mpiexec that find their devices."""
    tool = [sys.executable, "-m", "penstock.tools.main", "run", "pagerank", folder / "graph.h5", "--json", "--top", 3]
    tool += ["--no-calibrate"]
    on_all = ["--devices", devices if "cpu" in devices else "all"]
    on_cores = ["--device", "cpu"] if "cpu" in devices else []
    cases = {
        "cpu": [*tool, "--device", "cpu"],
        f"--devices {devices}": [*tool, "--devices", devices],
        " ".join(on_all): [*tool, *on_all],
        "mpiexec": ["mpiexec", "-n", len(devices.split(",")), *tool, *on_cores],
    }
    running = {name: stages.start(*command) for name, command in cases.items()}
    tops = {}
    for name, process in running.items():
        code, text = stages.ended(process, 90)
        lines = [line for line in text.splitlines() if line.startswith("{")]
        tops[name] = [one["vertex"] for one in json.loads(lines[-1])["top"]] if code == 0 and lines else None
        if code:
            stages.say(f"{name}: exit code {code}\n{text[-1500:]}")
        stages.tell(f"penstock run {name:<28} {tops[name]}", good=tops[name] is not None and tops[name] == tops["cpu"])


def last_of(text: str) -> str:
    """The last line that says something."""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def main() -> int:
    """Run the stages that were asked for, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", default="cuda:0,cuda:1")
    parser.add_argument("--mixed", default="cuda:0,cpu")
    parser.add_argument("--scale", type=int, default=25)
    parser.add_argument("--edge-memory", default="1GiB")
    parser.add_argument("--seconds", type=float, default=280, help="of the whole script")
    parser.add_argument("--only", default="verbs,commands,reach,programs")
    parser.add_argument("--programs", default=",".join(CASES))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, stages = Path(name), Stages(Path(name), asked.seconds)
        edges = weighed(EdgeList(3000, *skewed(3000, 30_000, 5), None, directed=True), "uint8")
        on_disk(edges, folder / "graph.h5", chunk_edges=1 << 10)
        only = asked.only.split(",")
        if "verbs" in only:
            verbs(stages, asked.devices)
        if "commands" in only:
            commands(stages, folder, asked.devices)
        if "reach" in only:
            seconds = stages.left - (PROGRAM_SECONDS if "programs" in only else 5)
            reach(stages, asked.devices, asked.scale, asked.edge_memory, seconds)
        if "programs" in only:
            programs(stages, folder, (asked.devices, asked.mixed), asked.programs.split(","), stages.left - 5)
        print("\n".join(["", *stages.table, "all right" if not stages.wrong else f"{stages.wrong} wrong"]))
    return 1 if stages.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
