"""`penstock report`: reads what runs wrote, whole or not, and draws it legibly for one iteration and for thousands."""

from __future__ import annotations

import copy
import json
import re
import tempfile
from contextlib import suppress
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.storage.base.errors import InputError
from penstock.tools import cli
from penstock.tools.base.json_record import of_json
from penstock.tools.base.output import plain
from penstock.tools.base.plots import COLOURS, as_svg, starts_of
from penstock.tools.report import figures, page
from penstock.tools.report.read_metrics import RunMetrics, read, shared
from penstock.tools.run.metric_lines import FORMAT, IterationLine, JobLine, ResultLine
from support.graphs import on_disk, skewed
from support.oracles import EdgeList

RATES = {
    "disk_bytes": 3e9, "decode_bytes": 8e9, "gather_bytes": 8e9, "copy_bytes": None, "copy_latency": 0.0,
    "line_rate": None, "sector_rate": None, "kernel_edges": 2e8, "kernel_latency": 2e-6, "line_runs": [],
}  # fmt: skip


def job(kind: str = "host", **rates: float) -> dict[str, Any]:
    return {
        "kind": "job", "format": 1, "program": "sssp", "parameters": {"source": 3},
        "graph": {"path": "/tmp/web.h5", "vertices": 1000, "edges": 50_000, "directed": True, "bytes": 90_000},
        "options": {}, "threads": 4, "device": {"name": "cpu" if kind == "host" else "cuda:0", "kind": kind},
        "budget": {"host": 1 << 30, "device": None if kind == "host" else 1 << 30, "device_edges": None},
        "machine": {"processor": "A CPU"}, "rates": RATES | rates,
    }  # fmt: skip


def iteration(number: int, routes: dict[str, dict[str, int]], **busy: float) -> dict[str, Any]:
    sums = {name: sum(came.get(name, 0) for came in routes.values()) for name in ("bytes_link", "bytes_disk")}
    return {
        "kind": "iteration", "iteration": number, "direction": "push" if number % 3 else "pull",
        "frontier_vertices": 1 + number % 700, "frontier_edges": 40 * (1 + number % 700), "seconds": 0.01,
        "walk_seconds": 0.008, "plan_seconds": 0.001, **sums, "routes": routes,
        "busy_seconds": {"disk": 0.0, "decode": 0.0, "gather": 0.0, "link": 0.0, "kernel": 0.0} | busy,
        "chunks_read": 2, "memory": {"process": 300 << 20, "device": 9 << 20, "edges": 200_000, "edges_host": 50_000,
                                     "edges_device": 9_000, "chunk": 1000},
    }  # fmt: skip


def came(partitions: int = 1, **more: int) -> dict[str, int]:
    return {"tasks": 1, "partitions": partitions, "edges": 10, "lines": 0, "bytes_link": 0, "bytes_disk": 0} | more


def run_of(count: int, *, linked: bool = True, ended: bool = True) -> RunMetrics:
    """A run of `count` iterations by several routes."""
    made = RunMetrics(of_json(JobLine, job("cuda" if linked else "host", copy_bytes=5e10, line_rate=4e8)))
    for number in range(count):
        route = ("zero-copy", "compaction", "filter")[number % 3] if linked else "filter"
        size = {"bytes_link": 128 * 900, "lines": 900} if linked else {}
        routes = {"resident": came(2), route: came(5, bytes_disk=70_000, **size)}
        busy = {"link": 0.007, "kernel": 0.002, "disk": 0.004, "decode": 0.001}
        made.iterations.append(of_json(IterationLine, iteration(number, routes, **busy)))
    if ended:
        made.result = ResultLine(total_seconds=1.0, converged=True)
    return made


def change(run: RunMetrics, at: int, **fields: Any) -> None:
    run.iterations[at] = replace(run.iterations[at], **fields)


def test_sums_are_those_of_the_lines() -> None:
    run = run_of(30)
    spent = run.spent
    assert (spent.iterations, spent.seconds) == (30, pytest.approx(0.3))
    assert spent.busy["link"] == pytest.approx(0.21)
    assert {name: moved for name, moved in spent.moved.items() if moved} == {
        "disk": 30 * 70_000,
        "decode": 60 * 1000,
        "gather": 10 * 115_200,
        "link": 30 * 115_200,
    }
    assert spent.ideal["disk"] == pytest.approx(30 * 70_000 / 3e9)
    assert spent.ideal["link"] == pytest.approx(20 * 115_200 / 5e10 + 10 * 900 / 4e8)
    assert spent.passes == pytest.approx(60_000 / 200_000)
    assert run.verdict.limit == "link"
    assert run.by_route("partitions").sum(axis=1).tolist() == [60, 50, 50, 50]
    assert run.routes == ["resident", "filter", "compaction", "zero-copy"]


