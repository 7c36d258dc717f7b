"""Conversion equals plain Python for every option, in any budget, and leaves nothing when it fails."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import InputError, RunError
from penstock.storage.convert import convert as story
from penstock.storage.convert.convert import convert
from penstock.storage.convert.in_memory import BATCH_EDGES, EdgeArrays, graph_of
from penstock.storage.convert.sort import spill_room, workspace
from penstock.storage.convert.sort.groups import Shares, SortPlan, shares
from penstock.storage.convert.sort.options import ConvertOptions, ConvertProgress
from penstock.storage.format.graph import Graph
from penstock.storage.ingest.core.edges import EdgeBatch
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.open_source import open_source
from penstock.storage.read.verify import verify
from pyarrow import csv, parquet
from support.conversions import Edge, Given, expected, stored, vertices_of
from support.covering import covering
from support.faults import open_files, python, small_disk


def check(edges: list[Edge], sizes: list[int], options: ConvertOptions, folder: Path) -> Graph:
    """Convert, and hold every adjacency against plain Python."""
    path = folder / "graph.h5"
    report = convert(Given(edges, sizes), path, options)
    graph = Graph.open(path)
    found, ids = stored(path), graph.original_ids()
    assert sorted(range(graph.vertices) if ids is None else ids.tolist()) == vertices_of(edges, options)
    connected = {end for one, two, _ in expected(edges, options) for end in (one, two)}
    assert report.without_edges == graph.without_edges == graph.vertices - len(connected)
    assert found["out"] == expected(edges, options)
    mirrored = options.undirected or options.symmetrize
    assert graph.directed is not mirrored
    if options.direction == "both" and not mirrored:
        assert found["in"] == found["out"]
    else:
        assert "in" not in found
    assert (graph.into is graph.out) is mirrored
    assert report.edges == graph.edges == len(found["out"])
    assert report.input_edges == graph.input_edges == len(edges)
    assert report.vertices == graph.vertices
    assert report.weight_dtype == (None if graph.weight_dtype is None else graph.weight_dtype.name)
    return graph


OPTIONS: tuple[tuple[Any, ...], ...] = (
    ("", "undirected", "symmetrize"),
    (None, "first", "sum", "min", "max"),
    (False, True),
    ("none", "degree", "hubs", "paths"),
    ("out", "both"),
)
ALL = list(itertools.product(*OPTIONS))
SPREADS: dict[bool | None, list[int]] = {True: [10**12 + 7], None: [1, 3, (1 << 24) + 3, 10**12 + 7], False: [1]}
"""Of ids as `renumber` is; the third needs wide keys, the last no longer fits any."""
WEIGHTS = st.sampled_from([None, "whole", "float"])


@st.composite
def graphs(draw: st.DrawFn, *, spreads: Sequence[int]) -> tuple[list[Edge], list[int]]:
    """Edges with weights or without, many parallel, and how they come in batches; ids are multiples of a spread."""
    spread = draw(st.sampled_from(spreads))
    vertices = draw(st.sampled_from([1, 2, 5, 40, 3000]))
    kind = draw(WEIGHTS)
    vertex = st.integers(0, vertices - 1).map(lambda v: v * spread)
    hub = draw(st.booleans())
    weight: st.SearchStrategy[Any] = st.none()
    if kind == "whole":
        weight = st.integers(0, draw(st.sampled_from([3, 300, 70000])))
    elif kind == "float":
        weight = st.integers(-64, 64).map(lambda value: value / 8)
    source = st.just((vertices // 2) * spread) if hub else vertex
    edges = draw(st.lists(st.tuples(source, vertex, weight), max_size=60))
    sizes = draw(st.lists(st.integers(0, 20), max_size=4))
    return edges, sizes


@covering("mirror, dedupe, renumber, order, direction", *OPTIONS)
def test_every_option(mirror: str, dedupe: Any, renumber: bool, order: Any, direction: Any, tmp_path: Path) -> None:
    case = ALL.index((mirror, dedupe, renumber, order, direction))
    random = np.random.default_rng(case)
    ends = random.integers(0, 30, (200, 2)) * (10**15 if renumber else [1, 7, 1 << 20, 1 << 32][case % 7 % 4])
    kinds = [[None] * 200, random.integers(0, 9, 200).tolist(), (random.integers(-99, 99, 200) / 4).tolist()]
    edges = [(one, two, weight) for (one, two), weight in zip(ends.tolist(), kinds[case // 2 % 3], strict=True)]
    options = ConvertOptions(
        undirected=mirror == "undirected",
        symmetrize=mirror == "symmetrize",
        dedupe=dedupe,
        drop_self_loops=case % 4 == 0,
        renumber=renumber or None,
        order=order,
        direction=direction,
        threads=2,
    )
    check(edges, [70, 0, 70], options, tmp_path)


def tiny_shares(sizes: dict[str, int], *given: int, maps: bool) -> Shares:
    """The shares of a budget but that edges have next to no memory."""
    found = shares(*given, maps=maps)
    return replace(found, spill_bytes=sizes["room"], sort_bytes=1, run_edges=sizes["run"], group_edges=1, encoders=1)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """A workspace with next to no memory; the dict holds its sizes."""
    sizes = {"group": 5, "room": 0, "buckets": 8, "run": 7}

    monkeypatch.setattr(workspace, "shares", lambda *given, **maps: tiny_shares(sizes, *given, **maps))
    monkeypatch.setattr(workspace, "bucket_count", lambda *_: sizes["buckets"])
    monkeypatch.setattr(story, "sort_plan", lambda *_: SortPlan(2, sizes["group"], 3 * sizes["group"]))
    return sizes


@settings(max_examples=25)
@given(data=st.data())
def test_any_budget(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.MonkeyPatch.context() as patch:
        sizes = {
            "group": data.draw(st.sampled_from([1, 2, 5, 40]), "edges of a group"),
            "room": data.draw(st.sampled_from([0, 200, 1 << 20]), "bytes in memory"),
            "buckets": data.draw(st.sampled_from([2, 8, 64]), "buckets"),
            "run": data.draw(st.sampled_from([1, 7, 64]), "edges of a run"),
        }
        patch.setattr(workspace, "shares", lambda *given, **maps: tiny_shares(sizes, *given, **maps))
        patch.setattr(workspace, "bucket_count", lambda *_: sizes["buckets"])
        patch.setattr(story, "sort_plan", lambda *_: SortPlan(2, sizes["group"], 3 * sizes["group"]))
        renumber = data.draw(st.sampled_from([None, False, True]), "renumber")
        edges, batches = data.draw(graphs(spreads=SPREADS[renumber]))
        mirror = data.draw(st.sampled_from(["", "undirected", "symmetrize"]), "mirror")
        options = ConvertOptions(
            undirected=mirror == "undirected",
            symmetrize=mirror == "symmetrize",
            dedupe=data.draw(st.sampled_from([None, "first", "sum", "min", "max"]), "dedupe"),
            drop_self_loops=data.draw(st.booleans(), "no loops"),
            renumber=renumber,
            order=data.draw(st.sampled_from(["none", "degree", "hubs", "paths"]), "order"),
            direction=data.draw(st.sampled_from(["out", "both"]), "direction"),
            threads=2,
        )
        check(edges, batches, options, tmp_path_factory.mktemp("any"))


@pytest.mark.parametrize("rule", [None, "first", "sum", "min", "max"])
@pytest.mark.parametrize("kind", ["none", "whole", "float"])
def test_one_pair_repeated_beyond_memory(tiny: dict[str, int], tmp_path: Path, rule: Any, kind: str) -> None:
    values = {"none": [None] * 300, "whole": list(range(300)), "float": [(i * 7 % 50 - 25) / 8 for i in range(300)]}
    edges: list[Edge] = [(3, 5, weight) for weight in values[kind]]
    check(edges, [100], ConvertOptions(dedupe=rule, direction="both", threads=2), tmp_path)


@pytest.mark.parametrize("kind", ["star", "reverse"])
def test_a_star_is_split(tiny: dict[str, int], tmp_path: Path, kind: str) -> None:
    ends = [(7, i * 5 % 1009) if kind == "star" else (i * 5 % 1009, 7) for i in range(1500)]
    check([(*pair, None) for pair in ends], [500], ConvertOptions(direction="both", threads=2), tmp_path)


@pytest.mark.parametrize(
    ("weights", "dedupe", "dtype"),
    [
        ([0, 255], None, "uint8"),
        ([0, 256], None, "uint16"),
        ([1, 65536], None, "uint32"),
        ([1, 2**32], None, "float32"),
        ([1, 2**32 + 1], None, "float64"),
        ([-1, 5], None, "float32"),
        ([0.5, 0.25], None, "float32"),
        ([0.1, 0.25], None, "float64"),
        ([2**24 + 1, -1], None, "float64"),
        ([200, 100], "sum", "uint16"),
        ([200, 100], "max", "uint8"),
        ([0.5, 0.25], "sum", "float64"),
    ],
)
def test_weights_take_the_narrowest_dtype(tmp_path: Path, weights: list[float], dedupe: Any, dtype: str) -> None:
    edges: list[Edge] = [(0, 1, weights[0]), (0, 1, weights[1])]
    for sizes in ([], [1]):
        graph = check(edges, sizes, ConvertOptions(dedupe=dedupe, force=True), tmp_path)
        assert graph.weight_dtype == np.dtype(dtype)


def test_no_edges_is_a_graph(tmp_path: Path) -> None:
    for vertices in (None, 0, 5):
        convert(Given([], [], vertices), tmp_path / "graph.h5", ConvertOptions(force=True, direction="both"))
        graph = Graph.open(tmp_path / "graph.h5")
        assert (graph.vertices, graph.edges) == (vertices or 0, 0)
    changes: list[dict[str, Any]] = [{"renumber": True}, {"order": "hubs"}, {"order": "degree"}]
    for options in (ConvertOptions(force=True, **changed) for changed in changes):
        convert(Given([], []), tmp_path / "graph.h5", options)
        assert Graph.open(tmp_path / "graph.h5").vertices == 0


@covering("renumber, order", [False, True], ["none", "degree", "hubs"], strength=1)
def test_exactly_the_listed_vertices_exist(tmp_path: Path, renumber: bool, order: Any) -> None:
    listed = tmp_path / "vertices.txt"
    listed.write_text("# all\n900000000000\n9\n3\n5\n9\n1000000000000\n")
    edges: list[Edge] = [(5, 10**12, None)]
    options = ConvertOptions(vertices_file=listed, renumber=renumber, order=order)
    report = convert(Given(edges, []), tmp_path / "graph.h5", options)
    ids = Graph.open(tmp_path / "graph.h5").original_ids()
    assert ids is not None
    assert sorted(ids.tolist()) == [3, 5, 9, 900000000000, 10**12]
    assert (report.vertices, report.without_edges) == (5, 3)


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        ([(3, 5, None), (5, 4, None)], "edge 2 .from 1.: target 4 is not listed"),
        ([(3, 5, None), (11, 4, None)], "edge 2 .from 1.: source 11 is not listed"),
        ([(2, 5, None)], "edge 1 .from 1.: source 2 is not listed"),
    ],
)
def test_an_edge_of_a_vertex_that_is_not_listed_is_refused(tmp_path: Path, edges: list[Edge], words: str) -> None:
    listed = tmp_path / "vertices.txt"
    listed.write_text("3\n5\n10\n")
    with pytest.raises(InputError, match=f"{words} in {listed}.*--vertices"):
        convert(Given(edges, []), tmp_path / "graph.h5", ConvertOptions(vertices_file=listed))
    listed.write_text("# none\n")
    with pytest.raises(InputError, match="is not listed"):
        convert(Given(edges, []), tmp_path / "graph.h5", ConvertOptions(vertices_file=listed))
    assert list(tmp_path.iterdir()) == [listed]


@pytest.mark.parametrize("largest", [(1 << 24) + 64 * 2 + 1, (1 << 64) - 1])
def test_sparse_ids_as_vertices_are_refused_with_the_way_out(tmp_path: Path, largest: int) -> None:
    edges: list[Edge] = [(0, largest, None), (1, 2, None)]
    with pytest.raises(InputError, match=rf"given: .*{largest}.*--renumber"):
        convert(Given(edges, []), tmp_path / "graph.h5", ConvertOptions(renumber=False))
    assert list(tmp_path.iterdir()) == []
    for renumber in (True, None):
        convert(Given(edges, []), tmp_path / "graph.h5", ConvertOptions(renumber=renumber, force=True))
        assert stored(tmp_path / "graph.h5")["out"] == edges
        assert Graph.open(tmp_path / "graph.h5").vertices == 4


def test_hubs_come_first(tmp_path: Path) -> None:
    edges: list[Edge] = [(v, 60, None) for v in range(40)] + [(60, v, None) for v in range(30)]
    edges += [(70, 71, None), (71, 70, None), (71, 99, None)]
    graph = check(edges, [], ConvertOptions(order="hubs", renumber=False), tmp_path)
    ids = graph.original_ids()
    assert ids is not None
    assert ids[:2].tolist() == [60, 71]
    assert sorted(ids.tolist()) == list(range(100))
    assert (np.diff(ids[8:].astype(np.int64)) > 0).all()


@pytest.mark.parametrize("weight", [np.nan, np.inf])
def test_weights_must_be_finite(tmp_path: Path, weight: float) -> None:
    with pytest.raises(InputError, match="given: a weight is"):
        convert(Given([(0, 1, 1.0), (1, 2, weight)], []), tmp_path / "graph.h5", ConvertOptions())
    assert list(tmp_path.iterdir()) == []


def test_impossible_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--undirected"):
        ConvertOptions(undirected=True, symmetrize=True)
    with pytest.raises(InputError, match="--host-memory"):
        ConvertOptions(host_memory=1 << 20)
    (tmp_path / "graph.h5").write_text("mine")
    with pytest.raises(InputError, match="--force"):
        convert(Given([], []), tmp_path / "graph.h5", ConvertOptions())
    with pytest.raises(InputError, match="absent does not exist"):
        convert(Given([], []), tmp_path / "absent" / "graph.h5", ConvertOptions())
    assert (tmp_path / "graph.h5").read_text() == "mine"


class Breaking(Given):
    """A source that raises after its edges."""

    def __init__(self, edges: list[Edge], error: BaseException) -> None:
        super().__init__(edges, [50])
        self.error = error

    def batches(self) -> Iterator[EdgeBatch]:
        yield from super().batches()
        raise self.error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), InputError("bad line"), MemoryError()])
@pytest.mark.parametrize("renumber", [False, True])
def test_a_failure_while_reading_leaves_nothing(
    tiny: dict[str, int], tmp_path: Path, error: BaseException, renumber: bool
) -> None:
    with pytest.raises(type(error)):
        convert(Breaking([(1, 2, None)] * 100, error), tmp_path / "graph.h5", ConvertOptions(renumber=renumber))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("stage", "order"),
    [
        *((stage, "none") for stage in ("read", "out", "in")),
        *((stage, "degree") for stage in ("read", "map", "out", "in")),
    ],
)
def test_an_interrupt_anywhere_leaves_nothing(
    tiny: dict[str, int], tmp_path: Path, stage: str, order: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace, "PROGRESS_SECONDS", -1.0)
    seen = []

    def interrupt(progress: ConvertProgress) -> None:
        seen.append(progress.stage)
        if progress.stage == stage:
            raise KeyboardInterrupt

    edges: list[Edge] = [(i % 17, i % 23, None) for i in range(300)]
    options = ConvertOptions(direction="both", order=order)
    with pytest.raises(KeyboardInterrupt):
        convert(Given(edges, [50] * 5), tmp_path / "graph.h5", options, interrupt)
    assert seen[-1] == stage
    assert list(tmp_path.iterdir()) == []
    assert open_files(tmp_path) == []


def test_progress_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace, "PROGRESS_SECONDS", -1.0)
    seen: list[ConvertProgress] = []
    edges: list[Edge] = [(i % 17, i % 23, None) for i in range(300)]
    options = ConvertOptions(direction="both", order="hubs", threads=1)
    report = convert(Given(edges, [50] * 5), tmp_path / "graph.h5", options, seen.append)
    assert [stage for stage, _ in itertools.groupby(seen, lambda progress: progress.stage)] == [
        "read",
        "map",
        "out",
        "in",
    ]
    for stage in ("read", "map", "out", "in"):
        last = [progress for progress in seen if progress.stage == stage][-1]
        assert last.done == last.total
    assert seen[-1].scratch_bytes == 0 == report.scratch_bytes
    assert set(report.seconds) == {"read", "map", "out", "in", "close"}
    assert report.output_bytes == (tmp_path / "graph.h5").stat().st_size


def test_scratch_is_announced_first_and_refused_without_space(
    tiny: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    edges: list[Edge] = [(i % 17, i % 23, None) for i in range(3000)]
    monkeypatch.setattr(workspace, "PROGRESS_SECONDS", -1.0)
    seen: list[ConvertProgress] = []
    options = ConvertOptions(scratch=scratch, host_memory=32 << 20)
    monkeypatch.setattr(workspace.Workspace, "_expected_scratch", lambda _: 1 << 20)
    report = convert(Given(edges, [50] * 5), tmp_path / "graph.h5", options, seen.append)
    assert seen[0].scratch_bytes == 1 << 20
    assert seen[0].scratch == scratch
    assert report.scratch_bytes >= 8 * 3000
    assert list(scratch.iterdir()) == []
    monkeypatch.setattr(workspace.Workspace, "_expected_scratch", lambda _: 1 << 60)
    with pytest.raises(InputError, match=rf"{scratch}: .*1024\.0 PiB.*--scratch.*--host-memory"):
        convert(Given(edges, [50] * 5), tmp_path / "two.h5", options)
    with pytest.raises(InputError, match="--scratch"):
        convert(Given(edges, []), tmp_path / "two.h5", replace(options, scratch=tmp_path / "absent"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph.h5", "scratch"]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same edges as text and as Parquet."""
    folder = tmp_path_factory.mktemp("inputs")
    ends = np.random.default_rng(1).integers(0, 1 << 18, (2, 1_200_000)).astype(np.uint32)
    table = pa.table({"source": ends[0], "target": ends[1]})
    paths = {"text": folder / "edges.txt", "parquet": folder / "edges.parquet"}
    csv.write_csv(table, paths["text"], csv.WriteOptions(include_header=False, delimiter=" "))
    parquet.write_table(table, paths["parquet"], row_group_size=1 << 18)
    return paths


