"""A job: a graph, the programs that run on it one after another, and how; complete before anything is opened."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.engine.programs.table import info_of
from penstock.storage.base.atomic import check_target, keep_inputs
from penstock.storage.base.errors import InputError
from penstock.storage.base.places import Address, FilePlace
from penstock.tools.base.find_program import find_program, make_program
from penstock.tools.base.output import NAME, short
from penstock.tools.run.answer_options import AnswerOptions, tabling
from penstock.tools.run.checkpointing import Checkpointing, checkpointing
from penstock.tools.run.record_files import JOB, LOG, METRICS, OWN, RATES, RUN, status
from penstock.tools.run.run_options import Execution, execution, keeping, watching

if TYPE_CHECKING:
    from penstock.engine.program.program import Program
    from penstock.engine.ranks.communicator import Communicator
    from penstock.storage.format.graph import Graph

JOB_GROUPS = (execution, watching, checkpointing, keeping)
"""Groups of options that hold for a whole job; a job file has them too."""
TABLE = "answers"
"""The name, in a run directory, of a table of all answers that has none."""


@dataclass(frozen=True)
class JobStep:
    """One program of a job: its name (`bfs`, `file.py:Class`), given parameters, what becomes of its answer."""

    program: str
    parameters: dict[str, Any] = field(default_factory=dict)
    wanted: AnswerOptions = field(default_factory=AnswerOptions)

    def __post_init__(self) -> None:
        info = info_of(self.program)
        if info is not None:  # what another library calls it is answered under our name
            object.__setattr__(self, "program", info.name)

    @property
    def title(self) -> str:
        """The program and its parameters."""
        return " ".join([self.program, *(f"{name}={short(value, 40)}" for name, value in self.parameters.items())])

    def heading(self, program: Program, graph: Graph, place: Path) -> str:
        """The first line of its answer: what runs on which file, and how edges count where the graph has weights."""
        from penstock.engine.program.program import weighted

        counts = "" if graph.weight_dtype is None else ", weighted," if weighted(program, graph) else ", unweighted,"
        return f"{self.title}{counts} on {place}"

    @property
    def stem(self) -> str:
        """A name for files: `bfs`, `Class`."""
        return self.program.rpartition(":")[2].removesuffix(".py").replace("/", "_")

    @property
    def file(self) -> Path | None:
        """The user's file that it is in, if it is in one."""
        before, colon, _ = self.program.rpartition(":")
        file = before if colon else self.program
        return Path(file) if file.endswith(".py") else None

    def make(self, opened: Callable[[], Graph]) -> Program:
        """The program, on an opened graph. Raises InputError where there is none, or its parameters are not its."""
        kind, given = find_program(self.program), self.parameters
        paths = {name: value for name, value in given.items() if isinstance(value, Path)}
        if paths:
            from penstock.tools.base.vertex_files import read_values  # NumPy, which --help does not need

            graph = opened()
            given = given | {name: read_values(path, name, graph) for name, path in paths.items()}
        return make_program(self.program, kind, given)