def test_on_a_gpu_waiting_for_kernels_is_not_work_on_vertices() -> None:
    run = run_of(3)
    assert run.busy("vertices").tolist() == [0, 0, 0]
    assert run.busy("kernel").tolist() == [0.002] * 3
    change(run, 1, routes={"resident": came(3)})
    assert run.busy("kernel").tolist() == [0.002, 0.01, 0.002]
    assert run_of(3, linked=False).busy("vertices") == pytest.approx([0.002] * 3)
    assert run_of(3, linked=False).busy("plan") == pytest.approx([0.001] * 3)


def test_the_exchange_of_ranks_is_not_work_on_vertices() -> None:
    run = run_of(3, linked=False)
    for at in range(3):
        change(run, at, exchange_seconds=0.0015)
    assert run.busy("exchange") == pytest.approx([0.0015] * 3)
    assert run.busy("vertices") == pytest.approx([0.0005] * 3)


def test_values_of_vertices_in_a_file_are_told(tmp_path: Path) -> None:
    run = run_of(3, linked=False)
    for at, windows in enumerate((5, 1, 4)):
        busy = run.iterations[at].busy_seconds | {"values": 0.006, "link": 0.0}
        change(run, at, windows=windows, value_bytes=1 << 30, value_wait_seconds=0.0015, busy_seconds=busy)
    assert run.busy("vertices") == pytest.approx([0.0005] * 3), "waiting is no work"
    assert (run.spent.windows, run.spent.moved["values"]) == (5, 3 << 30)
    assert run.verdict.limit == "values"
    told = "\n".join(page.lines(run))
    assert "5 of vertices; 3.0 GiB of their values read and written" in told
    assert re.search(r"values in pages +18 ms +60 % +3.0 GiB", told)
    pytest.importorskip("matplotlib")
    assert "values" in as_svg(figures.pictures(run, alone=False)["iterations"])


def test_on_a_gpu_copies_may_go_on_when_the_iteration_is_over_for_the_host() -> None:
    for linked, most in ((True, 0.03), (False, 0.01)):
        run = run_of(2, linked=linked)
        run.iterations[1].busy_seconds["link"] = 0.03
        assert run.busy("link") == pytest.approx([0.007, most])


def written(tmp_path: Path, *lines: Any) -> Path:
    path = tmp_path / "m.jsonl"
    path.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))
    return path


def test_several_runs_and_a_folder_are_read(tmp_path: Path) -> None:
    one = iteration(0, {"resident": came()}, kernel=0.005)
    path = written(tmp_path, job(), one, {"kind": "result", "seconds": 1.0}, job(), one, one,
                   {"kind": "failed", "error": "RunError: no"})  # fmt: skip
    first, second = read(path)
    assert (first.ended, len(first.iterations)) == ("done", 1)
    assert (second.ended, len(second.iterations)) == ("failed: RunError: no", 2)
    path.rename(tmp_path / "metrics.jsonl")
    assert len(read(tmp_path)) == 2


def told(*seconds: float) -> dict[str, Any]:
    """What a line says of the job's wall time so far: imports, iterations."""
    return {"wall_seconds": sum(seconds), "stages": dict(zip(("imports", "iterations"), seconds, strict=False))}


def test_a_single_program_is_its_whole_job(tmp_path: Path) -> None:
    one = iteration(0, {"resident": came()}, kernel=0.005)
    lines = [job() | told(1.0), one, {"kind": "result"} | told(1.0, 2.0), {"kind": "end"} | told(1.0, 2.0, 0.5)]
    (run,) = runs = read(written(tmp_path, *lines))
    assert run.account is not None
    assert (run.account.wall_seconds, run.account.stages) == (3.5, {"imports": 1.0, "iterations": 2.0})
    assert shared(runs) is None
    assert "3.5 s, longest: iterations, 57 %" in "\n".join(page.lines(run))
    (run,) = read(written(tmp_path, *lines[:-1]))  # killed while memory was given back
    assert run.account is not None
    assert run.account.wall_seconds == 3.0
    (run,) = read(written(tmp_path, *lines[:2]))  # killed in the first second of iterations
    assert run.account is not None
    assert run.account.wall_seconds == 1.0


