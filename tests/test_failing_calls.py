"""Whatever call of a command fails, on whatever disk: an old file or a whole new one stands, and one message is told.

Each call that changes a file fails once with ENOSPC or EIO, alone or with all behind it, or is followed by SIGTERM. By
default some of them; PENSTOCK_FAULTS=all tries every call. Each story prints how its attempts ended.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
from penstock.storage.base.errors import InputError
from penstock.storage.checkpoint.folder import CheckpointFolder
from penstock.storage.format.graph import Graph
from penstock.storage.results import result_tables
from penstock.storage.tables.columns import Column
from support.covering import covering
from support.failing_calls import Attempts, Ended, Fault, attempts
from support.faults import small_disk

ALL = os.environ.get("PENSTOCK_FAULTS") == "all"
ROWS = 3000
FORMATS = ("csv", "parquet", "h5", "npy")

pytestmark = pytest.mark.timeout(3600 if ALL else 300)


@pytest.fixture(scope="module")
def child(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attempts]:
    with attempts(tmp_path_factory.mktemp("shim")) as found:
        yield found


def chosen(calls: int, few: int) -> list[Fault]:
    """The faults to try of so many calls: all, or some spread over them with the last ones, where names are given."""
    numbers = list(range(1, calls + 1))
    if ALL:
        once = [
            Fault(n, number, lasting)
            for number in (errno.ENOSPC, errno.EIO)
            for lasting in (False, True)
            for n in numbers
        ]
        return once + [Fault(n) for n in numbers]
    some = sorted({*np.linspace(1, calls, few).astype(int).tolist(), calls - 1})
    return [Fault(n, errno.ENOSPC) for n in some] + [Fault(some[1], errno.EIO, True), Fault(some[-2]), Fault(calls)]


def in_turn(calls: int) -> list[int]:
    """Every call where ALL is set; else the first and last ones, where files and locks are made, named and removed, and
    some of the many that write what is in a file."""
    some = {*range(1, 13), *range(13, calls + 1, 60), *range(calls - 8, calls + 1)}
    return [n for n in range(1, calls + 1) if ALL or n in some]


def tried(
    child: Attempts, arguments: list[str], folder: Path, look: Callable[[Ended], str], few: int = 4
) -> Counter[tuple[int, str]]:
    """Try faults on a command, each on a copy of `folder`; `look` says what stands after each, and checks it."""
    before = folder.with_name(f"{folder.name}-before")
    shutil.copytree(folder, before)
    whole = child.run(arguments, folder)
    assert (whole.code, whole.err) == (0, "")
    tally: Counter[tuple[int, str]] = Counter({(0, look(whole)): 1})
    for fault in chosen(whole.calls, few):
        shutil.rmtree(folder)
        shutil.copytree(before, folder)
        ended = child.run(arguments, folder, fault)
        said = f"{fault} of {whole.calls} ({ended.failed}): {ended}"
        assert ended.code in (0, 1, 143), said
        lines = [line for line in ended.err.splitlines() if "a second SIGTERM" not in line]  # where ending takes long
        assert ended.code == 0 or len(lines) == 1, said
        stands = look(ended)
        assert (ended.code, stands) != (0, "old"), said
        tally[ended.code, stands] += 1
    print(f"{arguments}: {whole.calls} calls, {sum(tally.values()) - 1} faults: {dict(tally)}")
    return tally


def graph_there(path: Path) -> str:
    """Which graph is there, all of which can be read: none, the old one (4 vertices) or the new one (6, or 7)."""
    if not path.exists():
        return "none"
    graph = Graph.open(path)
    for adjacency in graph.adjacencies:
        assert len(adjacency.edges_in(0, adjacency.edges)[0]) == graph.edges
        adjacency.index()
    if graph.layout == "list":
        assert len(graph.spans()) == 1
        assert graph.degree_index("in") is not None
    return {4: "old", 6: "new", 7: "new"}[graph.vertices]


@covering("stripes, force", (2, 0), (True, False), strength=1)
def test_convert(child: Attempts, tmp_path: Path, stripes: int, force: bool) -> None:
    folder = tmp_path / "graphs"
    folder.mkdir()
    (tmp_path / "old.txt").write_text("0 1\n1 2\n2 0\n5 1\n")
    (tmp_path / "new.txt").write_text("0 1\n1 2\n2 0\n7 1\n3 4\n")
    striping = [option for _ in range(stripes) for option in ("--stripe", str(folder))][: 2 * stripes]
    for number in range(stripes):
        (folder / str(number)).mkdir()
        striping[2 * number + 1] = str(folder / str(number))
    target = folder / "g.h5"
    if force:
        assert (
            child.run(["convert", str(tmp_path / "old.txt"), str(target), *striping, "--quiet"], tmp_path / "-").code
            == 0
        )

    def look(ended: Ended) -> str:
        found = graph_there(target)
        files = [path for path in folder.rglob("*") if path.is_file()]
        leftover = "in its place" in ended.err or ended.code == 143  # the old shards, where the new name may be lost
        assert len(files) == (0 if found == "none" else 1 + stripes) or (leftover and found == "new"), (ended, files)
        assert force or found != "old"
        assert not force or found != "none"
        assert ended.code != 1 or (found == "new") == ("in its place" in ended.err), ended
        return found

    arguments = ["convert", str(tmp_path / "new.txt"), str(target), *striping, "--quiet"]
    tally = tried(child, arguments + ["--force"] * force, folder, look)
    assert {(1, "new"), (1, "old" if force else "none")} <= set(tally)


@pytest.mark.parametrize(
    ("layout", "stripes", "gaps"), [("list", 2, False), ("list", 0, True), ("rows", 0, False), ("rows", 2, False)]
)
def test_append(child: Attempts, tmp_path: Path, layout: str, stripes: int, gaps: bool) -> None:
    """A graph has its old edges or all; what an append that failed has made is gone, or named by nothing.

    gaps: its ids are not 0 to n-1, so that it is converted once more.
    """
    folder = tmp_path / "graphs"
    folder.mkdir()
    (tmp_path / "old.txt").write_text(f"0 1\n1 2\n2 0\n{9 if gaps else 3} 1\n")
    (tmp_path / "more.txt").write_text(f"{7 if gaps else 5} 1\n3 4\n")
    striping = [option for number in range(stripes) for option in ("--stripe", str(folder / str(number)))]
    for number in range(stripes):
        (folder / str(number)).mkdir()
    target = folder / "g.h5"
    made = ["convert", str(tmp_path / "old.txt"), str(target), *striping, "--layout", layout, "--quiet"]
    assert child.run(made, tmp_path / "-").code == 0
    grown = max(1, stripes) * (2 if layout == "list" else 1)

    def look(ended: Ended) -> str:
        found = graph_there(target)
        files = [path for path in folder.rglob("*") if path.is_file()]
        there = {"old": 1 + stripes, "new": 1 + stripes if gaps else 1 + grown}[found]
        leftover = ended.code == 143 or (gaps and "in its place" in ended.err)
        assert len(files) == there or leftover, (ended, files)
        assert ended.code != 1 or (found == "new") == ("in its place" in ended.err), ended
        return found

    tally = tried(child, ["append", str(target), str(tmp_path / "more.txt"), "--quiet"], folder, look)
    assert {(0, "new"), (1, "old")} <= set(tally)


def write_table(path: str, value: str) -> None:
    """Write 3,000 rows of one value, in the child."""
    vertex = np.arange(ROWS, dtype=np.uint32)
    columns = {"vertex": Column.of(vertex), "level": Column.of(vertex * 0 + int(value))}
    result_tables.write(Path(path), columns, force=True)


def levels(path: Path) -> set[int]:
    """The levels in a table, all 3,000 of them."""
    if path.suffix == ".npy":
        found = np.load(path)
    elif path.suffix == ".h5":
        with h5py.File(path) as file:
            found = file["level"][:]
    else:
        table = pyarrow.parquet.read_table(path) if path.suffix == ".parquet" else pyarrow.csv.read_csv(path)
        found = table["level"].to_numpy()
    assert len(found) == ROWS
    return {int(level) for level in found}


@pytest.mark.parametrize("suffix", FORMATS)
def test_results(child: Attempts, tmp_path: Path, suffix: str) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    path = folder / f"r.{suffix}"
    write_table(str(path), "1")

    def look(ended: Ended) -> str:
        assert list(folder.iterdir()) == [path]
        found = {frozenset({1}): "old", frozenset({2}): "new"}[frozenset(levels(path))]
        assert ended.code != 1 or (found == "new") == ("in its place" in ended.err), ended
        return found

    tally = tried(child, ["test_failing_calls:write_table", str(path), "2"], folder, look, 3)
    assert {(1, "old"), (1, "new")} <= set(tally)


@pytest.mark.parametrize("names", [pytest.param(False, marks=pytest.mark.full), True])
def test_a_table_that_is_not_read_back(child: Attempts, tmp_path: Path, names: bool) -> None:
    """Calls fail in turn, reads too: what the library makes of it is one message of ours, and nothing is left."""
    folder, graph = tmp_path / "results", str(tmp_path / "g.h5")
    folder.mkdir()
    (tmp_path / "edges.txt").write_text("a b\nb c\nc a\nf b\nd b\nd c\n" if names else "0 1\n1 2\n2 0\n5 1\n3 1\n3 2\n")
    made = child.run(
        ["convert", str(tmp_path / "edges.txt"), graph, *["--string-ids"] * names, "--quiet"], tmp_path / "-"
    )
    arguments = ["similarity", graph, "--k", "2", "--output", str(folder / "o.h5"), "--quiet", "--threads", "1"]
    whole = child.run(arguments, folder, Fault(0, reads=True))
    assert (made.code, whole.code) == (0, 0), (made, whole)
    failed = set()
    for n in in_turn(whole.calls):
        (folder / "o.h5").unlink(missing_ok=True)
        ended = child.run(arguments, folder, Fault(n, errno.EIO, lasting=True, reads=True))
        assert (ended.code, len(ended.err.splitlines())) == (1, 1), ended
        assert "Input/output error" in ended.err, ended
        assert sorted(folder.iterdir()) == [folder / "o.h5"] * ("in its place" in ended.err), ended
        failed.add(ended.failed)
    assert {name for name in failed if name.startswith("pread")}, failed


@pytest.mark.parametrize("story", ["append", "--run-dir", "--checkpoint"])
def test_a_signal_while_a_folder_is_locked_leaves_no_lock(child: Attempts, tmp_path: Path, story: str) -> None:
    """SIGTERM behind each of the calls that make, lock and write the lock, and that remove it, and behind others."""
    (tmp_path / "edges.txt").write_text("0 1\n1 2\n2 0\n5 1\n")
    apart, folder, graph = tmp_path / "-", tmp_path / "there", tmp_path / "g.h5"
    folder.mkdir()
    listed = folder / "l.h5" if story == "append" else graph
    layout = ["--layout", "list"] if story == "append" else []
    made = child.run(["convert", str(tmp_path / "edges.txt"), str(listed), *layout, "--quiet"], apart)
    run = ["run", "bfs", str(graph), "--source", "0", story, str(folder / "new"), "--no-calibrate", "--threads", "1"]
    arguments = ["append", str(listed), str(tmp_path / "edges.txt")] if story == "append" else run
    shutil.copytree(folder, tmp_path / "before")
    whole = child.run([*arguments, "--quiet"], folder)
    assert (made.code, whole.code) == (0, 0), (made, whole)
    for n in in_turn(whole.calls):
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "before", folder)
        ended = child.run([*arguments, "--quiet"], folder, Fault(n))
        left = {path.name for path in folder.rglob("*")}
        assert not [name for name in left if name.endswith((".lock", ".append"))], (n, ended, left)
        nothing = "nothing was left behind" in ended.err
        assert not nothing or left == {path.name for path in (tmp_path / "before").rglob("*")}, (n, ended, left)


def write_checkpoint(folder: str) -> None:
    """Write checkpoint 3, in the child."""
    arrays = [("level", np.arange(100_000) % 7)]
    CheckpointFolder(folder).write(3, {"ran": 3}, arrays)


def test_checkpoints(child: Attempts, tmp_path: Path) -> None:
    kept = CheckpointFolder(tmp_path / "kept")
    kept.path.mkdir()
    for number in (1, 2):
        kept.write(number, {"ran": number}, [("level", np.arange(100_000) % 5)])

    def look(ended: Ended) -> str:
        found, wrong = kept.newest()
        assert found is not None
        assert wrong == []
        assert not list(kept.path.glob(".*"))
        assert ended.code != 1 or (found.story["ran"] == 3) == ("in its place" in ended.err), ended
        return {2: "old", 3: "new"}[found.story["ran"]]

    tally = tried(child, ["test_failing_calls:write_checkpoint", str(kept.path)], kept.path, look)
    assert {(1, "old"), (1, "new")} <= set(tally)


def test_run_directories(child: Attempts, tmp_path: Path) -> None:
    """After each fault the directory holds one whole record, and the next run replaces it."""
    (tmp_path / "edges.txt").write_text("0 1\n1 2\n2 0\n5 1\n")
    apart, folder, graph = tmp_path / "-", tmp_path / "runs", str(tmp_path / "g.h5")
    made = child.run(["convert", str(tmp_path / "edges.txt"), graph, "--direction", "both", "--quiet"], apart)
    folder.mkdir()
    arguments = ["run", "degrees", graph, "--run-dir", str(folder / "one"), "--no-calibrate", "--quiet"]
    assert (made.code, child.run(arguments, apart).code) == (0, 0)
    shutil.copytree(folder, tmp_path / "before")
    arguments.append("--force")
    whole = child.run(arguments, folder)
    assert whole.code == 0
    tally: Counter[tuple[int, str]] = Counter()
    for fault in chosen(whole.calls, 4):
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "before", folder)
        ended = child.run(arguments, folder, fault)
        said = f"{fault} of {whole.calls} ({ended.failed}): {ended}"
        assert ended.code in (0, 1, 143), said
        assert "Traceback" not in ended.err, said
        assert ended.code == 0 or "penstock: " in ended.err, said
        status = json.loads((folder / "one" / "run.json").read_text())["status"]
        assert (status == "done") or ended.code != 0, said
        assert child.run(arguments, apart).code == 0, said
        assert json.loads((folder / "one" / "run.json").read_text())["status"] == "done", said
        tally[ended.code, status] += 1
    print(f"{arguments}: {whole.calls} calls, {sum(tally.values())} faults: {dict(tally)}")


@pytest.mark.parametrize("suffix", FORMATS)
def test_results_on_a_full_disk_of_any_size(child: Attempts, tmp_path: Path, suffix: str) -> None:
    """On a file system of each size there is a whole file, or none and a message."""
    codes = []
    for pages in range(1, 24, 1 if ALL else 5):
        with small_disk(tmp_path / f"disk{pages}", pages * 4096) as disk:
            path = disk / f"r.{suffix}"
            ended = child.run(["test_failing_calls:write_table", str(path), "2"], disk)
            assert ended.code in (0, 1), ended
            assert (ended.code == 0) == path.exists(), ended
            assert ended.code == 1 or levels(path) == {2}
            assert ended.code == 0 or "No space left on device" in ended.err
            codes.append(ended.code)
    assert codes == sorted(codes, reverse=True)


@pytest.mark.parametrize("stripes", [0, 1])
def test_convert_on_a_full_disk_of_any_size(child: Attempts, tmp_path: Path, stripes: int) -> None:
    """A graph is replaced, or stands as it was, however little room there is beside it."""
    (tmp_path / "old.txt").write_text("0 1\n1 2\n2 0\n5 1\n")
    (tmp_path / "new.txt").write_text("0 1\n1 2\n2 0\n7 1\n3 4\n")
    codes = []
    for pages in range(3 + 3 * stripes, 16, 1 if ALL else 3):
        with small_disk(tmp_path / f"disk{pages}", pages * 4096) as disk:
            target = disk / "g.h5"
            more = ["--stripe", str(disk), "--quiet", "--force"][0 if stripes else 2 :]
            made = child.run(["convert", str(tmp_path / "old.txt"), str(target), *more], tmp_path / "-")
            ended = child.run(["convert", str(tmp_path / "new.txt"), str(target), *more], disk)
            assert {made.code, ended.code} <= {0, 1}, (made, ended)
            assert graph_there(target) == ("new" if ended.code == 0 else "old" if made.code == 0 else "none")
            codes.append(ended.code)
    assert codes == sorted(codes, reverse=True)
    assert set(codes) == {0, 1}


def test_a_graph_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    """`graph_there` sees a graph without its shard."""
    (tmp_path / "g.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    with pytest.raises(InputError):
        graph_there(tmp_path / "g.h5")
