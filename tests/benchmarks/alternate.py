"""Two checkouts on one machine in one run: each in its own process, in turn, one value at a time.

Both processes run the suites of this checkout, each with the package of its own: `PYTHONPATH` begins with a folder of
links to its four floors and its `__init__.py`. While one prepares and measures, the other waits. They talk over pipes:
a child reads the suites and choices as a line of JSON, then an empty line for each turn, and answers each with a line
of JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.history import Figure
from benchmarks.runner import Choices, Runner

FLOORS = ("engine", "storage", "transfer", "tools")
WORD = "--turns"
"""The only argument of a child."""


class Side:
    """One checkout's process; `figures` are its values so far."""

    def __init__(self, root: Path, suites: list[str], choices: Choices, stack: ExitStack) -> None:
        self.values: dict[tuple[str, str, str], list[float]] = defaultdict(list)
        links = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (links / "penstock").mkdir()
        package = (
            root.resolve() / "tools" / "package" / "__init__.py"
        )  # else an installed one, with other floors, is first
        (links / "penstock" / "__init__.py").symlink_to(package)
        for floor in FLOORS:
            (links / "penstock" / floor).symlink_to(root.resolve() / floor)
        path = os.pathsep.join(filter(None, (str(links), os.environ.get("PYTHONPATH"))))
        self._process = stack.enter_context(
            subprocess.Popen(
                [sys.executable, str(Path(__file__).parent), WORD],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=os.environ | {"PYTHONPATH": path},
                text=True,
            )
        )
        self._tell(json.dumps({"suites": suites, "choices": asdict(choices)}))
        self._root = root

    def turn(self) -> tuple[str, ...] | None:
        """Let it measure what comes next: the names of the figures, None at the end. Raises RuntimeError."""
        self._tell("")
        line = self._process.stdout.readline() if self._process.stdout is not None else ""
        if not line:
            if self._process.wait():
                raise RuntimeError(f"the process of {self._root} failed with exit code {self._process.returncode}")
            return None
        answer = json.loads(line)
        for name, (value, unit) in answer["values"].items():
            self.values[answer["suite"], name, unit].append(value)
        return tuple(answer["values"])

    @property
    def figures(self) -> list[Figure]:
        return [Figure(*key, tuple(values)) for key, values in self.values.items()]

    def _tell(self, line: str) -> None:
        stdin = self._process.stdin
        if stdin is not None and not stdin.closed:
            try:
                stdin.write(line + "\n")
                stdin.flush()
            except BrokenPipeError:
                stdin.close()  # it has ended: its output says how


def alternate(
    here: Path, other: Path, suites: list[str], choices: Choices, say: Callable[[str], None]
) -> tuple[list[Figure], list[Figure]]:
    """Measure both checkouts in turn. Raises RuntimeError when one fails, or does not measure what the other does."""
    with ExitStack() as stack:
        sides = [Side(root, suites, choices, stack) for root in (here, other)]
        last: tuple[str, ...] | None = ()
        while True:
            mine, its = (side.turn() for side in sides)
            if mine != its:
                raise RuntimeError(f"{here} measures {mine}, and {other} {its}")
            if mine is None:
                return sides[0].figures, sides[1].figures
            if mine != last:
                say(", ".join(mine))
            last = mine


class Pipe:
    """A child's end, see `runner.Turns`: its first line is the order, all others are turns."""

    def __init__(self) -> None:
        self._out, sys.stdout = sys.stdout, sys.stderr
        self.order: dict[str, Any] = json.loads(sys.stdin.readline())
        sys.stdin.readline()

    def take(self, suite: str, values: Mapping[str, tuple[float, str]]) -> None:
        """Send values, and wait until it is this process's turn again."""
        print(json.dumps({"suite": suite, "values": values}), file=self._out, flush=True)
        if not sys.stdin.readline():
            raise SystemExit("the process that alternates has ended")


def serve(run: Callable[[Runner, list[str]], None]) -> int:
    """Be a child: measure in turns, and return the exit code."""
    pipe = Pipe()
    choices = pipe.order["choices"].items()
    runner = Runner(Choices(**{name: tuple(v) if isinstance(v, list) else v for name, v in choices}), pipe)
    run(runner, pipe.order["suites"])
    if runner.wrong:
        print(f"WRONG: {'; '.join(runner.wrong)}", file=sys.stderr)
    return int(bool(runner.wrong))
