"""`penstock calibrate` shows what it measured, stores it, and measures no second time unasked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from penstock.engine.calibration import calibrate as story
from penstock.engine.calibration import probes
from penstock.storage.base.errors import InputError
from penstock.storage.base.hardware_info import disk_of
from penstock.storage.base.measurement import RateSample
from penstock.tools import cli
from penstock.tools.commands import calibrate as shown
from penstock.tools.run import rates
from penstock.transfer.calibration.calibration import NEW_FILE, Calibration, derive
from penstock.transfer.values.rates import Rates
from support.commands import answered
from support.graphs import on_disk, shape
from support.json_page import check_documented

DISK = (RateSample(1, 1e9, 1.0), RateSample(8, 3e9, 1.0))


def disk(material: story.Material, effort: story.Effort, clock: story.TimeBudget) -> tuple[RateSample, ...]:
    """A disk that is measured in no time, if it is named."""
    if not material.files:
        raise InputError("no file is named")
    assert all(file.stat().st_size > 0 for file in material.files)
    return DISK


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache and folder, and measurements of almost nothing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    for module, name, value in [
        (story, "QUICK_ARENA", 1 << 16),
        (story, "ARENA", 1 << 16),
        (story, "LEAST_ARENA", 1 << 16),
        (story, "QUICK_SECONDS", 20.0),
        (story.Effort, "full", classmethod(lambda cls: cls(None, 0.01, 1 << 16))),
        (probes, "REPEATS", 1),
        (shown, "PROBE_BYTES", 1 << 20),
        (story, "disk_rates", disk),
    ]:
        monkeypatch.setattr(module, name, value)
    return tmp_path / "cache" / "penstock"


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    facts = answered(capsys, "calibrate", "--device", "cpu", *arguments)
    check_documented(facts)
    return facts


def test_it_measures_stores_and_shows_what_is_stored(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = told(capsys)
    (file,) = cache.iterdir()
    assert first["file"] == str(file)
    assert first["fingerprint"] in file.name
    assert set(first["tables"]) == {"decode", "gather", "kernel", "launch", "sweep"}
    assert Calibration.of(first) == rates.load(file)
    assert told(capsys) == first
    assert told(capsys, "--quick") == first
    assert told(capsys, "--force")["seconds"] != first["seconds"]
    assert [path.name for path in Path().iterdir()] == ["cache"]


def test_a_quick_measurement_gives_way_to_a_long_one(capsys: pytest.CaptureFixture[str]) -> None:
    quick = told(capsys, "--quick")
    assert quick["quick"]
    assert {"disk", "decode"} <= set(quick["missing"])
    assert told(capsys, "--quick") == quick
    assert not told(capsys)["quick"]


def test_a_graph_names_its_disk_and_its_chunks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    on_disk(shape("skewed"), tmp_path / "g.h5", chunk_edges=64)
    facts = told(capsys, "--quick", "--file", "g.h5")
    assert "decode" in facts["tables"]
    assert list(facts["disks"]) == [disk_of(tmp_path)]


def test_a_folder_takes_too_long_for_quick(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run_command(["calibrate", "--quick", "--file", str(tmp_path)]) == 2
    assert "--quick" in capsys.readouterr().err


def test_people_see_tables(capsys: pytest.CaptureFixture[str], cache: Path) -> None:
    assert cli.run_command(["calibrate", "--device", "cpu", "--quick"]) == 0
    out = capsys.readouterr().out
    for word in ("processor", "threads", "gather", "pull", "(assumed)", f"stored in {cache}"):
        assert word in out
    assert "pinned copy" not in out


def test_a_link_has_its_tables() -> None:
    tables = {
        "copy": (RateSample(1 << 16, 1 << 16, 8e-6), RateSample(1 << 30, 1 << 30, 0.02)),
        "lines": (RateSample(32, 700e6, 1.0), RateSample(128, 400e6, 1.0)),
        "kernel": (RateSample(0, 50e9, 1.0),),
        "launch": (RateSample(32, 32, 1.28e-4),),
        "unpack": (
            RateSample(1 << 18, 1 << 18, 5e-6 + (1 << 18) / 4e11),
            RateSample(1 << 24, 1 << 24, 5e-6 + (1 << 24) / 4e11),
        ),
    }
    machine = {"processor": "Turbine", "cores": 16, "device": {"kind": "cuda", "name": "H", "memory_bytes": 1}}
    found = Calibration(
        machine,
        "today",
        False,
        9.0,
        16,
        derive(Rates.pcie5(16), tables, DISK, 16),
        tables,
        {"259:1": DISK},
        {"gather": "x"},
    )
    text = "\n".join(" ".join(line.split()) for line in shown.lines(found, Path("/kept")))
    for part in (
        "cuda, H",
        "1.0 GiB 53.69 GB/s",
        "32 B 700 M lines/s 22.40 GB/s",
        "128 B 400 M lines/s 51.20 GB/s",
        "disk 259:1",
        "unpack 400,000 M edges/s after 205.0 us",
        "3.00 GB/s",
        "kernel 50,000 M edges/s after 4.0 us",
        "gather 8.00 GB/s (assumed)",
        "not measured gather: x",
        "stored in /kept",
    ):
        assert part in text, text


def test_the_disk_of_a_graph_that_is_named_is_measured_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_disk(shape("skewed"), tmp_path / "g.h5", chunk_edges=64)
    name, slower = disk_of(tmp_path), RateSample(8, 1e9, 1.0)
    assert list(told(capsys)["disks"]) == [name + NEW_FILE]
    told(capsys, "--file", "g.h5")
    monkeypatch.setattr(story, "disk_rates", lambda material, effort, clock: (slower,))
    found = Calibration.of(told(capsys, "--file", "g.h5"))
    assert found.disks == {name + NEW_FILE: DISK, name: (slower,)}
    assert found.at(1, name).disk_bytes == 1e9


def test_a_new_disk_is_added_to_what_is_known(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = told(capsys)
    (file,) = cache.iterdir()
    known = json.loads(file.read_text())
    file.write_text(json.dumps(known | {"disks": {"7:7": known["disks"].popitem()[1]}}))
    second = told(capsys)
    assert set(second["disks"]) == {"7:7", *first["disks"]}
    assert second["date"] == first["date"]
