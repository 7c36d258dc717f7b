"""A graph that is replaced, overwritten, cut or removed while a command reads it; shards that change places.

At each read of the graph in turn the change comes before it. The command gives the answer of the old graph or of the
new one, never of a mixture, or ends with exit code 1 or 2, one message and no output. By default some reads;
PENSTOCK_CAMPAIGN=all tries each.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.tools import cli
from support.graphs import on_disk, shape
from support.oracles import EdgeList
from support.stories import content

ALL = os.environ.get("PENSTOCK_CAMPAIGN") == "all"
FEW = 2
OLD = shape("skewed", weights="uint8")
NEW = EdgeList(OLD.vertices, OLD.targets[::-1].copy(), OLD.sources, OLD.weights)
"""As many vertices and edges, so that its files are about as large."""
COMMANDS = {
    "run": "run sssp g.h5 --source 0 --output answer.csv --no-calibrate",
    "run-pull": "run pagerank g.h5 --tol 0 --max-iter 3 --direction pull --output answer.csv --no-calibrate",
    "run-disk": "run bfs g.h5 --source 5 --host-memory 30MiB --direct-io --output answer.csv --no-calibrate",
    "export": "export g.h5 answer.csv",
    "extract": "extract g.h5 answer.h5 --degrees 3..",
    "convert": "convert g.h5 answer.h5",
    "similarity": "similarity g.h5 --k 2 --output answer.csv",
    "walk": "walk g.h5 --length 5 --walks-per-vertex 1 --output answer.csv",
    "info": "info g.h5 --degrees --json",
    "verify": "verify g.h5 --json",
}
QUICK = ("export", "verify", "run-disk")

pytestmark = pytest.mark.timeout(3600 if ALL else 120)


class Files:
    """A graph in the working folder, in one file or in shards, and what becomes of it."""

    def __init__(self, striped: bool, *, listed: bool = False) -> None:
        self._stripes, self._listed = [Path("a"), Path("b")] if striped else [], listed
        self.new: list[bytes] = []
        self.store = Path()

    def make(self, edges: EdgeList, *, force: bool = False) -> None:
        """Write the graph under its name."""
        if not self._listed:
            on_disk(edges, Path("g.h5"), stripes=self._stripes, force=force)
            return
        columns = (edges.sources, edges.targets, edges.weights)
        np.savetxt("edges.txt", np.column_stack(columns), "%d")
        options = ["--layout", "list", "--quiet", *["--force"] * force]
        for folder in self._stripes:
            options += ["--stripe", str(folder)]
        assert cli.run_command(["convert", "edges.txt", "g.h5", *options]) == 0
        Path("edges.txt").unlink()

    def clear(self) -> None:
        """Leave an empty folder."""
        for path in Path().iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        Path("a").mkdir()
        Path("b").mkdir()

    def prepare(self, store: Path) -> None:
        """Keep what `overwrite` and `replace` put in the place of the old graph."""
        self.clear()
        self.make(NEW)
        self.new = [path.read_bytes() for path in self.files()]
        self.clear()
        self.make(OLD)
        old = set(self.files())
        self.make(NEW, force=True)
        self.store = store
        for path in self.files():
            assert path not in old or path.name == "g.h5"
            (store / path).parent.mkdir(parents=True, exist_ok=True)
            path.rename(store / path)

    @staticmethod
    def files() -> list[Path]:
        """The graph's files."""
        return sorted(Path().rglob("g*.h5"))

    def replace(self) -> None:
        """As `convert --force` does: shards, then the manifest, then old shards go. HDF5's lock may be held."""
        old = {path for path in self.files() if path.name != "g.h5"}
        new = sorted(self.store.rglob("g*.h5"), key=lambda path: path.name == "g.h5")
        for path in new:
            os.link(path, "aside")
            Path("aside").rename(path.relative_to(self.store))
        for path in old:
            path.unlink()

    def overwrite(self) -> None:
        """As `cp` does, in the same files."""
        for path, data in zip(self.files(), self.new, strict=True):
            with path.open("r+b") as file:
                file.write(data)
                file.truncate()

    def halve(self) -> None:
        """Cut every file."""
        for path in self.files():
            os.truncate(path, path.stat().st_size // 2)

    def empty(self) -> None:
        """Cut every file to nothing."""
        for path in self.files():
            os.truncate(path, 0)

    def remove(self) -> None:
        """Remove every file."""
        for path in self.files():
            path.unlink()

    def swap(self) -> None:
        """Exchange the shards."""
        one, other = sorted(Path().rglob("g.*.h5"))
        one.rename("aside")
        other.rename(one)
        Path("aside").rename(other)

    def swap_content(self) -> None:
        """Exchange what is in the shards, in the same files."""
        one, other = sorted(Path().rglob("g.*.h5"))
        first, second = one.read_bytes(), other.read_bytes()
        one.write_bytes(second)
        other.write_bytes(first)


CHANGES: dict[str, Callable[[Files], None]] = {
    name: getattr(Files, name) for name in ("replace", "overwrite", "halve", "empty", "remove", "swap", "swap_content")
}


class Reads:
    """Counts positioned reads, and changes the files before one of them."""

    def __init__(self, patch: pytest.MonkeyPatch, number: int, change: Callable[[], None]) -> None:
        self.count, self._number, self._change, self._changing = 0, number, change, False
        self._real = os.preadv
        patch.setattr(os, "preadv", self)

    def __call__(self, file: int, buffers: Sequence[Any], offset: int, *flags: int) -> int:
        if not self._changing:
            self.count += 1
            if self.count - 1 == self._number:
                self._changing = True  # the change itself reads
                self._change()
                self._changing = False
        return self._real(file, buffers, offset, *flags)


def answer(out: str) -> str:
    """What a command found: the content of its output, or what it printed without times and sizes of files."""
    found = sorted(Path().glob("answer.*"))
    if found:
        return content(found[0])
    facts = json.loads(out)
    return json.dumps(
        {key: facts.get(key) for key in ("whole", "vertices", "edges", "problems", "degrees", "out", "in")}
    )


def tried(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], files: Files, command: str,
    change: Callable[[], None], number: int, *, replaced: bool = False,
) -> tuple[int, str, str, int]:  # fmt: skip
    """Run a command on the old graph, or the new one; its code, answer and message, how many reads there were."""
    files.clear()
    files.make(OLD)
    if replaced:
        files.replace()
    with monkeypatch.context() as patch:
        reads = Reads(patch, number, change)
        code = cli.run_command([*command.split(), *(() if "--json" in command else ("--quiet",))])
    shown = capsys.readouterr()
    return code, answer(shown.out) if code == 0 else "", shown.err, reads.count


