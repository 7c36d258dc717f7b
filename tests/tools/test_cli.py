"""The command line keeps its promises: exit codes, no tracebacks, no debris, quick help."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import numpy as np
import pytest
from penstock.storage.base.errors import InputError, RunError
from penstock.tools import cli as front
from penstock.tools.base import signals
from penstock.tools.base.output import Console
from penstock.tools.commands import doctor

PENSTOCK = [sys.executable, "-m", "penstock.tools.cli"]


def every_command() -> dict[str, click.Command]:
    found: dict[str, click.Command] = {}

    def visit(name: str, command: click.Command) -> None:
        found[name] = command
        if isinstance(command, click.Group):
            context = click.Context(command)
            for inner in command.list_commands(context):
                below = command.get_command(context, inner)
                assert below is not None
                visit(f"{name} {inner}", below)

    visit("penstock", front.cli)
    return found


COMMANDS = every_command()


@pytest.mark.parametrize("name", ["pipe2", "start"])
def test_without_descriptors_or_threads_signals_are_heard_all_the_same(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*arguments: object) -> None:
        raise OSError(24, "Too many open files") if name == "pipe2" else RunError("no thread")

    monkeypatch.setattr(os if name == "pipe2" else signals, name, refused)
    heard = []
    with signals.deferring_signals(lambda: heard.append(1), lambda: "stopping"):
        os.kill(os.getpid(), signal.SIGTERM)
    assert heard == [1]


@pytest.fixture
def hearing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Signals are heard as by a command, until the test ends."""
    before = {number: signal.getsignal(number) for number in (*signals.HEARD, signal.SIGALRM)}
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    signals.hear()
    yield
    signals.deafen()
    for number, handler in before.items():
        signal.signal(number, handler)


def stop_now() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


class Finalized:
    def __del__(self) -> None:
        stop_now()


class Lock:
    taken = False

    def __enter__(self) -> None:
        self.taken = True
        os.kill(os.getpid(), signal.SIGTERM)

    def __exit__(self, *exception: object) -> None:
        self.taken = False


def test_a_signal_in_a_finalizer_is_not_lost(hearing: None) -> None:
    def work() -> None:
        Finalized()
        time.sleep(10)

    with pytest.raises(signals.Stopped):
        work()


def test_a_signal_while_a_lock_is_taken_comes_once_it_can_be_released(hearing: None) -> None:
    lock = Lock()

    def work() -> None:
        with lock:
            time.sleep(10)

    with pytest.raises(signals.Stopped):
        work()
    assert not lock.taken


def test_an_error_that_a_library_made_of_a_signal_is_that_signal(
    hearing: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object) -> None:
        try:
            stop_now()
        except signals.Stopped as stop:
            raise ValueError("a callback failed") from stop

    monkeypatch.setattr(front.cli, "invoke", broken)
    with pytest.raises(signals.Stopped):
        front.run_command(["info", "g.h5"])


