"""A companion answers what it is asked, and ends with whoever asks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from penstock.storage.companion.claims import Claims
from penstock.storage.companion.process import _START

MODULE = """
import os, time

def succeed(request):
    print("what a module prints is no answer")

def fail(request):
    raise ValueError("this cannot be compiled")

def work(job, claims):
    claims.take("kernel")
    (claims.folder / str(job["number"])).write_text(str(os.getpid()))
    while job["sleeps"]:
        time.sleep(0.01)
    claims.end("kernel")
"""


class Asked:
    """A companion, and its answers; the compiler is not imported."""

    def __init__(self, folder: Path, setting: str = "") -> None:
        self.folder = folder / "claims"
        self.folder.mkdir()
        (folder / "tasks.py").write_text(MODULE)
        self.log = (folder / "log").open("wb")
        code = f"import penstock.storage.companion.server as it; it.prepare = lambda: None; {setting}serve(hello)"
        self.process = subprocess.Popen(
            [sys.executable, "-c", _START.replace("serve(hello)", code)], bufsize=0, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self.log,
        )  # fmt: skip
        self.say({"path": [str(folder), *sys.path], "folder": str(self.folder)})

    def say(self, told: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(told).encode() + b"\n")

    def ask(self, **told: Any) -> bool:
        self.say(told)
        assert self.process.stdout is not None
        answer: bool = json.loads(self.process.stdout.readline())
        return answer

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()
        self.log.close()

    def end(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(60)


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Asked]:
    """A companion."""
    made = Asked(tmp_path)
    yield made
    made.close()


def test_it_answers_whether_it_was_done(asked: Asked, tmp_path: Path) -> None:
    assert asked.ask(target=["tasks", "succeed"])
    assert not asked.ask(target=["tasks", "fail"])
    assert not asked.ask(target=["no_such_module", "fail"])
    assert asked.ask(target=["tasks", "succeed"])
    assert asked.end() == 0
    assert "this cannot be compiled" in (tmp_path / "log").read_text()
    assert not asked.folder.exists()


def test_a_kernel_of_a_job_is_awaited_until_it_is_kept_or_nobody_compiles_it(asked: Asked) -> None:
    asked.say({"target": ["tasks", "work"], "processes": 2, "sleeps": False})
    assert not asked.ask(awaited="a kernel that nobody has taken")
    assert asked.ask(awaited="kernel")
    assert {one.name for one in asked.folder.iterdir()} >= {"0", "1"}


def test_what_does_a_job_is_prepared_once_for_all_processes(asked: Asked, tmp_path: Path) -> None:
    (tmp_path / "prepared.py").write_text(
        "import os\nfrom tasks import work\ndef prepare():\n    print('prepared by', os.getpid(), flush=True)\n"
    )
    asked.say({"target": ["prepared", "work"], "processes": 2, "sleeps": False})
    assert asked.ask(awaited="kernel")
    assert asked.ask(target=["tasks", "succeed"])
    assert asked.end() == 0
    assert (tmp_path / "log").read_text().count(f"prepared by {asked.process.pid}\n") == 1


def test_it_ends_where_nobody_asks_for_long(tmp_path: Path) -> None:
    made = Asked(tmp_path, "it.IDLE_SECONDS = 1; ")
    assert made.process.wait(60) == -signal.SIGALRM
    made.close()


def test_a_job_ends_with_it(asked: Asked) -> None:
    number = working(asked)
    assert Claims(asked.folder).take("another kernel")
    assert asked.end() == 0
    until_ended(number)
    assert not asked.folder.exists()


def test_a_job_ends_where_it_is_asked_to_end_all(asked: Asked, tmp_path: Path) -> None:
    number = working(asked)
    asked.say({"processes": 0, "folder": str(tmp_path)})
    until_ended(number)
    assert not asked.ask(awaited="kernel")
    Claims(tmp_path).end("kernel")
    assert asked.ask(awaited="kernel")


def working(asked: Asked) -> int:
    """The number of a process that does a job."""
    asked.say({"target": ["tasks", "work"], "processes": 1, "sleeps": True})
    told = asked.folder / "0"
    while not (told.exists() and told.read_text()):
        assert asked.process.poll() is None
    return int(told.read_text())


def until_ended(number: int) -> None:
    """Return when a process has ended."""
    state = Path(f"/proc/{number}/stat")
    while state.exists() and " Z " not in state.read_text():
        os.sched_yield()


def test_numba_is_imported_without_scipy_which_others_find_later() -> None:
    code = """if True:
        import sys
        from penstock.storage.companion import server
        with server._without_blas():
            server.prepare()
        assert "numba.np.arraymath" in sys.modules and "scipy.linalg" not in sys.modules
        import scipy.linalg.cython_blas
    """
    subprocess.run([sys.executable, "-c", code], check=True)
