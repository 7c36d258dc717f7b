"""The demo is true: its answers are the known ones, its graph is larger than its memory, it tidies up."""

import json
from pathlib import Path

import pytest
from penstock.engine.kernels.ahead import announce
from penstock.tools import cli
from penstock.tools.commands import demo
from support.json_page import check_documented


def test_the_demo_tells_the_truth_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    announced = []
    monkeypatch.setattr(announce, "offer", lambda describe, *_, **__: announced.append(describe()))
    assert cli.run_command(["demo", "--folder", str(tmp_path), "--json"]) == 0
    expected = demo._kernels()["jobs"][1:]
    for job, run in zip(expected, announced, strict=True):
        assert job["program"][:3] == run["program"][:3]
        same = {"program", "degrees", "processes", *(("directions",) if job["program"][2] == "SSSP" else ())}
        assert {**job, **{name: run[name] for name in same}} == run
    facts = json.loads(capsys.readouterr().out)
    check_documented(facts)
    assert list(tmp_path.iterdir()) == []
    roads, large = facts["roads"], facts["large"]
    assert (roads["convert"]["vertices"], roads["convert"]["input_edges"]) == (96777, 107861)
    assert roads["sssp"]["fields"]["distance"] == {"reached": 78842, "min": 0, "max": 293776}
    assert roads["wcc"]["fields"]["component"] == {"components": 398, "largest": 78842}
    assert large["generate"]["edges"] * 4 > demo.BUDGET
    assert large["generate"]["output_bytes"] > demo.BUDGET
    assert large["pagerank"]["iterations"] == 10
    assert large["pagerank"]["fields"]["rank"]["sum"] == pytest.approx(1)
    assert large["pagerank"]["bytes_read"] > demo.BUDGET
    parts = [step["compile_seconds"] for step in (*roads.values(), *large.values())]
    assert 0 <= facts["compile_seconds"] == sum(parts) < facts["seconds"]
    assert large["bfs"]["fields"]["level"]["reached"] > 1 << 16


def test_bundled_data_names_its_licence() -> None:
    notice = Path(demo.__file__).parents[1] / "data" / "README.md"
    assert "Open Database License" in notice.read_text()
    assert "OpenStreetMap contributors" in notice.read_text()