@covering(
    "kind, budget, options",
    ("text", "parquet"),
    (40, 46, 56),
    ({}, {"direction": "both"}, {"renumber": True}, {"undirected": True}, {"layout": "list"}),
)
def test_scratch_is_foretold_and_refused_by_what_is_used(
    kind: str,
    budget: int,
    options: dict[str, Any],
    inputs: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chosen = ConvertOptions(host_memory=budget << 20, threads=2, **options)

    def converted(progress: Callable[[ConvertProgress], None]) -> int:
        source = open_source([inputs[kind]], None, IngestOptions(host_memory=budget << 20, threads=2))
        return convert(source, tmp_path / "graph.h5", replace(chosen, force=True), progress).scratch_bytes

    monkeypatch.setattr(workspace, "PROGRESS_SECONDS", -1.0)
    said: set[int] = set()
    used = converted(lambda state: said.add(state.scratch_bytes))
    announced = max(said)
    assert said <= {0, announced}
    assert used <= announced <= 1.3 * used
    monkeypatch.setattr(spill_room.shutil, "disk_usage", lambda folder: SimpleNamespace(free=announced - 1))
    with pytest.raises(InputError, match=f"about {format_bytes(announced)} of temporary space are needed"):
        converted(workspace.ignore)


def test_scratch_of_weights_alone_is_not_foretold(
    tiny: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list whose vertices are known has no log; it is not said to use 1 B."""
    monkeypatch.setattr(workspace, "PROGRESS_SECONDS", -1.0)
    edges = [(number % 300, number % 70, number / 7) for number in range(20_000)]
    said: set[int] = set()
    report = convert(
        Given(edges, []),
        tmp_path / "graph.h5",
        ConvertOptions(layout="list", vertices_file=Path("0:300")),
        lambda state: said.add(state.scratch_bytes),
    )
    assert report.scratch_bytes
    assert said == {0}


def test_a_full_scratch_disk_is_an_error(tiny: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edges: list[Edge] = [(i % 170, i % 23, None) for i in range(30_000)]
    tiny["run"] = 1000
    with small_disk(tmp_path / "small", 64 << 10) as small:
        options = ConvertOptions(scratch=small)
        with pytest.raises(InputError, match=rf"{small}: .*about 263\.7 KiB.*64\.0 KiB are free.*--scratch"):
            convert(Given(edges, []), tmp_path / "graph.h5", options)
        monkeypatch.setattr(workspace.Workspace, "_expected_scratch", lambda _: None)
        with pytest.raises(RunError, match=rf"{small}: .*No space left.*--scratch"):
            convert(Given(edges, []), tmp_path / "graph.h5", options)
        assert list(small.iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == ["small"]


LIMITED = """
import sys
from pathlib import Path
from penstock.storage.convert.convert import convert
from penstock.storage.convert.sort.options import ConvertOptions
from penstock.storage.base.errors import RunError
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.open_source import open_source
source = open_source([sys.argv[1]], "binary32", IngestOptions(threads=2))
try:
    convert(source, Path(sys.argv[2]), ConvertOptions(threads=2, host_memory=32 << 20))
except RunError as error:
    print(error)
"""


def test_a_disk_that_fills_while_writing_leaves_nothing(tmp_path: Path) -> None:
    pairs = np.random.default_rng(1).integers(0, 1 << 20, (400_000, 2)).astype("<u4")
    raw = tmp_path / "pairs"
    pairs.tofile(raw)
    done = python(LIMITED, str(raw), str(tmp_path / "graph.h5"), file_bytes=300_000)
    assert done.returncode == 0, done.stderr
    assert "File too large" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["pairs"]


@pytest.mark.parametrize("order", ["none", "degree"])
def test_vertices_are_the_ids_that_occur_or_are_named(tmp_path: Path, order: Any) -> None:
    edges: list[Edge] = [(1, 2, None), (2, 3, None), (3, 1, None), (1000, 1, None)]

    def ids_of(known: int | None, **options: Any) -> list[int]:
        convert(Given(edges, [], known), tmp_path / "g.h5", ConvertOptions(force=True, order=order, **options))
        assert verify(tmp_path / "g.h5").problems == []
        graph = Graph.open(tmp_path / "g.h5")
        ids = graph.original_ids()
        assert stored(tmp_path / "g.h5")["out"] == sorted(edges)
        return sorted(range(graph.vertices) if ids is None else ids.tolist())

    assert ids_of(None) == [1, 2, 3, 1000]
    assert ids_of(6) == [0, 1, 2, 3, 4, 5, 1000]
    assert ids_of(1001) == ids_of(None, renumber=False) == list(range(1001))
    assert ids_of(6, renumber=True) == [1, 2, 3, 1000]
    assert ids_of(None, vertices_file=Path("0:1005")) == list(range(1005))


@pytest.mark.parametrize("options", [{}, {"order": "degree"}, {"layout": "list"}])
def test_vertices_from_0_on_are_listed_without_a_file(tmp_path: Path, options: dict[str, Any]) -> None:
    settled = ConvertOptions(vertices_file=Path("0:7"), **options)
    report = convert(Given([(1, 5, None), (5, 1, None)], []), tmp_path / "g.h5", settled)
    assert (report.vertices, report.without_edges) == (7, 5)
    edges: list[Edge] = [(1, 2, None)] * 5 + [(1, 7, None)]
    with pytest.raises(InputError, match=r"edge 6 \(from 1\): target 7 is not listed in 0:7"):
        convert(Given(edges, [3]), tmp_path / "other.h5", settled)
    (tmp_path / "in.txt").write_text("# one\n1 2\n8 3\n")
    with pytest.raises(InputError, match=r"in.txt, line 3: source 8 is not listed in 0:7"):
        convert(open_source([tmp_path / "in.txt"], None, IngestOptions()), tmp_path / "other.h5", settled)
    (tmp_path / "in.txt").write_text("a b\n")
    named = open_source([tmp_path / "in.txt"], None, IngestOptions(string_ids=True))
    with pytest.raises(InputError, match=r"--vertices 0:7 lists numbers, and .*in.txt has ids that are strings"):
        convert(named, tmp_path / "other.h5", settled)
    assert not (tmp_path / "other.h5").exists()


def test_ids_beyond_the_bitmap_are_refused_where_they_come_late(tmp_path: Path) -> None:
    edges: list[Edge] = [(0, 1, None), (1, 2, None), (1 << 40, 2, None)]
    with pytest.raises(InputError, match=r"given: .*--renumber"):
        convert(Given(edges, [2]), tmp_path / "g.h5", ConvertOptions())
    assert list(tmp_path.iterdir()) == []
    late: list[Edge] = [(0, 1, None)] + [(v << 16, v + 1 << 16, None) for v in range(450)]
    with pytest.raises(
        InputError, match=r"given: the bitmap of the ids .* than the 4.0 MiB .*--renumber.*--no-renumber"
    ):
        convert(Given(late, [1]), tmp_path / "g.h5", ConvertOptions(host_memory=32 << 20))
    convert(Given(late, []), tmp_path / "g.h5", ConvertOptions(host_memory=32 << 20))
    assert Graph.open(tmp_path / "g.h5").vertices == 452


@pytest.mark.parametrize("layout", ["rows", "list"])
def test_late_ids_of_arrays_get_a_table(layout: Any) -> None:
    ids = np.full(BATCH_EDGES + 1, 7, np.uint64)
    ids[-1] = 1 << 40
    graph = graph_of(EdgeArrays((ids, ids - np.uint64(1)), None, None, undirected=False), ConvertOptions(layout=layout))
    found = graph.original_ids()
    assert found is not None
    assert (graph.edges, found.tolist()) == (len(ids), [6, 7, (1 << 40) - 1, 1 << 40])


def test_named_vertices_need_no_bitmap(tmp_path: Path) -> None:
    ids = np.random.default_rng(1).integers(0, 1 << 25, (2, 300_000)).astype(np.uint32)
    source = EdgeArrays((ids[0], ids[1]), None, 1 << 25, undirected=False)
    report = convert(source, tmp_path / "g.h5", ConvertOptions(host_memory=32 << 20))
    assert (report.vertices, report.without_edges) == (1 << 25, None)
