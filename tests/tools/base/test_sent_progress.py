"""Progress that is sent over a pipe is drawn as it would have been; other lines come between."""

from __future__ import annotations

import io
from typing import Any

from penstock.tools.base.output import Console
from penstock.tools.base.progress import ProgressBars, progress
from penstock.tools.base.sent_progress import MARK, WANTED, ReceivedBars, SentBars
from penstock.tools.run.launch_ranks import Report
from support.clocks import MovedClock


class _Shown:
    """A display that notes what it is asked for."""

    def __init__(self) -> None:
        self.console, self.said, self.tasks = self, [], 0

    def add_task(self, name: str, **how: Any) -> str:
        self.tasks += 1
        self.said.append(("add", name, how["total"], how["unit"]))
        return f"task {self.tasks}"

    def update(self, task: str, *, completed: float, total: float | None, **named: str) -> None:
        self.said.append(("update", task, completed, total, *named.values()))

    def __getattr__(self, name: str) -> Any:
        return lambda *given, **how: self.said.append((name, *given))


def test_what_is_sent_is_drawn() -> None:
    shown, clock = _Shown(), MovedClock()
    received = ReceivedBars(lambda: shown)
    lines: list[bytes] = []
    show = ProgressBars(SentBars(lines.append, clock))
    show("reading", 1, 10, "bytes")
    show("reading", 2, 10, "bytes")  # too soon after the first
    clock.now += 1
    show("reading", 3, 10, "bytes")
    show("reading", 3, 10, "bytes", "part 2")  # soon after, and called otherwise
    show.write("a row")
    show("writing", 5, None, "edges")
    show.drop("writing")
    assert all(received.take(line) for line in lines)
    assert shown.said == [
        ("start",), ("add", "reading", 10, "bytes"), ("update", "task 1", 1, 10), ("update", "task 1", 3, 10),
        ("update", "task 1", 3, 10, "reading: part 2"),
        ("print", "a row"), ("stop_task", "task 1"), ("add", "writing", None, "edges"), ("update", "task 2", 5, None),
        ("remove_task", "task 2"),
    ]  # fmt: skip
    with received.aside():
        assert shown.said[-1] == ("stop",)
    assert shown.said[-1] == ("start",)
    received.end()
    received.end()
    assert shown.said[-2:] == [("start",), ("stop",)]


def test_what_comes_after_the_end_of_a_bar_has_no_effect() -> None:
    shown, lines = _Shown(), list[bytes]()
    received, sent = ReceivedBars(lambda: shown), SentBars(lines.append)
    number = sent.add_task("reading", total=10, unit="bytes")
    sent.remove_task(number)
    sent.update(number, completed=1, total=10)
    sent.remove_task(number)
    assert all(received.take(line) for line in lines)
    assert [said[0] for said in shown.said] == ["start", "add", "remove_task"]


def test_other_lines_and_broken_ones_are_text() -> None:
    received = ReceivedBars(_Shown)
    assert not received.take(b"words\n")
    assert not received.take(MARK + b'["add", 1, "cut short\n')
    with received.aside():
        pass  # without bars there is nothing to take off


def test_a_process_sends_where_another_one_shows(monkeypatch, capfdbinary) -> None:
    monkeypatch.setenv(WANTED, "1")
    with progress(Console()) as show:
        show("reading", 1, 2, "bytes")
    with progress(Console(quiet=True)) as show:
        show("reading", 1, 2, "bytes")
    sent = capfdbinary.readouterr().err.splitlines()
    assert [line[len(MARK) :].split(b",")[0] for line in sent] == [b'["add_task"', b'["update"', b'["end"']


def test_lines_of_ranks_come_between_the_bars() -> None:
    report, to, shown = Report(2), io.BytesIO(), _Shown()
    report.bars = ReceivedBars(lambda: shown)
    out = type("Out", (), {"buffer": to})
    begun = MARK + b'["add_task", [0, "reading"], {"total": null, "unit": "bytes"}]\n'
    ended = MARK + b'["end", [], {}]\n'
    report.pass_on(io.BytesIO(b"".join([begun, b"words\n", ended, b"more\n"])), out)
    assert to.getvalue() == b"words\nmore\n"
    assert [said[0] for said in shown.said] == ["start", "add", "stop", "start", "stop"]