@pytest.mark.parametrize("where", ["__enter__", "__exit__"])
def test_a_signal_before_or_behind_all_else_is_one_message(
    where: str, hearing: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @contextmanager
    def listening() -> Iterator[None]:
        if where == "__enter__":
            stop_now()
        yield
        stop_now()

    monkeypatch.setattr(front, "listening", listening)
    monkeypatch.setattr(front, "in_place", list)  # other tests wrote files
    with pytest.raises(SystemExit) as left:
        front.main(["--version"])
    assert left.value.code == 143
    assert capsys.readouterr().err == "penstock: stopped by SIGTERM; nothing was left behind\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_with_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert front.run_command([*name.split()[1:], "--help"]) == 0
    shown = capsys.readouterr().out
    assert "Examples:" in shown
    assert re.search(rf"^ +(\S+ .*\| )?{name}\b.*", shown, re.MULTILINE)
    for option in COMMANDS[name].params:
        if isinstance(option, click.Option):
            assert option.help, f"{name} {option.opts}"


@pytest.mark.parametrize("name", [name for name, command in COMMANDS.items() if not isinstance(command, click.Group)])
def test_every_command_speaks_to_machines_or_not_at_all(name: str) -> None:
    options = {option for given in COMMANDS[name].params for option in given.opts}
    assert {"--json", "--quiet"} <= options


def test_the_listed_help_is_that_of_the_commands() -> None:
    context = click.Context(front.cli)
    for name, text in front.COMMANDS.items():
        command = front.cli.get_command(context, name)
        assert command is not None
        assert command.short_help == text


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["convert"],
        ["convert", "only-one.h5"],
        ["generate", "rmat", "--scale", "3"],
        ["generate", "rmat", "--scale", "x", "--output", "x.txt"],
        ["generate", "rmat", "--scale", "99", "--output", "x.txt"],
        ["generate", "rmat", "--scale", "3", "--output", "missing/x.txt"],
        ["generate", "rmat", "--scale", "3", "--weights", "9..1", "--output", "x.txt"],
        ["generate", "rmat", "--scale", "3", "--host-memory", "lots", "--output", "x.txt"],
        ["generate", "rmat", "--scale", "3", "--order", "hubs", "--output", "x.txt"],
        ["info", "absent.h5"],
        ["convert", "absent.txt", "x.h5"],
    ],
)
def test_bad_usage_and_bad_input_exit_with_2(
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert front.run_command(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.strip()
    assert "Traceback" not in shown.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError("bad x; do y"), 2),
        (RunError("disk failed; do z"), 1),
        (MemoryError("9 GiB"), 1),
        (PermissionError(13, "Permission denied", "file"), 1),
    ],
)
def test_errors_become_one_line_and_a_code(
    error: Exception, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command()
    def failing() -> None:
        raise error

    monkeypatch.setattr(front.LazyGroup, "get_command", lambda self, ctx, name: failing)
    assert front.run_command(["info"]) == code
    shown = capsys.readouterr().err
    assert shown.startswith("penstock: ")
    assert shown.count("\n") == 1
    assert str(error.args[-1]) in shown


@pytest.mark.parametrize(
    ("arguments", "kind", "code", "message"),
    [
        (["run", "bfs"], "usage", 2, "Missing argument 'GRAPH.h5': on which graph is bfs to run?"),
        (["info", "none.h5"], "input", 2, "none.h5 does not exist"),
        (["info", "--no-such"], "usage", 2, "No such option"),
    ],
)
def test_errors_are_json_where_it_is_asked_for(
    arguments: list[str], kind: str, code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert front.run_command([*arguments, "--json"]) == code
    shown = capsys.readouterr()
    error = json.loads(shown.out)["error"]
    assert (error["kind"], error["exit_code"]) == (kind, code)
    assert error["message"].startswith(message)
    assert message in shown.err
    assert front.run_command(arguments) == code
    assert capsys.readouterr().out == ""


def test_an_error_after_the_answer_leaves_one_object(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of `verify`, which lists what is damaged and then fails."""

    @click.command()
    @click.option("--json", is_flag=True)
    def failing(json: bool) -> None:
        Console(as_json=json).answer({"whole": False}, [])
        raise RunError("it is damaged")

    monkeypatch.setattr(front.LazyGroup, "get_command", lambda self, ctx, name: failing)
    assert front.run_command(["info", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {"whole": False}


def test_a_bug_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def failing() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(front.LazyGroup, "get_command", lambda self, ctx, name: failing)
    with pytest.raises(ZeroDivisionError):
        front.run_command(["info"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_nothing_behind(number: signal.Signals, tmp_path: Path) -> None:
    arguments = ["generate", "rmat", "--scale", "30", "--output", str(tmp_path / "x.txt")]
    ours = signal.signal(number, signal.SIG_DFL)  # a child inherits what is ignored, as SIGHUP is under nohup
    try:
        process = subprocess.Popen([*PENSTOCK, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    finally:
        signal.signal(number, ours)
    with process:
        deadline = time.monotonic() + 60
        while not any(path.stat().st_size for path in tmp_path.iterdir()):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(number)
        shown, complaint = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert list(tmp_path.iterdir()) == []
    assert shown == ""
    *told, last = complaint.splitlines()
    assert last == f"penstock: stopped by {number.name}; nothing was left behind"
    assert all(line.endswith(" ends now") for line in told), "said where it takes longer"


def test_a_reader_that_went_away_is_no_error_to_shout_about() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*PENSTOCK, "--help"], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert done.returncode == 141
    assert done.stderr == b""


def test_help_and_version_import_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from penstock.tools.cli import run_command\n"
        "assert run_command(['--help']) == 0 and run_command(['--version']) == 0\n"
        "heavy = {'numba', 'h5py', 'pyarrow', 'rich', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_a_numpy_that_numba_does_not_fit_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """NumPy 2.5 has no `row_stack`, which Numba 0.68.0 names while it is imported; elsewhere it is a bug of ours."""
    command = doctor.command
    for module, wanted in (("numba.np.arrayobj", True), ("numba_cuda.np", True), ("penstock.storage", False)):
        code: dict[str, object] = {"__name__": module, "np": np}
        exec("def asked(**options): np.row_stack_of_old", code)
        monkeypatch.setattr(command, "callback", code["asked"])
        if wanted:
            assert front.run_command(["doctor"]) == 1
            told = capsys.readouterr().err
            assert told.count("\n") == 1
            assert (
                f"and NumPy {np.__version__} do not fit (module 'numpy' has no attribute 'row_stack_of_old'): " in told
            )
        else:
            with pytest.raises(AttributeError):
                front.run_command(["doctor"])
