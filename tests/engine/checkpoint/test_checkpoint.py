"""Checkpoints: a run that was cut off anywhere ends as one that ran through, and goes on with nobody else's state."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from numpy.typing import NDArray
from penstock.engine import Field, Graph, Program, Session, run
from penstock.engine.checkpoint import checkpoint, run_fingerprint
from penstock.engine.checkpoint.checkpoint import DEFAULT_SECONDS, LEAST_TIMES, CheckpointInterval, Checkpoints
from penstock.engine.execution import triangles
from penstock.engine.kernels.cuda import fused
from penstock.engine.programs import order_batches
from penstock.engine.programs.adsorption import Adsorption
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.collaborative import CollaborativeFiltering
from penstock.engine.programs.coloring import ColoringByHashes
from penstock.engine.programs.hits import HITS
from penstock.engine.programs.katz import Katz
from penstock.engine.programs.pagerank import ChebyshevPageRank, PageRank
from penstock.engine.programs.php import PHP
from penstock.engine.programs.sssp import SSSP
from penstock.engine.state.result import Result
from penstock.storage.base.errors import InputError, PenstockError, RunError
from penstock.storage.checkpoint.file import Checkpoint, write_checkpoint
from support.covering import covering
from support.faults import flip_bit
from support.graphs import in_memory, on_disk, shape
from support.oracles import EdgeList
from support.program_cases import CASES, program_of, tangle

SLOW = {"kernels": "reference"}
EDGES = tangle(directed=True, core=20, tail=5, count=70)
FORMS: dict[str, Callable[[], Program]] = {
    **{name: make for name, (make, _) in CASES.items()},
    "php": lambda: PHP(3, tol=1e-2),
    "adsorption": lambda: Adsorption({3: 2.0, 18: 1.0}, alpha=0.7, tol=1e-2),
    "hits": lambda: HITS(tol=1e-4),
    "katz": lambda: Katz(alpha=1e-4, tol=1e-8),
    "pagerank": lambda: PageRank(tol=1e-3),
    "residual pagerank": lambda: PageRank(tol=1e-3),
    "personalized": lambda: PageRank(personalization={3: 1.0, 7: 2.5}, tol=1e-3),
    "buckets": lambda: SSSP(3, delta=5.0),
}


def follow(program: Program, graph: Graph, kept: Checkpoints | None, stop: int = 0, **way: Any) -> Result | None:
    """Run a program; break off, as a crash would, after so many iterations (0: never)."""
    with Session(graph, **way) as session:
        steps = session.steps(program, kept)
        count = 0
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return end.value
            count += 1
            if count == stop:
                steps.close()
                return None


def same(program: Program, got: Result | None, wanted: Result | None) -> None:
    assert got is not None
    assert wanted is not None
    assert got.converged == wanted.converged
    for name, values in wanted.fields.items():
        if values.dtype.kind == "f":
            np.testing.assert_allclose(got.fields[name], values, rtol=max(program.tolerance, 1e-12))
        else:
            np.testing.assert_array_equal(got.fields[name], values, strict=True)


def cut_and_resumed(
    make: Callable[[], Program], graph: Graph, folder: Path, stop: int, *ways: dict[str, Any]
) -> Result | None:
    """The answer of a run that is cut off after `stop` iterations on the first way and goes on on the second one."""
    assert follow(make(), graph, Checkpoints(folder, stop), stop, **ways[0]) is None
    kept = Checkpoints(folder, 10**6, resume=True)
    result = follow(make(), graph, kept, **ways[-1])
    assert kept.began == stop or "cuda" in ways[0].values()
    kept.clear()
    return result


@pytest.mark.parametrize("name", ["bfs", "sssp", "sweeps", "wcc"])
def test_the_four_resume_after_every_iteration(name: str, tmp_path: Path) -> None:
    graph = in_memory(EDGES)
    whole = follow(program_of(name, EDGES), graph, None, **SLOW)
    assert whole is not None
    assert whole.iterations > 1
    for stop in range(1, whole.iterations + 1):
        found = cut_and_resumed(lambda: program_of(name, EDGES), graph, tmp_path, stop, SLOW)
        same(whole.program, found, whole)
        assert found is not None
        assert name == "wcc" or (found.iterations, found.before) == (whole.iterations, stop)


@pytest.mark.parametrize("name", FORMS)
def test_every_program_resumes_early_in_the_middle_and_late(name: str, tmp_path: Path) -> None:
    """Phases among them: in any phase, and where one ends."""
    make, graph = FORMS[name], in_memory(EDGES)
    way = SLOW | ({"mode": "async"} if name == "residual pagerank" else {})
    whole = follow(make(), graph, None, **way)
    assert whole is not None
    for stop in {1, whole.iterations // 2, whole.iterations} - {0} if whole.iterations else ():
        same(whole.program, cut_and_resumed(make, graph, tmp_path, stop, way), whole)


@pytest.mark.parametrize("name", ["hits", "betweenness", "harmonic", "scc", "coloring"])
def test_phases_resume_after_every_iteration(name: str, tmp_path: Path) -> None:
    make, graph = FORMS[name], in_memory(tangle(directed=True, core=20, tail=2, count=40))
    whole = follow(make(), graph, None, **SLOW)
    assert whole is not None
    for stop in range(1, whole.iterations + 1):
        same(whole.program, cut_and_resumed(make, graph, tmp_path, stop, SLOW), whole)


def test_batches_of_an_order_resume_after_each_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order_batches, "EDGE_BYTES", 1 << 40)
    monkeypatch.setattr(order_batches, "FEWEST", 10)
    graph = in_memory(tangle(directed=True, core=90, tail=2, count=6000))  # colors of two windows
    whole = follow(ColoringByHashes(), graph, None, **SLOW)
    assert whole is not None
    assert whole.iterations > 3
    for stop in range(1, whole.iterations + 1):
        same(whole.program, cut_and_resumed(ColoringByHashes, graph, tmp_path, stop, SLOW), whole)


@pytest.mark.parametrize("name", ["triangles", "lcc", "trussness"])
def test_triangles_resume_after_every_strip_with_strips_of_another_size(name: str, tmp_path: Path) -> None:
    make, graph = CASES[name][0], in_memory(EDGES)
    whole = follow(make(), graph, None, **SLOW)
    gpu = {"device": "emulated", "kernels": "cuda"}
    for first, second, ways in ((12, 12, (SLOW, SLOW)), (12, 19, (SLOW, SLOW)), (30, 10**6, (SLOW, SLOW, gpu))):
        with mock.patch.object(triangles, "strip_edges", return_value=first):
            strips = follow(make(), graph, None, **SLOW)
        assert strips is not None
        assert strips.iterations > 2
        same(make(), strips, whole)
        for stop in (1, strips.iterations - 1, strips.iterations):
            with mock.patch.object(triangles, "strip_edges", return_value=first):
                follow(make(), graph, Checkpoints(tmp_path, stop), stop, **ways[0])
            with mock.patch.object(triangles, "strip_edges", return_value=second):
                kept = Checkpoints(tmp_path, resume=True)
                same(make(), follow(make(), graph, kept, **ways[-1]), whole)
            assert kept.began == stop
            kept.clear()


WAYS: list[dict[str, Any]] = [
    {},
    {"mode": "sync"},
    {"device": "emulated"},
    {"device": "emulated", "device_edge_memory": 330, "partition_bytes": 100, "route": "compaction"},
]


@covering("name, way", ("bfs", "sssp", "pagerank", "wcc"), WAYS, strength=1)
def test_compiled_kernels_resume_on_every_device(name: str, way: dict[str, Any], tmp_path: Path) -> None:
    """Where the options that count are the same, also on another device than the one that was at work before."""
    graph = on_disk(EDGES, tmp_path / "graph.h5", chunk_edges=32)
    whole = follow(program_of(name, EDGES), graph, None, **way)
    assert whole is not None
    for stop in (1,) if name == "wcc" else (1, 2):
        ways = [way] if "mode" in way else [way, {}] if stop == 1 else [{}, way]
        found = cut_and_resumed(lambda: program_of(name, EDGES), graph, tmp_path / "kept", stop, *ways)
        same(whole.program, found, whole)


@pytest.mark.parametrize("name", ["bfs", "sssp"])
def test_a_gpu_resumes_what_the_cores_began_and_they_what_it_began(name: str, tmp_path: Path) -> None:
    gpu, graph = {"device": "emulated", "kernels": "cuda"}, in_memory(EDGES)
    whole = follow(program_of(name, EDGES), graph, None, **SLOW)
    assert whole is not None
    for stop, ways in ((1, (SLOW, gpu)), (2, (gpu, SLOW)), (3, (gpu, gpu))):
        same(whole.program, cut_and_resumed(lambda: program_of(name, EDGES), graph, tmp_path, stop, *ways), whole)


def test_iterations_of_one_launch_are_kept_together(tmp_path: Path) -> None:
    """While they are told one by one, the state is that of the last one already."""
    graph = in_memory(shape("path", directed=False))
    gpu = {"device": "emulated", "kernels": "cuda"}
    with mock.patch.object(fused, "MOST_ITERATIONS", 7), Session(graph, **gpu) as session:
        kept = Checkpoints(tmp_path, 1)
        made = []
        for number, record in enumerate(session.steps(BFS(source=0), kept), 1):
            if record.checkpoint is not None:
                made.append(number)
            if number == 30:
                break
    assert made
    assert max(np.diff(made)) == 7
    whole = follow(BFS(source=0), graph, None, **SLOW)
    same(BFS(source=0), follow(BFS(source=0), graph, Checkpoints(tmp_path, resume=True), **SLOW), whole)


def test_a_programs_own_numbers_go_on(tmp_path: Path) -> None:
    """Weights of sweeps (Chebyshev), the errors of all epochs (ratings)."""
    undirected = in_memory(tangle(directed=False, core=20, tail=5, count=70, weights="float32"))
    for make in (lambda: ChebyshevPageRank(tol=1e-8, weight=False), lambda: CollaborativeFiltering(rank=2, max_iter=6)):
        whole = follow(make(), undirected, None, **SLOW)
        found = cut_and_resumed(make, undirected, tmp_path, 4, SLOW)
        assert whole is not None
        assert found is not None
        same(whole.program, found, whole)
        assert vars(found.program) == vars(whole.program)


def test_a_program_in_anothers_stead_goes_on(tmp_path: Path) -> None:
    """32 bits did not suffice, and the run was cut off in the one with 64."""
    weights = np.full(4, 2**32 - 1, dtype=np.uint32)
    graph = Graph.from_arrays([0, 1, 2, 3, 4, 4], [1, 2, 3, 4], weights)
    first = next(number for number in range(1, 20) if _level(graph, tmp_path / str(number), number) == 1)
    for stop in (first - 1, first, first + 1, first + 3):
        found = cut_and_resumed(lambda: SSSP(source=0), graph, tmp_path / "kept", stop, SLOW)
        assert found is not None
        assert found.fields["distance"].tolist() == [k * (2**32 - 1) for k in range(5)]


def _level(graph: Graph, folder: Path, stop: int) -> int:
    """How many programs had been given up after so many iterations."""
    follow(SSSP(source=0), graph, Checkpoints(folder, stop), stop, **SLOW)
    newest, _ = Checkpoints(folder).folder.newest()
    assert newest is not None
    return int(newest.story["level"])


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Two checkpoints of a BFS, after iterations 2 and 3."""
    follow(BFS(source=3), in_memory(EDGES), Checkpoints(tmp_path / "kept", 1), 3, **SLOW)
    return tmp_path / "kept"


