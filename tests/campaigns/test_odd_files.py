"""Links, pipes, sockets, devices, folders and odd names as input and as output: the right answer, or one message.

Every command that writes gets each kind of output, with and without --force; every file that a command reads is each
kind of input. A refusal has exit code 2 and one message, and leaves everything as it was; a link stays what it is, and
what it leads to is replaced.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import socket
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from penstock.storage.format.frames import open_frames
from penstock.storage.format.graph import Graph
from penstock.tools import cli
from penstock.transfer.calibration.calibration import Calibration
from penstock.transfer.values.rates import Rates
from support.faults import python

ALL = os.environ.get("PENSTOCK_CAMPAIGN") == "all"
pytestmark = pytest.mark.timeout(1200 if ALL else 120)
SECONDS = 60
"""After which a command counts as hanging."""
EDGES = "0 1\n1 2\n2 0\n2 3\n"
OLD = "what was there before"

OUTPUTS = {
    "convert": (["convert", "e.txt", "{}"], ".h5"),
    "generate": (["generate", "rmat", "--scale", "4", "--output", "{}"], ".h5"),
    "generate text": (["generate", "rmat", "--scale", "4", "--output", "{}"], ".txt"),
    "extract": (["extract", "g.h5", "{}", "--degrees", "1..", "--device", "cpu"], ".h5"),
    "export": (["export", "g.h5", "{}"], ".csv"),
    "export npz": (["export", "g.h5", "{}"], ".npz"),
    "walk": (["walk", "g.h5", "--output", "{}"], ".txt"),
    "similarity": (["similarity", "g.h5", "--k", "1", "--output", "{}"], ".csv"),
    "run": (["run", "wcc", "g.h5", "--output", "{}"], ".csv"),
    "run hdf5": (["run", "wcc", "g.h5", "--output", "{}"], ".h5"),
    "metrics": (["run", "wcc", "g.h5", "--metrics", "{}"], ".jsonl"),
    "trace": (["run", "wcc", "g.h5", "--trace", "{}"], ".json"),
    "report": (["report", "m.jsonl", "--html", "{}"], ".html"),
    "plot": (["info", "g.h5", "--plot", "{}"], ".png"),
}
"""By name, a command that writes a file and the suffix that it wants."""
GIVEN = {".toml": "run job", ".py": "run program"}
"""By suffix, what is recognized by it."""
FOLDERS = {
    "run directory": ["run", "wcc", "g.h5", "--run-dir", "{}"],
    "checkpoint": ["run", "wcc", "g.h5", "--checkpoint", "{}"],
    "pictures": ["report", "m.jsonl", "--png", "{}"],
}
"""By name, a command that writes a folder."""


GRAPHS = {
    "info": ["info", "{}", "--degrees"],
    "verify": ["verify", "{}"],
    "run": ["run", "wcc", "{}", "--no-calibrate"],
    "export": ["export", "{}", "made.csv", "--force"],
    "walk": ["walk", "{}", "--output", "made.txt", "--force"],
    "similarity": ["similarity", "{}", "--k", "1"],
    "extract": ["extract", "{}", "made.h5", "--degrees", "1..", "--force", "--device", "cpu"],
    "convert graph": ["convert", "{}", "made.h5", "--force"],
    "append to": ["append", "{}", "e.txt"],
}
"""By name, a command that reads a graph file."""
TEXTS = {
    "convert": (["convert", "{}", "made.h5", "--force"], EDGES),
    "convert --renumber": (["convert", "{}", "made.h5", "--force", "--renumber"], EDGES),
    "convert csv": (["convert", "{}", "made.h5", "--force", "--format", "csv"], "source,target\n0,1\n1,2\n"),
    "convert metis": (["convert", "{}", "made.h5", "--force", "--format", "metis"], "3 2\n2\n1 3\n2\n"),
    "convert dimacs": (["convert", "{}", "made.h5", "--force", "--format", "dimacs"], "p sp 3 2\na 1 2 5\na 2 3 6\n"),
    "convert adjacency": (["convert", "{}", "made.h5", "--force", "--format", "adjacency"], "0 1 2\n1 2\n"),
    "convert matrix": (
        ["convert", "{}", "made.h5", "--force", "--format", "matrix-market"],
        "%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n2 3\n",
    ),
    "convert gml": (
        ["convert", "{}", "made.h5", "--force", "--format", "gml"],
        "graph [ node [ id 0 ] node [ id 1 ] edge [ source 0 target 1 ] ]\n",
    ),
    "convert graphml": (
        ["convert", "{}", "made.h5", "--force", "--format", "graphml"],
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="directed">'
        '<node id="0"/><node id="1"/><edge source="0" target="1"/></graph></graphml>',
    ),
    "convert binary": (["convert", "{}", "made.h5", "--force", "--format", "binary32"], "\0\0\0\0\1\0\0\0"),
    "append": (["append", "copy.h5", "{}"], EDGES),
    "convert --vertices": (["convert", "e.txt", "made.h5", "--force", "--vertices", "{}"], "0\n1\n2\n3\n7\n"),
    "extract --vertices": (
        ["extract", "g.h5", "made.h5", "--force", "--vertices", "{}", "--device", "cpu"],
        "0\n1\n2\n",
    ),
    "walk --sources": (["walk", "g.h5", "--output", "made.txt", "--force", "--sources", "{}"], "0\n1\n"),
    "similarity --pairs": (["similarity", "g.h5", "--pairs", "{}"], "0 1\n1 2\n"),
    "run --personalization": (["run", "pagerank", "g.h5", "--no-calibrate", "--personalization", "{}"], "0 1\n1 2\n"),
    "run --initial": (["run", "heat", "g.h5", "--no-calibrate", "--max-iter", "2", "--initial", "{}"], "0 1\n1 2\n"),
    "run job": (["run", "{}", "--no-calibrate"], 'graph = "g.h5"\n[[programs]]\nname = "wcc"\n'),
    "run program": (
        ["run", "{}:Mine", "g.h5", "--no-calibrate"],
        "from penstock.engine.programs.wcc import WCC\nclass Mine(WCC):\n    pass\n",
    ),
    "run --rates": (["run", "wcc", "g.h5", "--rates", "{}"], None),
    "report": (["report", "{}"], None),
    "plan --machine": (["plan", "--vertices", "10", "--edges", "10", "--machine", "{}"], None),
}
"""By name, a command that reads another file, and content that it accepts."""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


class Hangs(BaseException):
    """A command has not ended after `SECONDS`."""


def _alarm(*_: object) -> None:
    raise Hangs


def ended(arguments: list[str]) -> Ended:
    """Run a command in this process. An exception that it does not catch is the test's."""
    out, err = io.StringIO(), io.StringIO()
    before = signal.signal(signal.SIGALRM, _alarm)
    signal.alarm(SECONDS)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = cli.run_command(arguments)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return Ended(code, out.getvalue(), err.getvalue())


