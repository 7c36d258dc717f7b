"""The command `penstock`: its commands, completion, exit codes, and how a run ends at a signal.

Exit codes: 0 done, 1 a run failed, 2 bad input or usage, 130 Ctrl-C, 143 SIGTERM, 129 SIGHUP, 141 the reader of the
output is gone. A signal becomes an exception in the main thread, so that every `with` block unwinds and removes what it
made. Each command's file is imported only when it is asked for.
"""

from __future__ import annotations

import errno
import importlib
import io
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

import click
from penstock.storage.base.atomic import in_place, sweep_debris
from penstock.storage.base.errors import KEPT, InputError, PenstockError, on_command_line, printable, printable_message
from penstock.tools.base import joined_ranks, process, tracebacks
from penstock.tools.base.log import write_line
from penstock.tools.base.output import NAME, begin_answer, write_error
from penstock.tools.base.signals import NOTHING, Stopped, deafen, forget_raised, hear, listening, raised

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMPLETE = "_PENSTOCK_COMPLETE"
"""The variable by which a shell asks for completions; Click's scripts set it."""
COMMANDS = {
    "convert": "Turn raw edge lists into a graph file.",
    "append": "Add edges to a graph file.",
    "remove": "Remove edges from a graph file.",
    "compact": "Write a changed graph file in one again.",
    "info": "Say what a graph file holds.",
    "extract": "Write a part of a graph as a graph file of its own.",
    "export": "Write the edges of a graph file as a table.",
    "verify": "Read a whole graph file and check everything in it.",
    "run": "Run a graph algorithm, or a job file.",
    "walk": "Write random walks over a graph.",
    "similarity": "Compare vertices by the neighbors that they share.",
    "plan": "Predict memory, time and price of a run on many ranks.",
    "report": "Say what a run did, and what limited it.",
    "generate": "Make a graph from a seed.",
    "calibrate": "Measure this machine's rates, for the cost model.",
    "compile": "Compile kernels ahead, into a folder that travels.",
    "demo": "Convert and run a real and a generated graph, in seconds.",
    "doctor": "Say what this machine has, and what is missing.",
    "bench": "Measure this machine, and Penstock against others.",
}
IN_FILE = {"remove": "append", "compact": "append"}
"""Commands that share the file of another, by name."""
IMPORTING = ("run",)
"""Commands that import most of what they need later, and call `process.resume_search` themselves."""


class LazyGroup(click.Group):
    """Commands by name, each imported from the file of that name when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order a newcomer meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command; None if there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"penstock.tools.commands.{IN_FILE.get(cmd_name, cmd_name)}")
        if cmd_name not in IMPORTING:
            process.resume_search()
        command: click.Command = getattr(module, cmd_name if cmd_name in IN_FILE else "command")
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the commands without importing them; options as for any command."""
        from click.shell_completion import CompletionItem

        found = [CompletionItem(name, help=does) for name, does in COMMANDS.items() if name.startswith(incomplete)]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="penstock")