def resume(folder: Path, program: Program | None = None, edges: EdgeList = EDGES, **way: Any) -> Result:
    return run(program or BFS(source=3), in_memory(edges), checkpoint=folder, resume=True, **{**SLOW, **way})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"program": SSSP(3)}, "it is of the program BFS, this is SSSP"),
        ({"program": BFS(source=4)}, "its source was 3, here it is 4"),
        ({"program": BFS(source=[3, 4])}, r"its source was 3, here it is \[3, 4\]"),
        ({"edges": tangle(directed=True, core=21, tail=5, count=70)}, "its graph has vertices 29, this one 30"),
        ({"edges": tangle(directed=False, core=20, tail=5, count=70)}, "its graph has edges"),
        ({"direction": "push"}, "it ran with direction auto, this run has push"),
        ({"mode": "sync"}, "it ran with mode auto, this run has sync"),
    ],
)
def test_another_run_is_refused_by_what_differs(kept: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"0000000003.penstock is of another run: .*{message}"):
        resume(kept, **change)
    assert resume(kept).before == 3


def test_an_edge_that_leads_elsewhere_is_another_graph(kept: Path) -> None:
    targets = EDGES.targets.copy()
    targets[5] = (targets[5] + 1) % EDGES.vertices
    with pytest.raises(InputError, match=r"its graph has content [0-9a-f]{16}, this one"):
        resume(kept, edges=EdgeList(EDGES.vertices, EDGES.sources, targets, EDGES.weights, True))