@dataclass(frozen=True)
class Job:
    """A graph file, steps that share one session, and what holds for all of them.

    given: the values of all its options, by the names of their parameters. metrics, trace: files for them. run_dir:
    where its record is kept. force: whether files may be replaced. dry_run: whether it is only forecast, also for so
    many `ranks`. source: the file it was read from. goes_on: whether a run in its run directory that did not end is
    resumed, and answers there are of that run. traced: whether what runs when is noted, here or for rank 0's trace.
    table: where the answers of all steps are written side by side, if anywhere.
    """

    graph: Path
    steps: tuple[JobStep, ...]
    given: Mapping[str, Any]
    execution: Execution
    checkpointing: Checkpointing
    metrics: Path | None = None
    trace: Path | None = None
    run_dir: Path | None = None
    force: bool = False
    dry_run: bool = False
    ranks: tuple[int, ...] = ()
    source: Path | None = None
    goes_on: bool = False
    traced: bool = False
    table: AnswerOptions = field(default_factory=AnswerOptions)

    @classmethod
    def of(cls, graph: Path, steps: Sequence[JobStep], given: Mapping[str, Any], source: Path | None = None) -> Job:
        """Of the values of its options. Raises InputError."""
        made = {group.name: group.of(given) for group in JOB_GROUPS}
        more: dict[str, Any] = {**made["watching"], **made["keeping"], "source": source}
        if source is not None:
            more["table"] = tabling.of(given)
        traced = more["trace"] is not None
        return cls(graph, tuple(steps), given, made["execution"], made["checkpointing"], **more, traced=traced)

    def replaces(self, path: FilePlace | None) -> bool:
        """Whether an answer of this name may be replaced."""
        place = Path(os.path.abspath(self.run_dir or "."))
        return self.force or (self.goes_on and _inside(place, path and path.absolute()) is not None)

    @property
    def prints(self) -> bool:
        """Whether an answer goes to standard output."""
        return any(wanted.printed for wanted in self._wanted)

    @property
    def _wanted(self) -> list[AnswerOptions]:
        """What becomes of each answer, and of the table of all."""
        return [*(step.wanted for step in self.steps), self.table]

    def opened(self, ranks: Communicator | None = None) -> Graph:
        """The graph, or what of it is run on; ranks: that open it together. Raises as `Graph.open`, `edges_where`."""
        from penstock.storage.format.graph import Graph

        execution = self.execution
        graph = Graph.open(self.graph, stripes=execution.stripes)
        if execution.weight_column is not None:
            graph = graph.with_weight(execution.weight_column)
        if execution.where is None:
            return graph
        from penstock.engine.queries.edges_where import edges_where
        from penstock.engine.resources.config import Config

        return edges_where(graph, execution.where, Config.of(**execution.options), ranks)

    def inputs(self) -> list[Path]:
        """The files that it reads, as far as it names them itself."""
        given = [value for step in self.steps for value in step.parameters.values()]
        named = [self.graph, self.source, self.execution.rates, *given, *(step.file for step in self.steps)]
        return [path for path in named if isinstance(path, Path)]

    def kept(self) -> Job:
        """The same with everything that it writes in its run directory; itself without one."""
        folder = self.run_dir
        if folder is None:
            return self
        seen: Counter[str] = Counter()
        steps = []
        for step in self.steps:
            seen[step.stem] += 1
            name = step.stem if seen[step.stem] == 1 else f"{step.stem}-{seen[step.stem]}"
            if step.wanted.path is not None or self.table.path is None:
                step = replace(step, wanted=step.wanted.inside(folder, name))
            steps.append(step)
        table = self.table if self.table.path is None else self.table.inside(folder, TABLE)
        metrics, trace = folder / (self.metrics or METRICS), None if self.trace is None else folder / self.trace
        checkpoints = self.checkpointing.folder
        checkpointing = replace(self.checkpointing, folder=None if checkpoints is None else folder / checkpoints)
        goes_on = self.checkpointing.resume and status(folder) not in (None, "done")
        placed: dict[str, Any] = {"steps": tuple(steps), "table": table, "metrics": metrics, "trace": trace}
        return replace(self, **placed, checkpointing=checkpointing, goes_on=goes_on)

    def followed(self) -> Job:
        """The same for a rank that only computes: it writes nothing."""
        job = self.kept()
        steps = tuple(replace(step, wanted=AnswerOptions()) for step in job.steps)
        checkpointing = replace(job.checkpointing, follows=True)
        writing: dict[str, Any] = {"metrics": None, "trace": None, "run_dir": None, "force": False}
        writing["table"] = AnswerOptions()
        return replace(job, steps=steps, checkpointing=checkpointing, **writing)

    def folders(self) -> list[Path]:
        """Folders in the run directory that outputs of `kept` lie in."""
        place = self.run_dir
        named = [*(wanted.path for wanted in self._wanted), self.metrics, self.trace]
        parents = {path.parent for path in named if isinstance(path, Path)}
        return [] if place is None else sorted(path for path in parents if path != place and place in path.parents)

    def recorded(self, path: Path) -> Path:
        """An input as a job file in the run directory names it: relative to that if it is inside, else absolute."""
        return _inside(Path(os.path.abspath(self.run_dir or ".")), path.absolute()) or path.absolute()

    def portable(self) -> Job:
        """The same with outputs by their names in the run directory, so that it can be repeated in another one.

        An output outside of it is named by the last part of its name, with a number where another has that name.
        """
        place = Path(os.path.abspath(self.run_dir or "."))
        written = [wanted.path for wanted in self.kept()._wanted]
        inside = [_inside(place, path and path.absolute()) for path in written]
        taken = {*(str(path) for path in inside if path is not None), JOB, RUN, RATES, LOG}

        def name(path: FilePlace | None) -> FilePlace | None:
            if isinstance(path, Address):
                return path
            if path is None or (found := _inside(place, path)) is not None:
                return None if path is None else found
            others = (f"{path.stem}-{number}{path.suffix}" for number in itertools.count(2))
            free = next(one for one in (path.name, *itertools.islice(others, len(taken) + 1)) if one not in taken)
            taken.add(free)
            return Path(free)

        steps = [replace(step, wanted=replace(step.wanted, path=name(step.wanted.path))) for step in self.steps]
        seen = {"metrics": self.metrics, "trace": self.trace, "path": self.table.path}
        seen["folder"] = self.checkpointing.folder
        return replace(self, steps=tuple(steps), given={**self.given, **{key: name(seen[key]) for key in seen}})

    def check(self, *, made: bool = True) -> None:
        """Refuse, before the run, what could not be written, and outputs that would replace each other.

        made: whether the run directory, if there is to be one, is there.
        """
        self.checkpointing.check(len(self.steps))
        there = made or self.run_dir is None
        for step in self.steps:
            table = self.table.path is not None
            step.wanted.check(force=self.replaces(step.wanted.path), there=there, table=table)
        self.table.check(force=self.replaces(self.table.path), there=there)
        if self.table.path is not None:
            self.table.check_columns(f"{self.table.path} is to have the answers of all programs")
        folder = self.run_dir
        if there:
            own = () if folder is None else [folder / name for name in OWN]
            for lines in (self.metrics, self.trace):
                if lines is not None and lines not in own:
                    check_target(lines, force=self.force)
        named = [*(wanted.path for wanted in self._wanted), self.metrics, self.trace]
        outputs = [path for path in named if path is not None and path != NAME]
        if len([wanted for wanted in self._wanted if wanted.printed]) > 1:
            raise InputError('output = "-" is said of several programs; one answer fits on standard output')
        for path in outputs:
            keep_inputs(path, self.inputs())
        own = [] if folder is None else [folder / name for name in (JOB, RUN, RATES, LOG)]
        for path, count in Counter(path.absolute() for path in [*outputs, *own]).items():
            if count > 1:
                raise InputError(f"{path} is written {count} times by this job; give every output a name of its own")


def _inside(place: Path, path: FilePlace | None) -> Path | None:
    """The name in a folder of a path that is relative to it, or is in it; None for one outside."""
    whole = None if path is None or isinstance(path, Address) else Path(os.path.abspath(place / path))
    return whole.relative_to(place) if whole is not None and whole.is_relative_to(place) else None
