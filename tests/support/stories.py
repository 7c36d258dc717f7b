"""Every command that writes, on small graphs: what it is run on, what it leaves, and what may be run after it.

Campaigns kill these commands or take from them what they need, and then compare the folder with what an undisturbed run
leaves. `Workplace` restores the folder before each round, always under the same name, as graphs record paths.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow.parquet
from penstock.storage.checkpoint.file import Checkpoint
from penstock.storage.format.graph import Graph
from penstock.storage.read.verify import verify
from penstock.storage.tables.properties import property_path

VERTICES, EDGES = 300, 2500
DEBRIS = re.compile(
    r"\..*\.partial-\d+-[0-9a-f]{8}.*|\.penstock-(scratch-\d+-[0-9a-f]{8}|next|begun|run\.lock|checkpoint\.lock|ended)"
    r"|\..*\.append|\.[0-9a-f]{16}\..*\.vertices\.parquet"
)
"""What a killed command may leave beside whole files, and files of a graph that no graph names: hidden names."""
EARLIER = re.compile(r"(^|/)earlier-\d+/")
"""Records of runs that were stopped, which a run that goes on puts aside."""
TABLE = re.compile(r".*\.vertices\.parquet")
SHARD = re.compile(r".*\.\d+\.h5")
JOB = """
graph = "g.h5"
[[programs]]
name = "bfs"
source = 0
output = "levels.csv"
[[programs]]
name = "pagerank"
output = "ranks.parquet"
"""


@dataclass(frozen=True)
class Story:
    """A command, as it is typed in a folder that holds the files of `materials`.

    Attributes
    ----------
    name : str
        Of the story.
    command : str
        Its arguments.
    again : tuple of str
        What to add where it is run once more.
    otherwise : tuple of str
        Options of which one may be added then: the answer is the same.
    once : bool
        Whether a command that has done its work must not be run again: it would do it twice.
    inconstant : bool
        Whether every run leaves another content, of which only the form is compared.
    """

    name: str
    command: str
    again: tuple[str, ...] = ("--force",)
    otherwise: tuple[str, ...] = ()
    once: bool = False
    inconstant: bool = False

    @property
    def arguments(self) -> list[str]:
        """The command line."""
        return [*self.command.split(), "--quiet"]


def _runs() -> Iterator[Story]:
    for suffix in ("csv", "csv.gz", "tsv", "parquet", "feather", "h5", "npy"):
        yield Story(f"run-{suffix}", f"run bfs g.h5 --source 0 --output new.{suffix} --no-calibrate")
    yield Story("run-graphalytics", "run wcc g.h5 --format graphalytics --output new.txt --no-calibrate")
    yield Story("run-over", "run sssp g.h5 --source 0 --output old.csv --force --no-calibrate", ())
    kept, fixed = "--checkpoint state --checkpoint-every 1", "--no-calibrate --host-memory 300MiB"
    for program in ("bfs", "pagerank", "hits", "cdlp"):
        source = "--source 0 " * (program == "bfs")
        yield Story(
            f"run-checkpoints-{program}",
            f"run {program} g.h5 {source}{kept} --output new.csv --no-calibrate",
            ("--resume", "--force"),
            ("--host-memory 100MiB", "--threads 1", "--partition-bytes 8KiB", "--checkpoint-every 3"),
        )
    yield Story("run-directory", f"run wcc g.h5 --run-dir runs {kept} --trace trace.json {fixed}", ("--resume",))
    yield Story("run-directory-over", f"run wcc g.h5 --run-dir old-run --force {fixed}", ())
    yield Story("run-job", f"run job.toml --run-dir runs/job {fixed}")
    yield Story("run-metrics", "run scc g.h5 --metrics m.jsonl --trace t.json --output new.csv --no-calibrate")


STORIES = (
    Story("convert-rows", "convert edges.txt new.h5 --direction both"),
    Story("convert-list", "convert edges.txt new.h5 --layout list"),
    Story("convert-over", "convert edges.txt old.h5 --force --order degree", ()),
    Story("convert-stripes", "convert edges.txt new.h5 --stripe a --stripe b"),
    Story("convert-stripes-over", "convert more.txt s.h5 --stripe a --stripe b --force", ()),
    Story("convert-names", "convert names.csv new.h5 --vertices people.csv --renumber --direction both"),
    Story("convert-names-over", "convert names.csv n.h5 --vertices people.csv --renumber --undirected --force", ()),
    Story("convert-properties-away", "convert edges.txt n.h5 --force", ()),
    Story("convert-spilled", "convert edges.txt new.h5 --host-memory 60MiB --dedupe sum --symmetrize"),
    Story("append-rows", "append g.h5 more.txt", (), once=True),
    Story("append-list", "append l.h5 more.txt", (), once=True),
    Story("append-stripes", "append s.h5 more.txt", (), once=True),
    Story("append-names", "append m.h5 more-names.csv", (), once=True),
    Story("extract", "extract g.h5 new.h5 --largest-component --drop-isolated"),
    Story("extract-names", "extract n.h5 new.h5 --degrees 3.."),
    Story("export-csv", "export g.h5 new.csv"),
    Story("export-gz", "export n.h5 new.tsv.gz"),
    Story("export-parquet", "export l.h5 new.parquet"),
    Story("export-npz", "export g.h5 new.npz"),
    Story("export-over", "export g.h5 old.csv --force", ()),
    Story("generate-graph", "generate rmat --scale 9 --output new.h5 --weights 1..63"),
    Story("generate-text", "generate grid --rows 40 --columns 40 --output new.txt.gz"),
    Story("generate-pairs", "generate uniform --vertices 500 --edges 9000 --output new.bin"),
    *_runs(),
    Story("walk-text", "walk g.h5 --length 20 --walks-per-vertex 2 --output new.txt"),
    Story("walk-npy", "walk g.h5 --length 20 --walks-per-vertex 2 --output new.npy"),
    Story("walk-parquet", "walk n.h5 --length 20 --walks-per-vertex 2 --p 0.5 --output new.parquet"),
    Story("similarity-parquet", "similarity g.h5 --k 3 --output new.parquet"),
    Story("similarity-h5", "similarity g.h5 --k 3 --by cosine --output new.h5"),
    Story("report-html", "report old.jsonl --html new.html"),
    Story("report-png", "report old.jsonl --png pictures"),
    Story("calibrate", "calibrate --quick --file g.h5 --device cpu", inconstant=True),
    Story("bench-encodings", "bench encodings --scale 8", (), inconstant=True),
    Story("bench-routes", "bench routes g.h5 --device emulated --program bfs --plot new.png", inconstant=True),
    Story("demo", "demo --folder .", (), inconstant=True),
)  # fmt: skip


def write_inputs(folder: Path) -> None:
    """Write the raw data that `MATERIALS` are made of."""
    random = np.random.default_rng(29)
    ends = np.concatenate([random.integers(0, VERTICES, (EDGES, 2)), [[0, VERTICES - 1], [VERTICES - 1, 1]]])
    weights = random.integers(1, 99, len(ends))
    rows = [f"{u} {v} {w}\n" for (u, v), w in zip(ends.tolist(), weights.tolist(), strict=True)]
    (folder / "edges.txt").write_text("".join(rows))
    (folder / "more.txt").write_text("".join(f"{n} {(n * 7) % 350} {n % 90 + 1}\n" for n in range(350)))
    names = [f"v{u},v{v}\n" for u, v in ends[:1500].tolist()]
    (folder / "names.csv").write_text("from,to\n" + "".join(names))
    (folder / "more-names.csv").write_text("from,to\n" + "".join(names[:40]))
    people = [f"v{n},{n % 80},Person {n}\n" for n in range(VERTICES)]
    (folder / "people.csv").write_text("id,age,name\n" + "".join(people))
    (folder / "job.toml").write_text(JOB)
    for place in ("a", "b", "pictures", "temporary", "cache"):
        (folder / place).mkdir()


MATERIALS = (
    "convert edges.txt g.h5 --direction both",
    "convert edges.txt l.h5 --layout list",
    "convert edges.txt s.h5 --layout list --stripe a --stripe b",
    "convert names.csv n.h5 --vertices people.csv --renumber --direction both",
    "convert names.csv m.h5 --renumber",
    "convert more.txt old.h5",
    "export l.h5 old.csv",
    "run degrees g.h5 --run-dir old-run --no-calibrate",
    "run bfs g.h5 --source 0 --metrics old.jsonl --no-calibrate",
)


class Workplace:
    """The folder in which commands run, restored from a copy before each round."""

    def __init__(self, folder: Path, copy: Path) -> None:
        self.folder, self.copy = folder, copy

    def keep(self) -> None:
        """Let the folder be restored to what it is now."""
        shutil.copytree(self.folder, self.copy)

    def restore(self) -> None:
        """Make the folder what it was, under the same name."""
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(self.copy, self.folder, dirs_exist_ok=True)

    @property
    def environment(self) -> dict[str, str]:
        """Where commands keep temporary files and rates."""
        return {"TMPDIR": str(self.folder / "temporary"), "XDG_CACHE_HOME": str(self.folder / "cache")}


@dataclass(frozen=True)
class Left:
    """What is in a folder: the content of each file by its name, checkpoints, and what is no result of a command."""

    files: Mapping[str, str]
    checkpoints: tuple[str, ...]
    debris: tuple[str, ...]

    def differs(self, before: Left, after: Left) -> str:
        """Say which file is neither as it was nor as it should be; empty if none is.

        The files of a record that takes the place of another are in its hidden folder while they are moved.
        """
        for name in sorted({*self.files, *before.files, *after.files}):
            found = self.files.get(name)
            if found is None and f"{Path(name).parent}/.penstock-begun" in self.debris:
                continue
            if found not in (before.files.get(name), after.files.get(name)):
                return f"{name} is {found}; before {before.files.get(name)}, after {after.files.get(name)}"
        return ""


def left_in(folder: Path, *, inconstant: bool = False) -> Left:
    """Read every file in a folder; of answers that are not the same each time only the form.

    Raises AssertionError where one is torn.
    """
    files: dict[str, str] = {}
    checkpoints, debris, named = [], [], set()
    paths = list(_walked(folder))
    for path in paths:
        name = path.relative_to(folder).as_posix()
        if DEBRIS.fullmatch(path.name) or path.parent.name == "temporary":
            debris.append(name)
        elif path.is_file() and not SHARD.fullmatch(path.name):
            with naming(path):
                found = content(path, inconstant=inconstant)
                if path.suffix == ".penstock":
                    checkpoints.append(name)
                elif not EARLIER.search(name):
                    files[name] = found
                if is_graph(path):
                    graph = Graph.open(path)
                    named |= {*graph.files, *([property_path(path)] if graph.properties else [])}
    for name in [name for name in files if TABLE.fullmatch(name) and folder / name not in named]:
        debris.append(name)
        del files[name]
    debris += [p.relative_to(folder).as_posix() for p in paths if SHARD.fullmatch(p.name) and p not in named]
    return Left(files, tuple(checkpoints), tuple(sorted(debris)))


def _walked(folder: Path) -> Iterator[Path]:
    """All files and folders but what is in one that is debris."""
    for path in sorted(folder.iterdir()):
        if path.name == "matplotlib":
            continue  # its own cache
        yield path
        if path.is_dir() and not DEBRIS.fullmatch(path.name):
            yield from _walked(path)


def content(path: Path, *, inconstant: bool = False) -> str:
    """A digest of what a file holds; of one that has times in it only its form, which is checked."""
    files = [path]
    if path.suffix == ".h5":  # what it holds may be in others
        files += [
            other for other in path.parent.rglob("*") if SHARD.fullmatch(other.name) or other.suffix == ".parquet"
        ]
    found = [file.stat() for file in files]
    return _content(path, inconstant, tuple((one.st_size, one.st_mtime_ns) for one in found))


@cache
def _content(path: Path, inconstant: bool, version: tuple[tuple[int, ...], ...]) -> str:
    suffix = path.suffix
    if suffix == ".h5":
        return graph_content(path) if is_graph(path) else table_content(path)
    if suffix == ".penstock":
        Checkpoint(path)
        return "a checkpoint"
    if path.name.endswith(".vertices.parquet"):  # its identity is another each time
        return _digest(pyarrow.parquet.read_table(path).to_pydict())
    data = path.read_bytes()
    if suffix == ".gz":
        data = gzip.decompress(data)
    elif suffix == ".jsonl":
        _check(data.endswith(b"\n") or not data, path)
        for line in data.splitlines():
            json.loads(line)
        return "lines of JSON"
    elif suffix == ".json":
        json.loads(data)
        return "JSON"
    elif path.name == "log.txt":
        return "a log"
    elif suffix == ".toml" and path.name != "job.toml":
        tomllib.loads(data.decode())
    elif suffix == ".html":
        _check(data.rstrip().endswith(b"</html>"), path)
        return "a page"
    elif suffix == ".png":
        _check(data.startswith(b"\x89PNG") and data.endswith(b"IEND\xaeB`\x82"), path)
        return "a picture"
    return "of its form" if inconstant else _digest(data)


def _check(whole: bool, path: Path) -> None:
    if not whole:
        raise ValueError(f"{path} is torn")


def _digest(*parts: Any) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part if isinstance(part, bytes) else repr(part).encode())
    return found.hexdigest()[:16]


def is_graph(path: Path) -> bool:
    """Whether a file is a graph file."""
    if path.suffix != ".h5":
        return False
    with h5py.File(path) as file:
        return "penstock_header" in file


def table_content(path: Path) -> str:
    """A digest of the columns of a table in HDF5."""
    with h5py.File(path) as file:
        return _digest(*((name, file[name][:].tobytes()) for name in sorted(file)))


def graph_content(path: Path) -> str:
    """A digest of all that a graph file holds; everything in it is verified."""
    found = verify(path)
    if not found.whole:
        raise ValueError(f"it is damaged: {found.problems[0]}")
    graph = Graph.open(path)
    parts: list[Any] = [graph.vertices, graph.edges, graph.directed, graph.layout, graph.properties]
    for adjacency in graph.adjacencies:
        parts += [part.tobytes() for part in adjacency.edges_in(0, graph.edges) if part is not None]
        index = adjacency.index() if graph.layout == "rows" else None
        parts.append(None if index is None else index.degrees(0, graph.vertices).tobytes())
    ids = graph.original_ids()
    parts.append(None if ids is None else [str(each) for each in ids.tolist()])
    return _digest(*parts)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name the file in an error that a torn one causes."""
    try:
        yield
    except Exception as error:
        raise AssertionError(f"{path}: {error}") from error