def test_other_software_is_refused(kept: Path) -> None:
    with (
        mock.patch.object(run_fingerprint, "MEANING", run_fingerprint.MEANING + 1),
        pytest.raises(InputError, match=r"was written by Penstock .* \(meaning 1\), and this is .* \(meaning 2\)"),
    ):
        resume(kept)


def test_other_functions_are_refused(tmp_path: Path) -> None:
    def program(factor: int) -> Program:
        body = {"edge": (lambda distance: distance + 1) if factor == 1 else (lambda distance: distance + 2)}
        return type("Mine", (SSSP,), body)(3)  # type: ignore[no-any-return]

    follow(program(1), in_memory(EDGES), Checkpoints(tmp_path, 1), 2, **SLOW)
    with pytest.raises(InputError, match="the functions of Mine were others"):
        resume(tmp_path, program(2))


def test_a_damaged_newest_one_is_passed_over_and_said_so(kept: Path, caplog: pytest.LogCaptureFixture) -> None:
    flip_bit(kept / "checkpoint-0000000003.penstock", 100)
    checkpoints = Checkpoints(kept, resume=True)
    found = follow(BFS(source=3), in_memory(EDGES), checkpoints, **SLOW)
    assert checkpoints.began == 2
    (said,) = caplog.messages
    assert said.startswith(f"passed over {kept}/checkpoint-0000000003.penstock: it is damaged")
    assert checkpoints.notes == [f"goes on from {kept}/checkpoint-0000000002.penstock, after iteration 2"]
    same(BFS(source=3), found, follow(BFS(source=3), in_memory(EDGES), None, **SLOW))


