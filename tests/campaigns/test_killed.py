"""Every command that writes is ended by SIGKILL, SIGTERM or SIGINT at any moment, and run once more.

After each kill every file is the old one or the whole new one, and after SIGTERM and SIGINT nothing else is there;
SIGKILL leaves hidden files at most. The same command then gives what it gives undisturbed. Kills come at random times,
and behind every call that changes a file. By default some of them; PENSTOCK_CAMPAIGN=all makes 500 random rounds in
forked processes and 200 in processes of their own, and tries every call, or PENSTOCK_KILLS of each command.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from dataclasses import dataclass

import pytest
from campaigns.conftest import Workshop
from support.failing_calls import NO_FAULT, Ended, Fault
from support.stories import STORIES, Left, Story

ALL = os.environ.get("PENSTOCK_CAMPAIGN") == "all"
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
SAMPLE = ("convert-names-over", "run-checkpoints-pagerank", "run-directory")
FORKED, PROCESSES = (500, 200) if ALL else (5, 1)
"""Rounds of each kind."""
START_SECONDS = 0.5
"""What a process takes to begin."""
MOST = int(os.environ.get("PENSTOCK_KILLS", "1000"))
"""Kills behind calls, of a command."""

pytestmark = pytest.mark.timeout(6 * 3600 if ALL else 300)


@dataclass(frozen=True)
class Undisturbed:
    """What a story leaves, in how many seconds and calls."""

    after: Left
    seconds: float
    calls: int


def undisturbed(workshop: Workshop, story: Story) -> Undisturbed:
    """Run a story to its end."""
    workshop.place.restore()
    began = time.perf_counter()
    ended = workshop.run(story.arguments)
    seconds = time.perf_counter() - began
    assert (ended.code, ended.err) == (0, ""), f"{story.name}: {ended}"
    return Undisturbed(workshop.left(story), seconds, ended.calls)


def killed(
    workshop: Workshop, story: Story, whole: Undisturbed, fault: Fault, more: str = "", *, alone: bool = False
) -> str:
    """Kill a story, look at what is there, and run it once more; returns how the killed one ended.

    alone: in a process that is not forked.
    """
    workshop.place.restore()
    ended = (workshop.start if alone else workshop.run)(story.arguments, fault)
    number = -fault.errno
    said = f"{story.name}: {fault}: {ended}"
    found = workshop.left(story)
    before = workshop.before_of(story)
    wrong = found.differs(before, whole.after)
    assert not wrong, f"{said}: {wrong}"
    if number == signal.SIGKILL:
        assert ended.code in (0, -number), said
    else:
        check_message(ended, number, said)
        assert set(found.debris) <= {*before.debris, *whole.after.debris}, f"{said}: {found.debris}"
        if ended.code < 0 or "nothing was left" in ended.err:
            assert found.files == before.files, said
    if story.once and found.files == whole.after.files:
        return "done"
    again = workshop.run([*story.arguments, *story.again, *more.split()])
    if "there is nothing to resume" not in again.err:
        assert (again.code, again.err) == (0, ""), f"{said}: again {more}: {again}"
    last = workshop.left(story)
    assert last.files == whole.after.files, f"{said}: again {more}: {last.differs(whole.after, whole.after)}"
    assert set(last.debris) <= {*found.debris, *whole.after.debris}, f"{said}: again: {last.debris}"
    return "done" if ended.code == 0 else signal.Signals(number).name


def check_message(ended: Ended, number: int, said: str) -> None:
    """A command that heard a signal ends with its code and says so; nothing is said of a traceback.

    One that did not listen yet ends by the signal; a Python that has not come to the command yet prints its own words.
    """
    if number == signal.SIGINT and ended.err.endswith("KeyboardInterrupt\n") and "tools/main.py" not in ended.err:
        return
    assert ended.code in (0, 128 + number) or (ended.code, ended.err) == (-number, ""), said
    lines = ended.err.splitlines()
    assert all(line.startswith("penstock: ") for line in lines), said
    assert bool(lines) == (ended.code > 0), said
    assert ended.out == "", said


@pytest.mark.parametrize("story", STORIES if ALL else [s for s in STORIES if s.name in SAMPLE], ids=lambda s: s.name)
def test_killed_behind_every_call(workshop: Workshop, story: Story) -> None:
    whole = undisturbed(workshop, story)
    numbers = range(1, whole.calls + 1)
    faults = [Fault(n, -number) for n in numbers for number in (signal.SIGKILL, SIGNALS[1 + n % 2])]
    most = MOST if ALL else 3
    if len(faults) > most:
        faults = random.Random(story.name).sample(faults, most)
    tally: Counter[str] = Counter()
    failures = []
    for fault in faults:
        try:
            tally[killed(workshop, story, whole, fault)] += 1
        except AssertionError as failure:
            failures.append(str(failure))
            print("failed:", failure)
    print(f"{story.name}: {whole.calls} calls, {len(faults)} kills: {dict(tally)}")
    assert not failures, "\n".join([f"{len(failures)} failures", *failures])


@pytest.mark.parametrize("alone", [False, True], ids=["forked", "process"])
def test_killed_at_random_times(workshop: Workshop, alone: bool) -> None:
    """Each round a story, a signal and a moment; once more it may run with other options that change no answer."""
    chance = random.Random(29)
    known: dict[str, Undisturbed] = {}
    lasts: dict[str, float] = {}
    tally: Counter[tuple[str, str]] = Counter()
    failures = []
    rounds = (FORKED, PROCESSES)[alone]
    for _ in range(rounds):
        story = chance.choice(STORIES if ALL else [s for s in STORIES if s.name in SAMPLE])
        if story.name not in known:
            known[story.name] = undisturbed(workshop, story)
            lasts[story.name] = known[story.name].seconds + alone * START_SECONDS
        fault = Fault(0, -chance.choice(SIGNALS), seconds=chance.uniform(0, lasts[story.name]))
        more = chance.choice(("", *story.otherwise))
        try:
            how = killed(workshop, story, known[story.name], fault, more, alone=alone)
        except AssertionError as failure:
            failures.append(str(failure))
            print("failed:", failure)
            continue
        lasts[story.name] *= 0.8 if how == "done" else 1.05  # the machine may be busier, or less, later
        tally[story.name, how] += 1
    print(f"{rounds} kills: {dict(tally)}")
    assert not failures, "\n".join([f"{len(failures)} failures", *failures])


def test_a_torn_file_is_seen(workshop: Workshop) -> None:
    """The look at a folder fails where a file is cut, and where one is there that no command names."""
    story = STORIES[0]
    workshop.place.restore()
    for name in ("g.h5", "old.jsonl", "old-run/run.json"):
        workshop.place.restore()
        path = workshop.place.folder / name
        path.write_bytes(path.read_bytes()[:-3])
        with pytest.raises(AssertionError, match=path.name):
            workshop.left(story)
    workshop.place.restore()
    (workshop.place.folder / "new.csv").write_text("1,2\n")
    (workshop.place.folder / ".g.h5.append").touch()
    found = workshop.left(story)
    assert "new.csv" in found.differs(workshop.before, workshop.before)
    assert found.debris == (".g.h5.append",)
    assert NO_FAULT.number == 0