def test_programs_of_a_job_have_their_parts_and_share_the_rest(tmp_path: Path, capsys: Any) -> None:
    one = iteration(0, {"resident": came()}, kernel=0.005)
    path = written(
        tmp_path, job() | told(1.0), one, {"kind": "result"} | told(1.0, 2.0),
        job() | told(1.0, 2.0), one, {"kind": "failed", "error": "no"} | told(1.0, 5.0),
        {"kind": "end"} | told(1.5, 5.0),
    )  # fmt: skip
    runs = read(path)
    assert [run.account and run.account.stages for run in runs] == [{"iterations": 2.0}, {"iterations": 3.0}]
    rest = shared(runs)
    assert rest is not None
    assert (rest.wall_seconds, rest.stages) == (1.5, {"imports": 1.5})
    assert cli.run_command(["report", str(path)]) == 0
    assert "all programs together, beside what each took" in capsys.readouterr().out


def test_metrics_without_stages_are_read(tmp_path: Path) -> None:
    (run,) = runs = read(written(tmp_path, job(), iteration(0, {}, kernel=0.009), {"kind": "result"}))
    assert run.account is None
    assert shared(runs) is None
    assert "stage of the job" not in "\n".join(page.lines(run))
    assert run.verdict.limit == "kernel"


def test_what_was_compiled_in_an_iteration_is_no_work_of_kernels() -> None:
    run = run_of(2, linked=False)
    run.iterations[0].busy_seconds["kernel"] = 5.007
    change(run, 0, seconds=5.01, walk_seconds=5.008, compile_seconds=5.0)
    assert run.seconds == pytest.approx(0.02)
    assert run.busy("kernel") == pytest.approx([0.01, 0.002])


def test_a_killed_run_is_read_as_far_as_it_went(tmp_path: Path) -> None:
    one = iteration(0, {"resident": came()}, kernel=0.005)
    (run,) = read(written(tmp_path, job(), one, '{"kind": "iteration", "itera'))
    assert (len(run.iterations), run.ended) == (1, "not ended: killed, or still running")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([], "is empty"),
        (["not json\n"], "line 1"),
        ([iteration(0, {})], "line 1"),
        ([job(), {"kind": "iteration"}], "line 2"),
        ([job(), "[1]\n"], "line 2"),
        ([job(), "torn\n", job()], "line 2"),
        ([job() | {"format": FORMAT + 1}], f"format {FORMAT + 1} is newer"),
        ([job(), {"kind": "end"}], "wall_seconds is missing"),
        ([job(), {"kind": "end", "wall_seconds": 1, "stages": {"imports": "x"}}], "stages.imports"),
        ([{"kind": "job", "format": 1}], "line 1"),
        (["{half"], "line 1"),
    ],
)
def test_other_files_are_refused_by_line(tmp_path: Path, lines: list[Any], words: str) -> None:
    path = written(tmp_path, *lines)
    with pytest.raises(InputError, match=re.escape(str(path))) as refusal:
        read(path)
    assert words in str(refusal.value)


def test_a_missing_file_names_the_way_to_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--metrics"):
        read(tmp_path / "none.jsonl")


@pytest.mark.parametrize(("count", "linked"), [(1, False), (900, True)])
def test_pictures_say_what_they_show(count: int, linked: bool) -> None:
    pytest.importorskip("matplotlib")
    run = run_of(count, linked=linked)
    page = svg(run)
    for words in ("where the time went", "frontier: active edges", "active vertices", "partitions by route"):
        assert words in page, words
    assert f"bytes {'over the link' if linked else 'from disk'} by route" in page
    assert ("means of" in page) == (count == 900)
    for route in run.routes:
        assert COLOURS[route].lower() in page.lower()
    assert len(page) < 6e5


def svg(run: RunMetrics) -> str:
    from penstock.tools.base.plots import as_svg

    return "".join(as_svg(figure) for figure in figures.pictures(run, alone=False).values())


def test_a_run_of_zeros_can_be_drawn() -> None:
    pytest.importorskip("matplotlib")
    run = RunMetrics(of_json(JobLine, job()), [of_json(IterationLine, iteration(0, {}))])
    change(run, 0, frontier_vertices=0, frontier_edges=0, seconds=0.0)
    assert "frontier" in svg(run)
    change(run, 0, iteration=70)
    assert ">70<" in svg(run)
    assert run.verdict.limit == "nothing"
    assert page.lines(run)[0] == "sssp (source 3) on web.h5"