def test_only_damaged_ones_are_refused(kept: Path) -> None:
    for file in kept.iterdir():
        file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(InputError, match=r"no checkpoint in .* is whole \(.*3.penstock: .*2.penstock: .*remove them"):
        resume(kept)


def test_a_whole_file_with_another_story_is_refused(kept: Path) -> None:
    Checkpoints(kept).folder.write(9, {"a": 1}, [])
    with pytest.raises(InputError, match=r"0000000009\.penstock is no checkpoint of a run; remove it"):
        resume(kept)


def test_resuming_needs_a_folder() -> None:
    for options in ({"resume": True}, {"checkpoint_every": 3}):
        with pytest.raises(InputError, match="resume and checkpoint_every need checkpoint"):
            run(BFS(source=3), in_memory(EDGES), **options)


def test_a_disk_that_is_full_does_not_end_the_run(tmp_path: Path) -> None:
    """Those before stay, the record says what went wrong, and the next attempt may succeed."""
    full = [None, OSError(28, "No space left on device"), None, None]
    written = checkpoint.CheckpointFolder.write

    def write(self: Any, number: int, *rest: Any, **how: Any) -> int:
        with mock.patch("penstock.storage.checkpoint.file.compress", side_effect=full[number - 1], wraps=_compress):
            return written(self, number, *rest, **how)

    with (
        mock.patch.object(checkpoint.CheckpointFolder, "write", write),
        Session(in_memory(EDGES), **SLOW) as session,
    ):
        steps = session.steps(BFS(source=3), Checkpoints(tmp_path, 1))
        records = [next(steps).checkpoint for _ in range(4)]
    assert [record is not None and record.trouble for record in records] == [
        "",
        f"{tmp_path}/checkpoint-0000000002.penstock could not be written: No space left on device",
        "",
        "",
    ]
    assert Checkpoints(tmp_path).folder.numbers() == [3, 4]


