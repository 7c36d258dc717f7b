"""A folder with graphs, and a process that forks commands which run in it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from support.failing_calls import NO_FAULT, Attempts, Ended, Fault, attempts
from support.stories import MATERIALS, Left, Story, Workplace, left_in, write_inputs


@dataclass
class Workshop:
    """Runs stories in a folder that is restored before each."""

    child: Attempts
    place: Workplace
    before: Left
    _form: Left | None = None

    def run(self, arguments: list[str], fault: Fault = NO_FAULT, **limits: int) -> Ended:
        """Run a command in the folder as it is."""
        return self.child.run(arguments, self.place.folder, fault, self.place.environment, limits)

    def start(self, arguments: list[str], fault: Fault) -> Ended:
        """Run a command in a process of its own, with all its threads; the fault comes at a time."""
        assert fault.seconds is not None
        with subprocess.Popen(
            [sys.executable, "-P", "-m", "penstock.tools.main", *arguments],
            cwd=self.place.folder, env=os.environ | self.place.environment,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            time.sleep(fault.seconds)
            process.send_signal(-fault.errno)
            out, err = process.communicate(timeout=300)
        return Ended(code=process.returncode, calls=-1, failed="", out=out, err=err)

    def before_of(self, story: Story) -> Left:
        """What was in the folder, as `left` sees it."""
        if not story.inconstant:
            return self.before
        self._form = self._form or left_in(self.place.copy, inconstant=True)
        return self._form

    def left(self, story: Story) -> Left:
        """What is in the folder."""
        return left_in(self.place.folder, inconstant=story.inconstant)


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    """The folder with all that stories need."""
    base = tmp_path_factory.mktemp("campaign")
    place = Workplace(base / "work", base / "copy")
    place.folder.mkdir()
    write_inputs(place.folder)
    with attempts(tmp_path_factory.mktemp("shim")) as child:
        for made in MATERIALS:
            ended = child.run([*made.split(), "--quiet"], place.folder, NO_FAULT, place.environment)
            assert (ended.code, ended.err) == (0, ""), ended
        place.keep()
        yield Workshop(child, place, left_in(place.folder))