class Outside(HTMLParser):
    """What a page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        asked = [value or "#" for key, value in attrs if key in ("src", "href", "xlink:href")]
        self.found += [f"{tag} {value}" for value in asked if value[0] != "#"]
        assert tag not in ("script", "link", "iframe", "img")


def test_the_page_is_one_file_that_asks_for_nothing() -> None:
    pytest.importorskip("matplotlib")
    run = run_of(3)
    run.job = replace(run.job, program="<b>&mine")
    shown = page.page([(run, {"time": svg(run)}), (run_of(2), {})])
    outside = Outside()
    outside.feed(shown)
    assert outside.found == []
    assert "@import" not in shown
    assert "<b>&mine" not in shown
    assert shown.count("<section>") == 2
    assert run.verdict.sentence.split(":")[0] in shown


def test_pictures_are_taken_of_a_real_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    on_disk(EdgeList(200, *skewed(200, 3000, 5), None, False), tmp_path / "g.h5")
    metrics = str(tmp_path / "metrics.jsonl")
    assert (
        cli.run_command(["run", "bfs", str(tmp_path / "g.h5"), "--source", "0", "--quiet", "--metrics", metrics]) == 0
    )
    arguments = ["report", str(tmp_path), "--html", str(tmp_path / "r.html")]
    assert cli.run_command([*arguments, "--png", str(tmp_path / "made"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    (told,) = facts["runs"]
    assert told["program"] == "bfs"
    assert told["sentence"].startswith(told["limit"].replace("_", "-"))
    assert (tmp_path / "r.html").read_text().startswith("<!DOCTYPE html>")
    for name in ("stages.png", "time.png", "iterations.png"):
        assert (tmp_path / "made" / name).read_bytes().startswith(b"\x89PNG")
    assert cli.run_command(arguments) == 2
    assert "--force" in capsys.readouterr().err
    assert cli.run_command([*arguments, "--force"]) == 0
    shown = capsys.readouterr().out
    for words in ("bfs (source 0) on g.h5", "reading from disk", "filter", "r.html"):
        assert words in shown


def test_what_cannot_be_drawn_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, job())
    assert cli.run_command(["report", str(path)]) == 0
    assert "nothing ran" in capsys.readouterr().out
    assert cli.run_command(["report", str(path), "--png", str(tmp_path)]) == 2
    assert "no iteration" in capsys.readouterr().err
    assert cli.run_command(["report", str(path), "--png", str(tmp_path / "absent")]) == 2
    assert not (tmp_path / "absent").exists()


def test_columns_are_as_wide_as_the_iterations_they_stand_for() -> None:
    for count in (1, 3, 160, 161, 9_000):
        starts = starts_of(count, min(count, 160))
        assert starts[0] == -0.5
        assert starts[-1] == count - 0.5
        assert (np.diff(starts) > 0).all()


ODD: list[Any] = [
    None, "x", "", "$x_{$", "\ud800", -1, -0.5, 0, 1e-300, 1e300, 1 << 62, 10**400, float("nan"), float("inf"), True,
    [], [None], {}, {"x": None}, {"filter": {"bytes_link": "x"}}, {"disk": []},
]  # fmt: skip


def places(value: Any, before: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """All fields of an object, and those inside of them."""
    if not isinstance(value, dict):
        return []
    return [at for key, item in value.items() for at in [(*before, key), *places(item, (*before, key))]]


ACCOUNT = {
    "wall_seconds": 3.0, "stages": {"imports": 1.0, "loading": 1.5, "iterations": 0.5}, "longest_stage": "loading",
    "stages_beside": {"loading": 1.0}, "stage_bytes": {"loading": 4000}, "kernels_compiled": 2, "kernels_loaded": 3,
}  # fmt: skip
RANK = {
    "host": "a", "device": "cuda:0", "rank": 0, "tasks": 2, "bytes_disk": 10, "bytes_link": 1000, "seconds": 0.5,
    "exchange_seconds": 0.1, "peak_memory_bytes": 1 << 20,
}  # fmt: skip
LINES = [
    job("cuda", copy_bytes=5e10, line_rate=4e8) | ACCOUNT,
    iteration(0, {"filter": came(3, bytes_link=1000, bytes_disk=10)}, link=0.004)
    | {"checkpoint_bytes": 5, "compile_seconds": 0.001},
    iteration(1, {"resident": came(2)}, kernel=0.01),
    {"kind": "result", "converged": True, "total_seconds": 1.5, "ranks": [RANK, RANK | {"rank": 1}]} | ACCOUNT,
    {"kind": "end"} | ACCOUNT,
]
PLACES = [(number, at) for number, line in enumerate(LINES) for at in places(line)]


def reported(lines: list[Any]) -> None:
    """What a file of these lines tells, or one refusal that names the file and the line."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.jsonl")
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        try:
            runs, refusal = read(path), ""
        except InputError as error:
            runs, refusal = [], str(error)
    assert runs or re.search(r"m.jsonl, line \d+ is no line of .*: .*", refusal), refusal
    for run in runs:
        told = "\n".join([*page.lines(run), page.page([(run, {})])])
        assert "Traceback" not in told
        told.encode()
        json.dumps(plain(page.facts(run)), allow_nan=False)


