"""Any HDF5 tool with the zstd plugin reads a plain graph, and none mistakes packed bytes for ids."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.faults import python
from support.graph_files import Rows, write_rows

READ = """
import json, sys
import h5py
if sys.argv[2] == "plugin":
    import hdf5plugin
with h5py.File(sys.argv[1]) as file:
    facts = {}
    for name in json.loads(sys.argv[3]):
        dataset = file[name]
        facts[name] = {
            "dtype": dataset.dtype.name,
            "shape": dataset.shape,
            "encoding": dataset.attrs["encoding"],
            "filters": list(dataset._filters),
        }
        try:
            facts[name]["items"] = dataset[()].tolist()
        except OSError as error:
            facts[name]["error"] = str(error)
print(json.dumps(facts))
"""


def facts(path: Path, plugin: str, *names: str) -> dict[str, dict[str, object]]:
    child = python(READ, str(path), plugin, json.dumps(names))
    assert child.returncode == 0, child.stderr
    found = json.loads(child.stdout)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("weights", [np.uint8, np.float32])
def test_h5py_with_the_plugin_reads_a_plain_graph(tmp_path: Path, weights: type) -> None:
    rows = Rows(1, 2000, weights=weights)
    path = write_rows(tmp_path / "g.h5", rows, encoding="plain")
    found = facts(path, "plugin", "out/neighbors", "in/weights")
    assert rows.weights is not None
    for name, expected in {"out/neighbors": rows.neighbors, "in/weights": rows.weights}.items():
        assert found[name]["dtype"] == expected.dtype.name
        assert found[name]["encoding"] == "plain"
        assert found[name]["filters"] == ["32015"]
        assert np.array_equal(np.array(found[name]["items"], expected.dtype), expected)


def test_the_plugin_unpacks_packed_frames_as_bytes(tmp_path: Path) -> None:
    """The payload is ours, but the zstd frame around it is what the filter says."""
    path = write_rows(tmp_path / "g.h5", Rows(1, 2000), encoding="packed")
    found = facts(path, "plugin", "out/neighbors")["out/neighbors"]
    assert (found["dtype"], found["encoding"]) == ("uint8", "packed")
    words = np.array(found["items"], np.uint8).view(np.uint32)
    assert words[:, 0].tolist() == [512, 512, 512, 2000 - 3 * 512]


def test_without_the_plugin_a_tool_says_so(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "g.h5", Rows(1, 2000), encoding="plain")
    found = facts(path, "alone", "out/neighbors")["out/neighbors"]
    assert "error" in found
    assert "items" not in found