def _compress(data: Any, level: int) -> bytes:
    from penstock.storage.encoding import codec

    return codec.compress(data, level)


class Plain(Program):
    """Phases without a number to begin with."""

    level = Field(np.uint32)

    def phases(self, graph: Any, state: Any) -> Any:
        yield BFS(source=0)


class Restless(HITS):
    """Phases that are not the same when they begin anew."""

    def phases(self, graph: Any, state: Any, first: int = 0) -> Any:
        yield from super().phases(graph, state, 0)


class Holding(BFS):
    """Keeps something that no file can."""

    def __init__(self) -> None:
        super().__init__(3)
        self.log = print


def test_what_cannot_be_resumed_is_refused_before_it_runs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Plain.phases\(\) takes no `first`.*cannot be resumed: add it"):
        run(Plain(), in_memory(EDGES), checkpoint=tmp_path)
    with pytest.raises(InputError, match=r"Holding.log is or holds a builtin_function_or_method.*run without"):
        run(Holding(), in_memory(EDGES), checkpoint=tmp_path)


def test_phases_that_begin_otherwise_are_refused(tmp_path: Path) -> None:
    graph = in_memory(EDGES)
    follow(Restless(), graph, Checkpoints(tmp_path, 4), 4, **SLOW)
    with pytest.raises(RunError, match="phase 3 was Hubs and is Authorities, or one with other parameters"):
        follow(Restless(), graph, Checkpoints(tmp_path, resume=True), **SLOW)


def stored(graph: Graph, folder: Path, make: Callable[[], Program], stop: int = 1) -> Path:
    """The file of a run that was cut off."""
    follow(make(), graph, Checkpoints(folder, stop), stop, **SLOW)
    return Checkpoints(folder).folder.file(stop)


