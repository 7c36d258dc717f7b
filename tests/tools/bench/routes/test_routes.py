"""`penstock bench routes`: which rows there are, how they are measured, compared and told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from penstock.engine import run
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.wcc import WCC
from penstock.engine.resources.config import Config, Tuning
from penstock.engine.state.records import IterationRecord
from penstock.storage.base.errors import InputError, RunError
from penstock.tools import cli
from penstock.tools.bench.routes import trials
from penstock.tools.bench.routes.matrix import (
    Case,
    Configuration,
    Labels,
    Levels,
    case_of,
    chosen,
    configurations,
    difference,
    pick_source,
)
from penstock.tools.bench.routes.report import facts, lines
from penstock.tools.bench.routes.trials import Outcome, Row, Trial, TrialPlan, measure, trace_of
from penstock.tools.commands.bench_routes import CASES, read_portion
from penstock.transfer.routes.registry import ROUTES, serving
from penstock.transfer.values.task import TaskRecord
from support.commands import answered
from support.graphs import in_memory, on_disk, shape, skewed, weighed
from support.json_page import check_documented
from support.oracles import EdgeList

PLAIN = ["--json", "--repeat", "1", "--device", "emulated"]


def names(kind: str, program: str, **more: Any) -> dict[str, str | None]:
    return {row.name: row.unable for row in configurations(kind, case_of(program, (0,), 3), **more)}


# Which rows there are


def test_rows_change_one_option_of_a_session() -> None:
    found = configurations("emulated", case_of("sssp", (0,), 3), ablation=True)
    for row in found:
        Config.of(**row.options)
    changed = [row.options for row in found if row.name.startswith("auto,")]
    given = [(key, value) for options in changed for key, value in {**options, **options.get("tuning", {})}.items()]
    assert all(getattr(Tuning if hasattr(Tuning, key) else Config, key, None) != value for key, value in given)
    ladder = [row.options["tuning"] for row in found[-5:]]
    told = [(step["combine"] > 1, step["priority"], step["residency"], step["model"]) for step in ladder]
    assert told == [
        (False, False, "none", "published"),
        (True, False, "none", "published"),
        (True, True, "none", "published"),
        (True, True, "value", "published"),
        (True, True, "value", "measured"),
    ]
    last = Tuning(**ladder[-1])
    assert replace(last, local_rounds=Tuning.local_rounds) == Tuning()


def test_what_cannot_differ_is_said() -> None:
    on_host = names("host", "wcc")
    assert all(on_host[name] is not None for name in (*ROUTES, "auto, published model", "auto, no residency"))
    assert on_host["auto"] is None
    rounds = next(name for name in on_host if "local round" in name)
    assert {program: names("cuda", program)[rounds] is None for program in ("bfs", "sssp", "wcc", "residual")} == {
        "bfs": False,
        "sssp": True,
        "wcc": False,
        "residual": True,
    }


def test_rows_are_chosen_by_name() -> None:
    rows = configurations("emulated", case_of("wcc", (), 1), ablation=True)
    assert chosen(rows, ()) == rows
    assert [row.name for row in chosen(rows, ("cel", "HyTGraph"))] == ["cel", "HyTGraph hybrid"]
    assert [row.name for row in chosen(rows, ("=cel", "=auto", "=+ priority"))] == ["cel", "auto", "  + priority"]
    with pytest.raises(InputError, match="no row has '=HyTGraph' in its name"):
        chosen(rows, ("=HyTGraph",))
    with pytest.raises(InputError, match="'warp' in its name; the rows are resident, filter"):
        chosen(rows, ("warp",))


def test_bytes_of_edges_are_those_that_a_program_reads() -> None:
    graph = in_memory(shape("skewed", weights="uint8"))
    assert case_of("bfs", (0,), 1).edge_bytes(graph) == 4 * graph.edges
    assert case_of("sssp", (0,), 1).edge_bytes(graph) == 5 * graph.edges
    assert case_of("levels", (0,), 1).edge_bytes(graph) == 4 * graph.edges
    assert [case_of(name, (0,), 1).name for name in CASES] == list(CASES)


def test_a_source_has_edges() -> None:
    graph = in_memory(shape("star-out"))
    assert pick_source(graph) == 0
    with pytest.raises(InputError, match="no edges"):
        pick_source(in_memory(shape("isolated")))


@pytest.mark.parametrize(("text", "of_1000"), [("25%", 250), ("3 %", 30), ("100%", 1000), ("2KiB", 2048), ("7", 7)])
def test_portions(text: str, of_1000: int) -> None:
    assert read_portion(text)(1000) == of_1000


def test_levels_and_labels_are_those_of_bfs_and_components() -> None:
    """By plain Python: nothing is compiled for two more programs."""
    graph = in_memory(shape("skewed", directed=False))
    source = pick_source(graph)
    plain = {"kernels": "reference"}
    found = run(Levels(source), graph, **plain).fields["level"]
    assert (found == run(BFS(source), graph, **plain).fields["level"]).all()
    labels = run(Labels(), graph, **plain).fields["label"]
    assert (labels == run(WCC(), graph, **plain).fields["component"]).all()


# When answers agree


def answer(tolerance: float = 0.0, **fields: Any) -> Any:
    arrays = {name: np.asarray(values) for name, values in fields.items()}
    return SimpleNamespace(fields=arrays, program=SimpleNamespace(tolerance=tolerance))


def test_integers_must_be_identical_and_floats_close() -> None:
    right = {"level": np.array([0, 1, 2])}
    assert difference(answer(level=[0, 1, 2]), right, None) is None
    assert difference(answer(0.5, level=[0, 1, 3]), right, None) == "1 of 3 values of level differ"
    assert difference(answer(level=[0, 1]), right, None) is not None
    assert difference(answer(level=np.array([0, 1, 2], dtype=np.uint8)), right, None) is not None
    ranks = {"rank": np.array([0.5, 0.5, np.inf])}
    assert difference(answer(1e-9, rank=[0.5, 0.5 + 1e-11, np.inf]), ranks, None) is None
    assert "1 of 3" in str(difference(answer(1e-9, rank=[0.5, 0.5 + 1e-8, np.inf]), ranks, None))
    assert difference(answer(1e-9, rank=[0.5, 0.5 + 1e-8, np.nan]), ranks, None) is not None


def test_a_bound_in_l1_takes_the_place_of_the_tolerance() -> None:
    ranks = {"rank": np.array([0.5, 0.5])}
    assert difference(answer(rank=[0.504, 0.497]), ranks, 0.01) is None
    assert "apart in L1" in str(difference(answer(rank=[0.51, 0.498]), ranks, 0.01))
    assert difference(answer(rank=[0.5, np.nan]), ranks, 0.01) is not None


# How rows are measured


clock = [0]


class Sessions:
    """Stands in for `Session`: says what it was asked, answers what the option `plays` says."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.runs: list[str] = []
        self.open = 0

    def __call__(self, graph: Any, **options: Any) -> Any:
        if options["plays"] == "refused":
            raise InputError("too small")
        owner = self
        owner.opened.append(options["plays"])

        class One:
            def __enter__(self) -> Any:
                assert owner.open == 0, "one session at a time"
                owner.open += 1
                return self

            def __exit__(self, *_: object) -> None:
                owner.open -= 1

            def steps(self, program: Any) -> Any:
                for number in range(3 if options["plays"] == "endless" else 0):
                    clock[0] += 40
                    yield IterationRecord(number, "push", 1, 1)
                owner.runs.append(options["plays"])
                if options["plays"] == "broken":
                    raise RunError("out of device memory")
                if options["plays"] == "defect":
                    raise IndexError("7")
                right = options["plays"] != "late" or owner.runs.count("late") < 4
                level = np.array([0, 1, 2 if right and options["plays"] != "wrong" else 7])
                record = IterationRecord(0, "push", 1, 3, tasks=[TaskRecord("filter", "out", (0,), bytes_link=40)])
                seconds = {"slow": 3.0}.get(options["plays"], float(len(owner.runs)))
                return SimpleNamespace(
                    fields={"level": level},
                    records=[record],
                    seconds=seconds,
                    bytes_read=0,
                    iterations=1,
                    program=SimpleNamespace(tolerance=0.0),
                    graph=SimpleNamespace(vertices=3),
                    reached=lambda name: np.array([True, True, False]),
                )

        return One()


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sessions]:
    fake, clock[0] = Sessions(), 0
    monkeypatch.setattr(trials.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(trials, "Session", fake)
    yield fake
    assert fake.open == 0


def play(*plays: str, repeat: int = 3, visits: int = 2, makers: int = 1) -> tuple[list[Row], float]:
    compared = [Configuration(f"row {name}", {"plays": name}) for name in plays]
    case = Case("game", [lambda: None] * makers)  # type: ignore[arg-type,return-value]
    graph: Any = None
    return measure(case, graph, [Configuration("absent", {}, "not here"), *compared], {}, TrialPlan(repeat, visits))


def test_rows_are_visited_there_and_back_with_a_warm_up_each_time(sessions: Sessions) -> None:
    rows, reached = play("a", "b")
    assert sessions.opened == ["a", "b", "b", "a"]
    assert sessions.runs == ["a"] * 3 + ["b"] * 3 + ["b"] * 2 + ["a"] * 2
    assert [len(row.trials) for row in rows] == [0, 3, 3]
    assert rows[0].problem == "not here"
    assert reached == pytest.approx(2 / 3)


def test_figures_are_means_over_sources_and_the_median_of_trials(sessions: Sessions) -> None:
    (_, row), _ = play("a", visits=1, makers=2)
    assert [trial.seconds for trial in row.trials] == [3.5, 5.5, 7.5]
    assert row.seconds == 5.5
    assert row.typical is row.trials[1]
    assert (row.trials[0].bytes_link, row.trials[0].iterations, len(row.trials[0].trace)) == (40, 1, 1)


def test_wrong_answers_fail_their_row_only_even_late(sessions: Sessions) -> None:
    (_, right, wrong, late), _ = play("a", "wrong", "late")
    assert right.problem is None
    assert (wrong.failed, wrong.problem) == (True, "wrong answer: 1 of 3 values of level differ")
    assert (late.failed, late.seconds, late.typical) == (True, None, None)
    assert sessions.runs.count("wrong") == 1


def test_rows_that_cannot_run_are_kept_with_the_reason(sessions: Sessions) -> None:
    (_, refused, broken, defect, fine), _ = play("refused", "broken", "defect", "a")
    assert (refused.problem, refused.failed) == ("too small", False)
    assert (broken.problem, broken.failed) == ("out of device memory", True)
    assert (defect.problem, defect.failed) == ("IndexError: 7", True)
    assert fine.seconds is not None
    (absent, refused), _ = play("refused")
    found = Outcome(Case("game", []), [absent, refused], 0, None, None, 0.0)
    assert found.stuck == "game: no row can run: too small"
    assert lines(found)[1:] == ["absent: not run: not here", "row refused: not run: too small"]
    assert Outcome(Case("game", []), [fine], 0, None, None, 0.0).stuck is None


def test_runs_without_end_are_given_up(sessions: Sessions) -> None:
    (_, endless, fine), _ = play("endless", "a")
    assert (endless.problem, endless.failed) == ("gave up in iteration 1 after 60 s; --patience waits longer", False)
    assert fine.seconds is not None


def test_a_row_that_takes_long_is_not_repeated(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(0, 10_000, 25))
    monkeypatch.setattr(trials.time, "perf_counter", lambda: next(ticks))
    (_, slow), _ = play("a", repeat=9, visits=1)
    assert 1 <= len(slow.trials) < 9
    assert (slow.problem, slow.failed) == (None, False)


def test_a_trace_counts_by_route() -> None:
    tasks = [
        TaskRecord("filter", "out", (0, 1), edges=5, bytes_link=80, bytes_unpacked=300, wanted=2),
        TaskRecord("filter", "out", (7,), edges=1, bytes_link=40, bytes_disk=9, wanted=1),
        TaskRecord("zero-copy", "out", (2, 3, 4, 5), edges=2, lines=3, bytes_link=384, wanted=1),
    ]
    told = trace_of(IterationRecord(4, "push", 6, 8, 0.5, tasks=tasks))
    assert told["routes"] == {
        "filter": {
            "tasks": 2,
            "partitions": 3,
            "edges": 6,
            "lines": 0,
            "bytes_link": 120,
            "bytes_unpacked": 300,
            "bytes_disk": 9,
        },
        "zero-copy": {
            "tasks": 1,
            "partitions": 1,
            "edges": 2,
            "lines": 3,
            "bytes_link": 384,
            "bytes_unpacked": 0,
            "bytes_disk": 0,
        },
    }
    assert Trial(1.0, 0, 0, 2, [told, {"frontier_edges": 0, "routes": {}}]).shares == {
        "filter": 0.75,
        "zero-copy": 0.25,
    }
    whole = trace_of(IterationRecord(5, "push", 6, 8, tasks=[TaskRecord("resident", "out", (0, 1), edges=9)]))
    heads = trace_of(IterationRecord(6, "pull", 6, 8))
    assert Trial(1.0, 0, 0, 2, [told, whole, heads]).shares == {"filter": 0.5, "zero-copy": 1 / 6, "resident": 1 / 3}
    assert Trial(1.0, 0, 0, 0, []).shares == {}


# How they are told


def row(name: str, seconds: list[float], link: float = 0.0, *, single: bool = True, disk: float = 0.0) -> Row:
    trace = [{"routes": {name: {"partitions": 1, "tasks": 1}}}]
    made = Row(Configuration(name, {"route": name} if single else {}))
    made.trials = [Trial(value, link, disk, 2, trace) for value in seconds]
    return made


def outcome(*rows: Row, rate: float | None = 1000.0) -> Outcome:
    return Outcome(case_of("bfs", (4,), 1), list(rows), 400, 100, rate, 0.5)


def test_figures_follow_from_bytes_and_seconds() -> None:
    fast, slow = row("zero-copy", [1.0, 2.0, 9.0], 800), row("filter", [4.0], 3600)
    auto = row("auto", [3.0], 200, single=False)
    told = outcome(row("resident", [0.1]), slow, fast, auto)
    assert (told.moved(fast), told.of_link(fast)) == (2.0, 0.4)
    assert told.of_link(slow) == 0.9
    assert told.best_single is fast
    assert told.auto_over_best == 1.5
    assert outcome(fast, rate=None).of_link(fast) is None
    assert outcome(fast).auto_over_best is None


def test_the_table_says_everything() -> None:
    failed = row("cel", [1.0])
    failed.problem, failed.failed = "wrong answer: all of it", True
    refused = Row(Configuration("resident", {"route": "resident"}), "too large")
    told = outcome(refused, failed, row("filter", [0.0015], 600), row("auto", [0.003], 60, single=False))
    shown = lines(told)
    assert shown[0] == "bfs from 4 (50% of the vertices reached), 400 B of edges, 100 B, 25% on the device"
    assert shown[1].split()[-3:] == ["partitions", "by", "route"]
    assert shown[3].split() == ["filter", "1.50", "1.500", "40000%", "2", "filter", "100%"]
    assert shown[5:] == [
        "resident: not run: too large",
        "cel: FAILED: wrong answer: all of it",
        "auto takes 2.00 x the best single route (filter)",
    ]
    states = {entry["name"]: entry["state"] for entry in facts(told)["rows"]}
    assert states == {"resident": "not run", "cel": "failed", "filter": "ran", "auto": "ran"}
    assert "read/edges" in lines(outcome(row("filter", [1.0], disk=200)))[1]


def test_rows_that_follow_are_told_beside_their_carriers() -> None:
    filtered, following = row("filter", [2.0], 4000), row("cel", [3.0], 1000)
    filtered.trials = [Trial(2.0, 4000, 0, 10, [], {}, {"filter": 4000.0})]
    following.trials = [Trial(3.0, 1000, 0, 4, [], {}, {"filter": 800.0}, 50.0, 25.0)]
    shown = lines(outcome(filtered, following))
    assert shown[1].split()[-5:-3] == ["passes", "followed"]
    assert shown[4].split()[1:] == ["3,000.00", "2.500", "33%", "4", "2.000", "0.500", "-"]
    assert shown[-1] == "cel takes 0.40 x the iterations of filter, 0.25 x its bytes, 1.50 x its time"


def test_steps_are_compared_with_the_hybrid() -> None:
    names = ("HyTGraph hybrid", "  + combination", "  + priority", "  + residency", "  + measured model")
    rows = [row(name, [seconds], single=False) for name, seconds in zip(names, (4.0, 3.2, 5.0, 2.0, 1.0), strict=True)]
    rows[2].trials = []
    assert outcome(*rows).steps == {"+ combination": 1.25, "+ residency": 2.0, "+ measured model": 4.0}
    assert lines(outcome(*rows))[-1].startswith("times as fast as HyTGraph hybrid: + combination 1.25, ")
    assert outcome(*rows[1:]).steps == {}


# The command


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("routes") / "graph.h5"
    edges = weighed(EdgeList(500, *skewed(500, 20_000, 3), None, False), "uint8")
    on_disk(edges, path, chunk_edges=256)
    return path


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    facts = answered(capsys, "bench", "routes", *arguments)
    check_documented(facts)
    return facts


def test_the_command_measures_programs(
    graph: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A graph read into memory has the usual chunks, larger than this one: leave it in small ones, on disk.
    monkeypatch.setattr("penstock.tools.bench.system.in_memory", lambda graph: graph)
    output = tmp_path / "routes.json"
    options = ["--link-rate", "10GB", "--sweeps", "2", "--partition-bytes", "1KiB", "--output", output]
    options += ["--program", "sssp", "--program", "pagerank"]
    found = told(capsys, graph, *PLAIN, *options)
    assert json.loads(output.read_text()) == found
    assert [entry["program"] for entry in found["programs"]] == ["sssp", "pagerank"]
    for entry in found["programs"]:
        rows = {row["name"]: row for row in entry["rows"]}
        assert {row["state"] for name, row in rows.items() if name in serving()[1:4]} == {"ran"}
        assert rows["cel"]["state"] == ("ran" if entry["program"] == "sssp" else "not run")
        assert "resident needs all" in rows["resident"]["problem"]
        assert entry["device_edge_memory"] == entry["edge_bytes"] // 4
        for row in (row for row in rows.values() if row["state"] == "ran"):
            routes = [brought for iteration in row["trace"] for brought in iteration["routes"].values()]
            assert row["bytes_link"] == sum(brought["bytes_link"] for brought in routes)
            assert sum(row["routes"].values()) == pytest.approx(1)
            assert row["share_of_link"] == pytest.approx(row["bytes_link"] / (row["median_seconds"] * 1e10))
    sweeps = {row["name"]: row for row in found["programs"][1]["rows"]}
    assert sweeps["filter"]["moved_over_edges"] < 0.5  # two sweeps of packed edges
    assert sweeps["filter"]["routes"] == {"filter": 1.0}
    assert sweeps["auto"]["moved_over_edges"] < 2.0


def test_a_wrong_answer_is_a_failure_by_name(
    graph: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.tools.bench.system.in_memory", lambda graph: graph)
    monkeypatch.setattr(trials, "difference", lambda *_: "all of it")
    options = ["--program", "wcc", "--repeat", "1", "--device", "emulated", "--partition-bytes", "1KiB"]
    assert cli.run_command(["bench", "routes", str(graph), *options]) == 1
    shown = capsys.readouterr()
    assert "filter: FAILED: wrong answer: all of it" in shown.out
    assert "wcc, filter: wrong answer: all of it" in shown.err


def test_a_program_that_cannot_run_costs_the_others_nothing(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--program", "bfs", "--program", "wcc", "--source", "5000", "--device", "cpu", "--repeat", "1", "--json"]
    assert cli.run_command(["bench", "routes", str(graph), *options]) == 2
    shown = capsys.readouterr()
    assert "bfs: no row can run: vertex 5000" in shown.err
    states = {entry["program"]: {row["state"] for row in entry["rows"]} for entry in json.loads(shown.out)["programs"]}
    assert states == {"bfs": {"not run"}, "wcc": {"not run", "ran"}}


def test_a_host_compares_what_it_can(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--device", "cpu", "--host-memory", "64MiB", "--program", "wcc", "--repeat", "1", "--json"]
    found = told(capsys, graph, *options)
    assert (found["kind"], found["on_disk"], found["link_bytes_per_second"]) == ("host", True, None)
    states = {row["name"]: row["state"] for row in found["programs"][0]["rows"]}
    assert states["auto"] == "ran"
    assert states["filter"] == "not run"


@pytest.mark.parametrize("kind", ["rmat", "web", "grid"])
def test_graphs_are_generated(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--scale", "9", "--kind", kind, "--folder", tmp_path, "--program", "wcc", "--device", "cpu"]
    found = told(capsys, *options, "--json", "--repeat", "1")
    assert found["graph"].startswith(kind)
    assert (found["vertices"], found["on_disk"]) == (512, False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "--scale"),
        (["{g}", "--scale", "9"], "--scale"),
        (["absent.h5"], "absent.h5"),
        (["{g}", "--program", "walk"], "walk"),
        (["{g}", "--program", "bfs", "--source", "5000"], "vertex 5000"),
        (["{g}", "--device-edge-memory", "0%"], "0%"),
        (["{g}", "--device-edge-memory", "x%"], "25%"),
        (["{g}", "--device-edge-memory", "much"], "much"),
        (["{g}", "--link-rate", "1GB", "--device", "cpu"], "--link-rate"),
        (["{g}", "--device", "tpu"], "tpu"),
        (["{g}", "--plot", "routes.bmp"], ".bmp"),
    ],
)
def test_bad_requests_are_refused_by_name(
    graph: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], named: str
) -> None:
    words = [text.format(g=graph) for text in arguments]
    assert cli.run_command(["bench", "routes", *words, *([] if "--device" in words else ["--device", "cpu"])]) == 2
    shown = capsys.readouterr()
    assert named in shown.err
    assert shown.out == ""