def content(folder: Path) -> dict[str, str]:
    """What is in a folder and below: kinds, targets of links, content of files."""
    found = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        what = os.readlink(path) if stat.S_ISLNK(mode) else path.read_bytes().hex() if stat.S_ISREG(mode) else ""
        found[str(path.relative_to(folder))] = f"{stat.S_IFMT(mode):o} {what}"
    return found


def odd_outputs(folder: Path, suffix: str) -> dict[str, str]:
    """Make a folder anew, with things to write to; their names, by kind."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "inner").mkdir(parents=True)
    (folder / f"old{suffix}").write_text(OLD)
    (folder / "inner" / f"far{suffix}").write_text(OLD)
    links = {
        "link": f"old{suffix}",
        "link-of-link": f"link{suffix}",
        "link-far": f"inner/far{suffix}",
        "dangling": f"new{suffix}",
        "dangling-nowhere": f"nowhere/new{suffix}",
        "circle": f"circle{suffix}",
        "link-to-folder": "inner",
        "link-to-null": "/dev/null",
    }
    found = {}
    for name, target in links.items():
        os.symlink(target, folder / f"{name}{suffix}")
        found[name] = str(folder / f"{name}{suffix}")
    os.mkfifo(folder / f"pipe{suffix}")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(folder / f"socket{suffix}"))
    (folder / f"folder{suffix}").mkdir()
    found |= {name: str(folder / f"{name}{suffix}") for name in ("pipe", "socket", "folder")}
    found |= {f"/dev/{name}": f"/dev/{name}" for name in ("null", "full", "zero", "tty")}
    names = {"newline": "a\nb", "escape": "a\x1b[31mb", "formula": "=1+1", "dash": "-x", "blank": " ", "dot": ".x"}
    names |= {"bytes": os.fsdecode(b"\xff\xfe"), "accent": "é" * 20, "quote": "'\"`$(touch x)"}
    names |= {f"long-{size}": "x" * (size - len(suffix)) for size in (230, 255, 256, 300, 5000)}
    names |= {"long-accent": "é" * 120}
    found |= {name: str(folder / f"{stem}{suffix}") for name, stem in names.items()}
    found |= {
        "below-a-file": str(folder / f"old{suffix}" / f"x{suffix}"),
        "no-folder": str(folder / "none" / f"x{suffix}"),
        "up": str(folder / "inner" / ".." / f"up{suffix}"),
        "up-from-nowhere": str(folder / "none" / ".." / f"up{suffix}"),
        "up-from-link": str(folder / f"link-to-folder{suffix}" / ".." / f"up{suffix}"),
        "slash": str(folder / f"x{suffix}") + "/",
        "empty": "",
        "here": ".",
        "root": "/",
        "proc": "/proc/self/mem",
    }
    return found


READABLE = (
    *("old", "link", "link-of-link", "link-far", "newline", "escape", "formula", "dash", "blank", "dot", "bytes"),
    *("accent", "quote", "long-230", "long-255", "long-accent", "up", "up-from-link"),
)
"""Kinds of input that are files with what is wanted."""
NO_PIPE = (*GRAPHS, "convert gml", "convert graphml", "run program")
"""What is not read from its beginning to its end."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a graph, its edges and the metrics of a run."""
    folder = tmp_path_factory.mktemp("made")
    with contextlib.chdir(folder):
        Path("e.txt").write_text(EDGES)
        for line in (
            ["convert", "e.txt", "g.h5", "--direction", "both", "-q"],
            ["convert", "e.txt", "l.h5", "--layout", "list", "-q"],
            ["run", "wcc", "g.h5", "--metrics", "m.jsonl", "-q", "--no-calibrate"],
        ):
            assert ended(line).code == 0
    return folder


