"""A file held open stays the one that was opened; what is no regular file is refused at once."""

import gc
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from penstock.storage.base.errors import InputError
from penstock.storage.format.direct_io import OpenFile
from penstock.storage.format.graph import Graph
from penstock.storage.read.reader import Reader
from support.faults import open_files
from support.graph_files import CHUNK, Rows, whole, write_rows

OLD, NEW = Rows(1), Rows(2, 9000)


def test_its_name_opens_the_very_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    held = OpenFile(path)
    path.unlink()
    path.write_bytes(b"newer")
    assert Path(held.name).read_bytes() == b"old"
    assert held.size == 3
    for flags in (0, os.O_CLOEXEC):
        handle = held.reopen(flags)
        assert os.pread(handle, 9, 0) == b"old"
        os.close(handle)


def test_it_is_closed_when_nobody_holds_it(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "g.h5", OLD)
    graph: Any = Graph.open(path)
    assert open_files(path)
    del graph
    gc.collect()
    assert open_files(path) == []


def test_a_refused_file_is_closed(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("x")
    for name in ("text", "nothing", "."):
        with pytest.raises(InputError):
            Graph.open(tmp_path / name)
    gc.collect()
    assert open_files(tmp_path) == []


@pytest.mark.timeout(20)
def test_a_pipe_and_a_device_are_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(InputError, match="not a regular file"):
            Graph.open(path)


@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize("stripes", [0, 2])
def test_a_graph_put_in_its_place_does_not_disturb_a_reader(tmp_path: Path, direct: bool, stripes: int) -> None:
    """A reader of the old graph, slow, before and after another one with --force; who opens then gets the new one."""
    folders = [tmp_path / name for name in "ab"[:stripes]]
    for folder in folders:
        folder.mkdir()
    path = write_rows(tmp_path / "g.h5", OLD, stripes=folders)
    graph = Graph.open(path)
    late = Graph.open(path)
    neighbors = np.zeros(OLD.edges, np.uint32)
    with Reader(graph, decode_threads=1, reads_in_flight=1, throttle=100_000, direct_io=direct) as reader:
        tickets = [
            reader.fetch(graph.out, np.array([chunk]), chunk * CHUNK, neighbors[chunk * CHUNK :])
            for chunk in range(graph.out.chunks)
        ]
        write_rows(path, NEW, force=True, stripes=folders)
        for ticket in tickets:
            ticket.result()
    assert np.array_equal(neighbors, OLD.neighbors)
    assert np.array_equal(graph.out.index().degrees(0, graph.vertices), OLD.degrees)
    assert np.array_equal(whole(late.out.neighbors), OLD.neighbors)
    assert np.array_equal(whole(Graph.open(path).out.neighbors), NEW.neighbors)


OPEN = """
import sys
import numpy as np
from penstock.storage.format.graph import Graph
graph = Graph.open(sys.argv[1])
sys.stdin.readline()
print(sum(int(items.sum()) for items in graph.out.neighbors.load()))
"""


@pytest.mark.timeout(60)
def test_other_processes_read_it_at_the_same_time_and_while_it_is_replaced(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "g.h5", OLD)
    with h5py.File(path, "r"):
        children = [
            subprocess.Popen([sys.executable, "-c", OPEN, str(path)], stdin=-1, stdout=-1, text=True) for _ in range(2)
        ]
        graph = Graph.open(path)
        assert np.array_equal(whole(graph.out.neighbors), OLD.neighbors)
    write_rows(path, NEW, force=True)
    sums = {int(child.communicate("go\n", timeout=50)[0]) for child in children}
    assert sums <= {int(OLD.neighbors.sum()), int(NEW.neighbors.sum())}
    assert all(child.returncode == 0 for child in children)


def test_many_read_one_file_at_once(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "g.h5", OLD)
    wrong: list[str] = []

    def read() -> None:
        for _ in range(5):
            graph = Graph.open(path)
            if not np.array_equal(whole(graph.out.neighbors), OLD.neighbors):
                wrong.append("other neighbors")

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
