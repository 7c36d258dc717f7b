"""What a machine is, read from a root that the test made; the name of it changes with every fact."""

from pathlib import Path

import pytest
from penstock.storage.base import hardware_info


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {
        "proc/cpuinfo": "processor\t: 0\nmodel name\t: Turbine 9000 \nprocessor\t: 1\nmodel name\t: Turbine 9000\n",
        "sys/bus/pci/devices/0000:1b:00.0/max_link_speed": "32.0 GT/s PCIe\n",
        "sys/bus/pci/devices/0000:1b:00.0/max_link_width": "16\n",
        "sys/module/nvidia/version": "580.95.05\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_facts_are_read(root: Path) -> None:
    facts = hardware_info.facts(root)
    assert facts["processor"] == "Turbine 9000"
    assert facts["cores"] >= 1
    assert facts["penstock"]


def test_a_link_is_known_by_its_best(root: Path) -> None:
    assert hardware_info.bus_link("0000:1B:00.0", root) == "32.0 GT/s PCIe x16"
    assert hardware_info.bus_link("0000:1c:00.0", root) is None


def test_a_driver_is_known_by_its_version(root: Path) -> None:
    assert hardware_info.module_version("nvidia", root) == "580.95.05"
    assert hardware_info.module_version("nouveau", root) is None


def test_a_fingerprint_tells_machines_apart_and_nothing_else() -> None:
    one = {"processor": "a", "device": {"kind": "cuda", "name": "b"}}
    assert hardware_info.fingerprint(one) == hardware_info.fingerprint(dict(reversed(one.items())))
    assert hardware_info.fingerprint(one) != hardware_info.fingerprint({**one, "processor": "c"})
    assert hardware_info.fingerprint(one) != hardware_info.fingerprint({**one, "device": {"kind": "cuda", "name": "c"}})


def test_files_of_a_folder_share_its_disk(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    assert hardware_info.disk_of(tmp_path / "x") == hardware_info.disk_of(tmp_path)