def changed(lines: list[Any], at: tuple[int, tuple[str, ...]], *value: Any) -> list[Any]:
    """The lines with one field changed; without a value, left out."""
    number, (*outer, last) = at
    found = [*lines[:number], copy.deepcopy(lines[number]), *lines[number + 1 :]]
    inner = found[number]
    for key in outer:
        inner = inner[key]
    if value:
        inner[last] = value[0]
    else:
        del inner[last]
    return found


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.full)])
def test_each_field_with_odd_values_and_missing(step: int) -> None:
    """By default each field with a fourth of the values, the next one with the next fourth."""
    for number, at in enumerate(PLACES):
        reported(changed(LINES, at))
        for value in ODD[number % step :: step]:
            reported(changed(LINES, at, value))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(ODD),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.lists(st.tuples(st.sampled_from(PLACES), json_values), min_size=1, max_size=4), st.lists(json_values, max_size=1)
)
def test_lines_of_any_values_are_told_or_refused(changes: list[Any], more: list[Any]) -> None:
    lines: list[Any] = LINES
    for at, value in changes:
        with suppress(KeyError, TypeError):  # an earlier change took the object that the field was in
            lines = changed(lines, at, value)
    reported([*lines, *more])


def test_a_refusal_says_what_is_wrong(tmp_path: Path) -> None:
    for at, value, words in (
        ((1, ("seconds",)), "soon", "line 2 .*: seconds is 'soon'; it must be a number"),
        ((1, ("routes", "filter", "edges")), -3, "line 2 .*: routes.filter.edges is -3; it must be a number from 0"),
        ((0, ("rates", "copy_bytes")), 0, "line 1 .*: rates.copy_bytes is 0; it must be a number above 0"),
        ((0, ("device", "name")), None, "line 1 .*: device.name is missing"),
        ((2, ("memory", "edges_host")), None, "line 3 .*: memory.edges_host is missing"),
        ((3, ("ranks",)), "two", "line 4 .*: ranks is 'two'; it must be a list"),
        ((3, ("ranks",)), [RANK, RANK | {"seconds": -1}], r"line 4 .*: ranks\[1\].seconds is -1; it must be a number"),
        ((2, ("frontier_edges",)), 0.5, "line 3 .*: frontier_edges is 0.5; it must be a whole number"),
    ):
        path = written(tmp_path, *changed(LINES, at, value))
        with pytest.raises(InputError, match=words):
            read(path)
    (tmp_path / "deep.jsonl").write_text("[" * 100_000)
    with pytest.raises(InputError, match="nested too deeply"):
        read(tmp_path / "deep.jsonl")


@pytest.mark.parametrize("at", ["parameters", "options", "graph"])
def test_values_that_a_reader_takes_and_a_writer_does_not_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], at: str
) -> None:
    for depth, ended in ((20, 0), (600, 2)):
        named = json.dumps(LINES[0] | {at: LINES[0][at] | {"deep": 0}})
        path = written(tmp_path, named.replace('"deep": 0', f'"deep": {"[" * depth}{"]" * depth}') + "\n", *LINES[1:])
        assert cli.run_command(["report", str(path), "--json"]) == ended
        captured = capsys.readouterr()
        assert ("line 1 is no line" in captured.out) == (ended == 2)


def test_odd_runs_are_drawn() -> None:
    pytest.importorskip("matplotlib")
    named = iteration(0, {"$x_{$": came(3, bytes_link=1000)}) | {"direction": "$"}
    changes = [(name, value) for name in ("frontier_edges", "frontier_vertices", "seconds") for value in (0, 1 << 62)]
    lines = [named | {name: value} for name, value in [*changes, ("routes", {}), ("busy_seconds", {})]]
    odd = [of_json(IterationLine, line) for line in lines]
    job_line = of_json(JobLine, LINES[0] | {"program": "$x_{$"})
    for figure in figures.pictures(RunMetrics(job_line, odd), alone=True).values():
        as_svg(figure)