@pytest.fixture
def place(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with the same."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def some(kinds: list[str], number: int, few: int) -> list[str]:
    """All kinds, or some of them, others for each number."""
    return kinds if ALL else [kinds[(number * 7 + step * 11) % len(kinds)] for step in range(few)]


def check_refused(done: Ended, changed: set[str], told: str) -> None:
    """A refusal is one message, perhaps with the line that it is about, and nothing changes."""
    assert done.code == 2, told
    first, *more = done.err.rstrip().splitlines()
    assert first.startswith(("penstock: ", "Usage: ")), told
    assert all(line.startswith(("    ", "Try ", "Error: ")) or not line for line in more), told
    assert not changed, told


def differing(before: dict[str, str], after: dict[str, str]) -> set[str]:
    """Names of which there was something else before."""
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


@pytest.mark.parametrize("command", list(OUTPUTS))
def test_odd_outputs(command: str, place: Path) -> None:
    words, suffix = OUTPUTS[command]
    folder, number = place / "out", list(OUTPUTS).index(command)
    for kind in some(list(odd_outputs(folder, suffix)), number, 3):
        for force in ([], ["--force"]):
            target = odd_outputs(folder, suffix)[kind]
            leads_to, before = os.path.realpath(target), content(place)
            done = ended([word.replace("{}", target) for word in words] + [*force, "-q"])
            changed = differing(before, content(place))
            told = f"{command} to {kind} {force}: {done}, {changed}"
            if done.code == 0:
                assert changed == {os.path.relpath(leads_to, place)}, told
                assert Path(leads_to).stat().st_size > 0, told
            else:
                check_refused(done, changed, told)
            if kind in ("link", "link-of-link", "link-far", "dangling", *READABLE[4:]):
                allowed = force or before.get(os.path.relpath(leads_to, place)) is None
                assert (done.code == 0) == bool(allowed), told


@pytest.mark.parametrize("command", list(FOLDERS))
def test_odd_folders(command: str, place: Path) -> None:
    """A link to a folder is that folder; whatever is no folder is refused."""
    folder, number = place / "out", list(FOLDERS).index(command)
    for kind in some(list(odd_outputs(folder, "")), number, 3):
        target = odd_outputs(folder, "")[kind]
        before = content(place)
        done = ended([word.replace("{}", target) for word in FOLDERS[command]] + ["-q"])
        changed = differing(before, content(place))
        told = f"{command} to {kind}: {done}, {changed}"
        if done.code:
            check_refused(done, changed, told)
        else:
            assert not changed & before.keys(), told


@contextlib.contextmanager
def fed(pipe: Path, data: bytes) -> Iterator[None]:
    """Write data to a pipe as often as somebody opens it to read."""
    stop = threading.Event()

    def feed() -> None:
        while not stop.is_set():
            try:
                handle = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:  # no reader yet
                stop.wait(0.002)
                continue
            with contextlib.suppress(OSError), open(handle, "wb") as file:
                file.write(data)
            stop.wait(0.05)

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("command", [*GRAPHS, *TEXTS])
def test_odd_inputs(command: str, place: Path) -> None:
    if command in GRAPHS:
        words, good = GRAPHS[command], (place / ("l.h5" if command == "convert graph" else "g.h5")).read_bytes()
    else:
        words, text = TEXTS[command]
        good = text.replace("g.h5", str(place / "g.h5")).encode() if text else (place / "m.jsonl").read_bytes()
    if command == "plan --machine":
        good = ended(["plan", "--write-example"]).out.encode()
    if command == "run --rates":
        good = json.dumps(Calibration({"cores": 1}, "today", True, 1.0, 1, Rates(), {}).facts()).encode()
    suffix = {name: ending for ending, name in GIVEN.items()}.get(command, "")
    folder, number = place / "in", [*GRAPHS, *TEXTS].index(command)
    expected = None
    for kind in ["old", *some(list(odd_inputs(folder, suffix, good)), number, 2)]:
        source = odd_inputs(folder, suffix, good)[kind]
        shutil.copy("l.h5", "copy.h5")
        with fed(folder / f"pipe{suffix}", good) if kind == "pipe" else contextlib.nullcontext():
            before = content(folder)
            done = ended([word.replace("{}", source) for word in words] + ["-q"])
            changed = differing(before, content(folder))
        told = f"{command} from {kind}: {done}, {changed}"
        too_long = command == "append to" and kind == "long-255"  # of which its lock has no room
        if (kind in READABLE and not too_long) or (kind == "pipe" and command not in NO_PIPE):
            assert done.code == 0, told
            if words[0] == "convert":
                expected = expected or Graph.open("made.h5").edges
                assert Graph.open("made.h5").edges == expected, told
            assert changed == (files_of(source, folder) if command == "append to" else set()), told
        elif kind == "proc" and done.code == 1:  # an error of reading
            assert "/proc/self/mem" in done.err, told
        elif done.code:
            check_refused(done, changed, told)
        elif words[0] == "convert" and kind == "link-to-folder":  # whose files are read
            assert (Graph.open("made.h5").edges, changed) == (expected, set()), told
        elif command == "append" and kind == "link-to-folder":
            assert (Graph.open("copy.h5").edges, changed) == (2 * len(EDGES.splitlines()), set()), told
        else:
            assert kind in ("link-to-null", "/dev/null"), told  # nothing: a graph without edges, no condition
    shutil.rmtree(folder)


def files_of(graph: str, folder: Path) -> set[str]:
    """Names of a graph's two files, after its edges were added once more: a new manifest, and what it was before."""
    opened = open_frames(Path(os.path.realpath(graph)))
    assert opened.header.edges == 2 * len(EDGES.splitlines()), graph
    names = {os.path.relpath(file.path, folder) for file in opened.open_files}
    assert len(names) == 2, names
    return names


def odd_inputs(folder: Path, suffix: str, good: bytes) -> dict[str, str]:
    """Make a folder anew, with things to read; their names, by kind."""
    found = odd_outputs(folder, suffix)
    found["old"] = str(folder / f"old{suffix}")
    for kind in READABLE:
        Path(os.path.realpath(found[kind])).write_bytes(good)
    return found


def test_standard_output_is_no_file_where_it_is_a_pipe(place: Path) -> None:
    """`-` is its name; /dev/stdout would be replaced."""
    for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
        line = ["run", "wcc", "g.h5", "--format", "csv", "--no-calibrate", "-q", "--output", name]
        command = "import sys; from penstock.tools.cli import main; main(sys.argv[1:])"
        done = python(command, *line)
        assert (done.returncode, done.stdout) == (2, ""), done
        assert done.stderr == f"penstock: {name} is not a regular file; name another output\n"


def test_names_that_are_not_utf_8(place: Path) -> None:
    """A graph, a program: what shows their names escapes these bytes; TOML has none, so a run directory is refused."""
    graph, program = os.fsdecode(b"\xff.h5"), os.fsdecode(b"\xfe.py")
    shutil.copy("g.h5", graph)
    Path(program).write_text(TEXTS["run program"][1] or "")
    for line in (
        ["run", f"{program}:Mine", graph, "--metrics", "m2.jsonl", "--trace", "t.json", "--no-calibrate"],
        ["report", "m2.jsonl", "--html", "r.html", "--json"],
        ["info", graph, "--plot", "d.svg"],
    ):
        assert ended(line).code == 0, ended(line)
    assert "\\udcff.h5" in Path("r.html").read_text()
    before = content(place)
    done = ended(["run", "wcc", graph, "--run-dir", "d", "--no-calibrate", "-q"])
    check_refused(done, differing(before, content(place)), str(done))
    assert "is not UTF-8, and job.toml is" in done.err
