"""Which rates a run uses: stored, given or measured first; nothing about them ends a run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from penstock.engine.calibration import calibrate as story
from penstock.engine.calibration import probes
from penstock.engine.resources.config import Config
from penstock.storage.base.errors import InputError, RunError
from penstock.storage.base.hardware_info import disk_of
from penstock.storage.base.measurement import RateSample
from penstock.storage.format.graph import Graph
from penstock.tools import cli
from penstock.tools.run import rates
from penstock.tools.run.rates import UsedRates, rates_for
from penstock.transfer.calibration.calibration import Calibration
from penstock.transfer.devices.device import Device
from penstock.transfer.values.rates import Rates
from support.graphs import in_memory, on_disk, shape

LINKED = {"device": "emulated", "device_memory": 20_000, "tuning": {"link_rate": 1e9}}


REAL = story.calibrate


def told(device: Device, effort: story.Effort, material: story.Material, *, kernels: str = "host") -> Calibration:
    """What a calibration might find, in no time."""
    facts = story.machine_facts(device)
    rates = Rates(gather_bytes=7e9, copy_bytes=3e9)
    return Calibration(facts, "today", True, 1.0, facts["cores"], rates, {}, {}, {"disk": "no time left"})


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a machine that is measured in no time."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(story, "calibrate", told)
    return tmp_path / "cache" / "penstock"


@pytest.fixture
def graph() -> Graph:
    return in_memory(shape("skewed"))


class Notes(list[str]):
    """What was said."""

    def __call__(self, line: str) -> None:
        self.append(line)


def asked(
    graph: Graph, options: dict[str, Any], file: Path | None = None, *, measure: bool = True
) -> tuple[UsedRates, Notes]:
    notes = Notes()
    return rates_for(graph, Config.of(**options), notes, file, measure=measure), notes


def test_a_link_is_measured_once_and_said_once(graph: Graph, cache: Path) -> None:
    first, notes = asked(graph, LINKED)
    (file,) = cache.iterdir()
    assert first.path == file
    assert len(notes) == 1
    assert "measured this machine in" in notes[0]
    assert str(file) in notes[0]
    again, silence = asked(graph, LINKED)
    assert silence == []
    assert again.calibration == first.calibration
    assert again.rates == first.rates
    assert again.facts()["source"] == "measured"
    assert again.facts()["quick"] is True


def test_another_link_is_another_machine(graph: Graph, cache: Path) -> None:
    asked(graph, LINKED)
    asked(graph, LINKED | {"tuning": {"link_rate": 2e9}})
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize("options", [{"device": "cpu"}, {"device": "cpu", "threads": 1}])
def test_edges_that_are_in_memory_need_no_rates(graph: Graph, cache: Path, options: dict[str, Any]) -> None:
    used, notes = asked(graph, options)
    assert (used.rates, notes, used.options()) == (None, [], {})
    assert used.facts()["source"] == "built-in"
    assert not cache.exists()


def test_edges_that_do_not_fit_memory_need_them(tmp_path: Path, cache: Path) -> None:
    graph = on_disk(shape("skewed"), tmp_path / "g.h5", chunk_edges=64)
    assert asked(graph, {"device": "cpu"})[0].rates is None
    used, notes = asked(graph, {"device": "cpu", "host_memory": 100})
    assert used.rates is not None
    assert len(notes) == 1
    assert asked(graph, {"device": "cpu"})[0].calibration == used.calibration  # stored rates serve every run


def test_no_calibrate_uses_what_is_stored_and_measures_nothing(graph: Graph, cache: Path) -> None:
    assert asked(graph, LINKED, measure=False) == (UsedRates(), [])
    assert not cache.exists()
    stored, _ = asked(graph, LINKED)
    assert asked(graph, LINKED, measure=False) == (stored, [])


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", '{"penstock_rates": 2}', '{"penstock_rates": 1}', "\x00\xff", "[" * 9999]
)
def test_a_damaged_file_is_said_and_replaced(damage: str, graph: Graph, cache: Path) -> None:
    asked(graph, LINKED)
    (file,) = cache.iterdir()
    file.write_text(damage, encoding="latin-1")
    used, notes = asked(graph, LINKED)
    assert used.rates is not None
    assert len(notes) == 2
    assert str(file) in notes[0]
    assert "measured this machine" in notes[1]
    assert rates.load(file) == used.calibration
    file.write_text(damage, encoding="latin-1")
    used, notes = asked(graph, LINKED, measure=False)
    assert (used, len(notes)) == (UsedRates(), 1)


def test_a_pipe_is_not_waited_for(graph: Graph, cache: Path) -> None:
    asked(graph, LINKED)
    (file,) = cache.iterdir()
    file.unlink()
    os.mkfifo(file)
    used, notes = asked(graph, LINKED, measure=False)
    assert (used, notes) == (UsedRates(), [])


def test_rates_of_another_machine_are_not_used(graph: Graph, cache: Path) -> None:
    asked(graph, LINKED)
    (file,) = cache.iterdir()
    facts = json.loads(file.read_text())
    facts["machine"]["processor"] = "Turbine 9000"
    file.write_text(json.dumps(facts))
    _, notes = asked(graph, LINKED)
    assert "another machine" in notes[0]
    assert rates.load(file).machine["processor"] != "Turbine 9000"


def test_a_file_of_rates_is_used_wherever_it_was_measured(graph: Graph, cache: Path, tmp_path: Path) -> None:
    asked(graph, LINKED)
    (file,) = cache.iterdir()
    facts = json.loads(file.read_text())
    facts["machine"]["processor"] = "Turbine 9000"
    facts["rates"]["gather_bytes"] = 12345.0
    mine = tmp_path / "mine.json"
    mine.write_text(json.dumps(facts))
    used, notes = asked(graph, {"device": "cpu"}, mine)
    assert used.rates is not None
    assert used.rates.gather_bytes == 12345.0
    assert used.path == mine
    assert notes == []


@pytest.mark.parametrize("text", [None, "", "{}"])
def test_a_bad_file_of_rates_is_refused(graph: Graph, tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "mine.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(InputError, match=r"mine\.json.*penstock calibrate"):
        asked(graph, LINKED, file)


def test_a_cache_that_cannot_be_written_does_not_end_a_run(graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("in the way")
    used, notes = asked(graph, LINKED)
    assert used.rates is not None
    assert used.path is None
    assert "not kept" in notes[0]


def test_a_device_that_fails_does_not_end_a_run(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: Any, **named: Any) -> Calibration:
        raise RunError("device emulated:0 was asked for too much")

    monkeypatch.setattr(story, "calibrate", fail)
    used, notes = asked(graph, LINKED)
    assert used == UsedRates()
    assert "built-in" in notes[0]


@pytest.mark.parametrize("device", ["cpu", "emulated"])
def test_a_disk_that_is_new_is_added(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    graph = on_disk(shape("skewed"), tmp_path / "g.h5", chunk_edges=64)
    streamed = {"device": device, "host_memory": 100}
    first, _ = asked(graph, streamed)
    assert first.calibration is not None
    assert first.calibration.disks == {}  # a few KiB tell nothing
    monkeypatch.setattr(story, "disk_rates", lambda material, effort, clock: (RateSample(4, 5e8, 1.0),))
    more, notes = asked(graph, streamed)
    assert more.calibration is not None
    assert more.calibration.disks == {disk_of(tmp_path): (RateSample(4, 5e8, 1.0),)}
    assert more.rates is not None
    assert more.rates.disk_bytes == 5e8
    assert len(notes) == 1
    assert "disk" in notes[0]
    assert asked(graph, streamed) == (more, [])


def test_without_a_home_the_cache_is_missed_and_the_run_goes_on(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("no home")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(rates.Path, "home", homeless)
    used, notes = asked(graph, LINKED)
    assert used == UsedRates()
    assert "XDG_CACHE_HOME" in notes[0]


def test_rates_are_in_the_users_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "here")  # relative: ignored, as the standard says
    assert rates.place_of("a") == Path.home() / ".cache" / "penstock" / "rates-a.json"


def test_a_run_measures_says_so_and_tells_machines(
    tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(story, "calibrate", REAL)
    monkeypatch.setattr(story, "QUICK_ARENA", 1 << 16)
    monkeypatch.setattr(story, "QUICK_SECONDS", 20.0)  # whatever else this machine does meanwhile
    monkeypatch.setattr(probes, "REPEATS", 1)
    path = tmp_path / "g.h5"
    on_disk(shape("skewed"), path, chunk_edges=64)
    command = ["run", "wcc", str(path), "--device", "emulated", "--device-edge-memory", "4KiB", "--json"]
    assert cli.run_command(command) == 0
    shown = capsys.readouterr()
    assert shown.err.count("\n") == 1
    used = json.loads(shown.out)["rates"]
    assert used["source"] == "measured"
    assert used["values"]["line_runs"][0][0] == 32
    assert used["file"] == str(next(cache.glob("rates-*.json")))
    assert cli.run_command([*command, "--rates", used["file"], "--no-calibrate"]) == 0
    shown = capsys.readouterr()
    assert (shown.err, json.loads(shown.out)["rates"]) == ("", used)