def cli() -> None:
    """Graph algorithms on graphs larger than memory, from raw edge lists to answers.

    \b
    Examples:
      penstock demo
      penstock convert web-Google.txt.gz web.h5
      penstock run pagerank web.h5 --top 10

    Compiled kernels and measured rates are kept in ~/.cache/penstock; $XDG_CACHE_HOME, or for kernels $NUMBA_CACHE_DIR,
    names another folder. Kernels are read only where nobody but you and root can write. A folder for all users is made
    by root, and others only read it: chmod -R go=rX.
    """
    from penstock.storage.companion.process import install

    install()


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line, or complete one for a shell, and exit with its code."""
    instruction = os.environ.get(COMPLETE)
    if instruction:
        sys.exit(complete(instruction))
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        hear()
        with listening():
            code = _finish(given)
    except Stopped as stop:  # before or behind all else
        deafen()
        code = _stopped(stop, given)
    except BaseException:
        joined_ranks.end_all_crashed()
        raise
    finally:
        deafen()
        sweep_debris()
    joined_ranks.end_all(code)
    sys.exit(code)


def complete(instruction: str) -> int:
    """Print the completion script of a shell (`bash_source`) or the completions of a line; return the exit code."""
    from click.shell_completion import shell_complete

    return shell_complete(cli, {}, "penstock", COMPLETE, instruction)


def _finish(arguments: list[str]) -> int:
    """Run a command; return its exit code, also where a signal or a closed pipe ended it."""
    try:
        return _flushed(run_command(arguments, own_process=True))
    except Stopped as stop:
        return _stopped(stop, arguments)
    except BrokenPipeError:
        _abandon_output()
        return 128 + signal.SIGPIPE


def _stopped(stop: Stopped, arguments: list[str]) -> int:
    """Say what a signal ended, and what is left; return the exit code."""
    hint = f": {stop.hint}" if stop.hint else ""
    whole = in_place() if stop.left == NOTHING else []
    left = f"whole and in place: {', '.join(map(str, whole))}" if whole else stop.left
    message = f"stopped by {signal.Signals(stop.number).name}; {left}{hint}"
    _print_error(message)
    return _told(arguments, message, "stopped", 128 + stop.number)


def _flushed(code: int) -> int:
    """Write what is buffered, or drop what cannot be written; return the exit code. Raises BrokenPipeError."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _abandon_output()
        if code == 0:
            _print_error(str(_system_error(error)), common=False)
        return code or 1
    return code


def run_command(arguments: list[str], *, own_process: bool = False) -> int:
    """Run one command; errors a user can meet become a message on stderr and an exit code.

    own_process: whether this process was started for it, so that its wall time begins with the process. With ``--json``
    the message is on stdout, too, as JSON.
    """
    begin_answer()
    forget_raised()
    try:
        # on_command_line: messages name options as typed (--host-memory), not as Python's arguments
        with on_command_line(), cli.make_context("penstock", arguments, obj=own_process) as context:
            cli.invoke(context)
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        said = error.format_message()
        if not joined_ranks.is_silent():
            lines = shown.getvalue().removesuffix("\n").replace(said, printable(said))
            write_line(printable(joined_ranks.speaker(lines), KEPT))
        return _told(arguments, said, "usage", 2)
    except PenstockError as error:
        wrong = isinstance(error, InputError)
        _print_error(str(error), common=wrong)
        return _told(arguments, str(error), "input" if wrong else "run", 2 if wrong else 1)
    except BrokenPipeError:
        raise
    except Exception as error:
        if raised():  # a library made another exception of it
            raise Stopped(raised()) from error
        message = tracebacks.explain(error) or _system_error(error) or tracebacks.blame(error)
        if message is None:
            raise
        wrong = isinstance(error, OSError) and error.errno in (errno.ENAMETOOLONG, errno.ELOOP)
        _print_error(message, common=False)
        return _told(arguments, message, "input" if wrong else "run", 2 if wrong else 1)
    return 0


def _told(arguments: list[str], message: str, kind: str, code: int) -> int:
    """Tell machines of an error, where --json was given and stdout is no table; return its exit code."""
    if "--json" in arguments and NAME.name not in arguments and joined_ranks.speaks():
        write_error(message, kind, code)
    return code


def _system_error(error: Exception) -> str | None:
    """The message of an OSError, with its file, as far as it is known; None for another exception."""
    if not isinstance(error, OSError):
        return None
    place = f"{error.filename}: " if error.filename else ""
    if not place and error.errno in (errno.EBADF, errno.ENOSPC, errno.EIO):
        place = "standard output: "  # files are named
    if not place and error.errno == errno.ENOENT and not _has_working_folder():
        return "the working folder was removed; change to one that exists"
    return f"{place}{error.strerror or error}"


def _has_working_folder() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def _print_error(message: str, *, common: bool = True) -> None:
    """Print a message on stderr, with unprintable characters escaped; common: as `joined_ranks.speaker` has it."""
    if not joined_ranks.is_silent():
        write_line(f"penstock: {printable_message(joined_ranks.speaker(message, common=common))}")


def _abandon_output() -> None:
    """Point stdout at nothing, so that Python's last flush prints no error."""
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), sys.stdout.fileno())


if __name__ == "__main__":
    main()