@pytest.mark.parametrize("striped", [False, True], ids=["file", "stripes"])
@pytest.mark.parametrize("name", COMMANDS if ALL else QUICK)
def test_a_change_at_any_read(
    name: str, striped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    files, command = Files(striped, listed=name == "convert"), COMMANDS[name]
    files.prepare(tmp_path / "new")
    code, wanted, _, reads = tried(monkeypatch, capsys, files, command, lambda: None, -1)
    assert code == 0
    code, other, _, _ = tried(monkeypatch, capsys, files, command, lambda: None, -1, replaced=True)
    assert code == 0
    assert len({wanted, other}) == 1 + (name != "verify")
    known, failures, tally = {wanted, other}, [], Counter[str]()
    for label, change in CHANGES.items():
        if "swap" in label and not striped:
            continue
        numbers = list(range(reads)) if ALL else random.Random(f"{name} {label}").sample(range(reads), FEW)
        for number in numbers:
            code, found, err, _ = tried(monkeypatch, capsys, files, command, lambda: change(files), number)  # noqa: B023
            tally[f"{label} {code or ('old' if found == wanted else 'new')}"] += 1
            said = f"{label} before read {number} of {reads}: {code} {err}"
            if code not in (0, 1, 2) or "Traceback" in err:
                failures.append(said)
            elif code == 0 and found not in known:
                failures.append(f"{said}: another answer")
            elif code and name != "verify" and (err.count("\n") != 1 or list(Path().glob("*answer*"))):
                failures.append(f"{said}: {sorted(Path().glob('*answer*'))}")
    print(f"{name}, {'stripes' if striped else 'file'}: {reads} reads: {dict(tally)}")
    assert not failures, "\n".join([f"{len(failures)} failures", *failures])