def contents(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The story and the arrays of a checkpoint."""
    kept = Checkpoint(path)
    arrays = {name: np.empty(one.shape, one.dtype) for name, one in kept.arrays.items()}
    for name, array in arrays.items():
        kept.fill(name, array)
    return kept.story, arrays


def resumed(make: Callable[[], Program], graph: Graph, folder: Path) -> Result | PenstockError | None:
    """The answer of a run that goes on, or why it does not."""
    try:
        with Checkpoints(folder, 10**6, resume=True) as kept:
            result = follow(make(), graph, kept, **SLOW)
            kept.clear()
            return result
    except PenstockError as error:
        return error


HOSTILE = "0) != 0\n\n    open({!r}, 'w')\n    return (0"
"""Text that breaks out of the source of an adapter."""


@pytest.mark.parametrize("name", ["pagerank", "harmonic"])
@pytest.mark.parametrize("key", ["attributes", "phase_attributes"])
def test_a_forged_checkpoint_chooses_no_source_of_kernels(name: str, key: str, tmp_path: Path) -> None:
    """Texts that the engine reads of a program go into `exec`."""
    graph, make, made = in_memory(EDGES), FORMS[name], tmp_path / "made"
    path = stored(graph, tmp_path / "kept", make)
    (story, arrays), text = contents(path), HOSTILE.format(str(made))
    declared = [name for name in vars(Program) if not name.startswith("__")]
    for forged in [{"combine": "all", "chosen_by": text}, *({one: text} for one in declared)]:
        write_checkpoint(path, story | {key: forged}, arrays.items())
        found = resumed(make, graph, path.parent)
        assert not made.exists()
        if isinstance(found, Result):
            assert (name, key) == ("pagerank", "phase_attributes"), "it has no phases"
        else:
            assert f"{path} cannot be resumed" in str(found)
            assert len(str(found)) < 1000


def leaves(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all values in JSON."""
    yield at
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from leaves(item, (*at, key))


OTHERS: list[Any] = ["x", -1, None, [], {}, {"array": ["<f8", [2], "x"]}, 1e300]


@covering("name, first", ("pagerank", "harmonic", "sssp"), range(len(OTHERS)), strength=1, rare=range(3, len(OTHERS)))
def test_a_malformed_story_is_one_error(name: str, first: int, tmp_path: Path) -> None:
    """Each value in turn is one of another kind: refused, or of no account."""
    make, graph = FORMS.get(name) or (lambda: program_of(name, EDGES)), in_memory(EDGES)
    path = stored(graph, tmp_path / "kept", make)
    story, arrays = contents(path)
    for number, at in enumerate(leaves(story), first):
        other = OTHERS[number % len(OTHERS)]
        forged = {"story": json.loads(json.dumps(story))}
        inner: Any = forged
        for step in ("story", *at)[:-1]:
            inner = inner[step]
        inner[("story", *at)[-1]] = other
        write_checkpoint(path, forged["story"], arrays.items())
        found = resumed(make, graph, path.parent)
        assert isinstance(found, Result) or len(str(found)) < 1000, (at, other)
    write_checkpoint(path, story, arrays.items())
    same(make(), resumed(make, graph, path.parent), follow(make(), graph, None, **SLOW))


@pytest.mark.parametrize(
    ("every", "iterations", "seconds", "took", "due"),
    [
        (None, 1, DEFAULT_SECONDS - 1, 0.0, False),
        (None, 1, DEFAULT_SECONDS, 0.0, True),
        (None, 10**9, DEFAULT_SECONDS - 1, 0.0, False),
        (None, 1, DEFAULT_SECONDS, 10.0, False),
        (None, 1, 10 * LEAST_TIMES, 10.0, True),
        ("10", 9, 1e9, 0.0, False),
        ("10", 10, 0.0, 1e9, True),
        (1, 1, 0.0, 1e9, True),
        ("30s", 10**9, 29.9, 0.0, False),
        ("30s", 1, 30.0, 1e9, True),
        ("5min", 1, 300.0, 0.0, True),
        (" 1.5 H ", 1, 5399.0, 0.0, False),
        ("1.5h", 1, 5400.0, 0.0, True),
    ],
)
def test_when_one_is_due(every: str | int | None, iterations: int, seconds: float, took: float, due: bool) -> None:
    assert CheckpointInterval.of(every).due(iterations, seconds, took) is due


@pytest.mark.parametrize("every", ["", "0", 0, -3, "-3", "soon", "1.5", "5 days", "0s", "min", "1e3", "nan", "٣"])
def test_what_is_no_interval_is_refused(every: str | int) -> None:
    with pytest.raises(InputError, match=r"checkpoint_every is .*; give a number of iterations \(10\) or a time"):
        CheckpointInterval.of(every)
