"""Ranks on a machine with several GPUs: NCCL's verbs, every program's answer, and the speed of all against one.

    bash tests/gpu/on_device.sh python3 tests/gpu/two_gpus.py [--scale 25] [--only reach] > $OUT/two_gpus.txt

The wheels of mpi4py and mpich lie in `.whl/`. Prints one table last; exit code 1: something is wrong. `--devices`
names what the ranks of all stages compute on, so that the script itself can be tried on cores.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "gpu")]

import numpy as np  # noqa: E402 - after the path
import psutil  # noqa: E402
from rank_stages import CASES, WAYS  # noqa: E402
from stages import Stages, found_in, last_of  # noqa: E402
from support.graphs import on_disk, skewed, weighed  # noqa: E402
from support.oracles import EdgeList  # noqa: E402

GROUPS = 4
"""The programs of each set of devices are run by so many jobs at once, since most of their time is compilation."""
PROGRAM_SECONDS = 100
"""Of the time of the script, for the programs' answers."""
PROMISES = {"sweep, streamed": 1.9, "sweep, caches": 2.0, "sssp, caches": 2.0, "wcc, caches": 2.0, "bfs, caches": 1.2}
"""How many times as fast two GPUs are to be."""


def verbs(stages: Stages, devices: str) -> None:
    """The stage of NCCL itself."""
    process, file = stages.stage("verbs", devices)
    code, text = stages.ended(process, 60)
    for one in found_in(file):
        took = f"{one['seconds'] * 1e3:9.3f} ms" if "seconds" in one else "right" if not one["wrong"] else one["wrong"]
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
        if one["figure"] == "profile":
            stages.say("\n    ".join([f"{one['profile']}, every call waited for:", *one["iterations"], *one["parts"]]))
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


def killed(stages: Stages, folder: Path, devices: str) -> None:
    """A rank that is killed amid iterations ends the job, in words."""
    metrics = folder / "killed.jsonl"
    words = ["run", "pagerank", folder / "graph.h5", "--tol", 0, "--max-iter", 10_000_000, "--no-calibrate"]
    process = stages.start(
        sys.executable, "-m", "penstock.tools.main", *words, "--metrics", metrics, "--devices", devices
    )
    limit = time.monotonic() + 60
    while time.monotonic() < limit and (not metrics.exists() or metrics.stat().st_size < 10_000):
        time.sleep(0.1)
    below = psutil.Process(process.pid).children(recursive=True)
    ranks = [one for one in below if "penstock.tools.main" in one.cmdline() and one.environ().get("PMI_RANK") == "1"]
    began = time.monotonic()
    for one in ranks:
        one.kill()
    code, text = stages.ended(process, 30)
    took = time.monotonic() - began
    good = len(ranks) == 1 and code == 1 and "rank 1 of" in text and "SIGKILL" in text
    stages.tell(f"rank 1 killed: exit code {code} after {took:.1f} s: {last_of(text)[:90]}", good=good)


FAILING = """
import os
from numpy import float64
from penstock.engine import Field, Program

class Failing(Program):
    value = Field(float64, fill=1.0)
    combine, everywhere, max_iter = "sum", True, 100

    def send(value, degree): return value / max(degree, 1)
    def edge(sent): return sent
    def vertex(incoming): return incoming

    def done(self, iteration, totals):
        if iteration == 20 and os.environ["PMI_RANK"] == "1":
            raise ValueError("of rank 1 alone")
        return False
"""


def failing(stages: Stages, folder: Path, devices: str) -> None:
    """An error in one rank, for which the other does not wait on its GPU for ever."""
    file = folder / "failing.py"
    file.write_text(FAILING)
    words = ["run", f"{file}:Failing", folder / "graph.h5", "--no-calibrate", "--devices", devices]
    process = stages.start(sys.executable, "-m", "penstock.tools.main", *words)
    began = time.monotonic()
    code, text = stages.ended(process, 60)
    good = code == 1 and "rank 1 of" in text and "of rank 1 alone" in text
    stages.tell(
        f"rank 1 fails: exit code {code} after {time.monotonic() - began:.1f} s: {last_of(text)[:90]}", good=good
    )


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
            killed(stages, folder, asked.devices)
            failing(stages, folder, asked.devices)
        if "reach" in only:
            seconds = stages.left - (PROGRAM_SECONDS if "programs" in only else 5)
            reach(stages, asked.devices, asked.scale, asked.edge_memory, seconds)
        if "programs" in only:
            programs(stages, folder, (asked.devices, asked.mixed), asked.programs.split(","), stages.left - 5)
        print("\n".join(["", *stages.table, "all right" if not stages.wrong else f"{stages.wrong} wrong"]))
    return 1 if stages.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
