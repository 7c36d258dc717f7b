"""What a command says on stdout: lines for people, one JSON object for machines, a table as bytes, or nothing."""

from __future__ import annotations

import importlib
import io
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from threading import Event
from typing import Any

import click
from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import InputError, printable
from penstock.tools.base.log import write_line


@dataclass(frozen=True)
class Console:
    """How a command writes: as ``--json`` or ``--quiet`` ask, or lines. to_stderr: on stderr, not on stdout.

    log_every: seconds between two lines of progress in a log, 0 for none, None where nobody has said.
    """

    as_json: bool = False
    quiet: bool = False
    to_stderr: bool = False
    log_every: float | None = None

    @property
    def silent(self) -> bool:
        """Whether nothing may be shown underway either."""
        return self.quiet or self.as_json

    def answer(self, facts: Mapping[str, Any], lines: Sequence[str]) -> None:
        """Write the result once: ``facts`` as JSON, or ``lines`` unless quiet."""
        _answered.set()
        if self.as_json:
            click.echo(json.dumps(plain(facts), allow_nan=False))
        elif not self.quiet:
            for line in lines:
                self._write(line)

    def say(self, line: str) -> None:
        """Write a line for people, now."""
        if not self.silent:
            self._write(line)

    def note(self, line: str) -> None:
        """Write a line on stderr: worth knowing, not part of the answer."""
        if not self.quiet:
            write_line(printable(line))

    def _write(self, line: str) -> None:
        (write_line if self.to_stderr else click.echo)(printable(line))


def beside_a_table(console: Console) -> Console:
    """The same with its lines on stderr, since a table goes to stdout. Raises InputError for JSON, which goes there."""
    if console.as_json:
        raise InputError("--json and --output - both want standard output; write the answer to a file")
    return replace(console, to_stderr=True)


_answered = Event()
"""Whether the command that runs has written its result."""


def write_error(message: str, kind: str, code: int) -> None:
    """Write an error as the one JSON object on stdout, unless the command's result is there already."""
    if not _answered.is_set():
        click.echo(json.dumps({"error": {"message": message, "kind": kind, "exit_code": code}}))


def begin_answer() -> None:
    """Note that a command begins, which has written nothing."""
    _answered.clear()


def answer_of(words: Sequence[str]) -> dict[str, Any]:
    """Run a command of this package in this process; return its JSON."""
    name, *arguments = words
    command: click.Command = importlib.import_module(f"penstock.tools.commands.{name}").command
    said = io.StringIO()
    with redirect_stdout(said), command.make_context(name, [*arguments, "--json", "--quiet"]) as context:
        command.invoke(context)
    begin_answer()
    facts: dict[str, Any] = json.loads(said.getvalue())
    return facts


def plain(value: Any) -> Any:
    """Turn NumPy values, paths, tuples and infinities into what JSON has (null for no number).

    Bytes of names that are not UTF-8 are escaped, which JSON cannot hold otherwise.
    """
    if value is None or type(value) in (int, bool):  # most values, and the test for a Mapping is slow
        return value
    if type(value) is float:
        return value if value - value == 0 else None
    np = sys.modules.get("numpy")  # without it no value is NumPy's
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if np is not None and isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if np is not None and isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, str | PurePath) or (np is not None and isinstance(value, np.dtype)):
        return str(value).encode("utf-8", "backslashreplace").decode("utf-8")
    return value


def pairs(rows: Sequence[tuple[str, object]], indent: str = "") -> list[str]:
    """Lines of two columns, names and values; a row whose value is None is left out."""
    shown = [(printable(name), printable(str(value))) for name, value in rows if value is not None]
    width = max((len(name) for name, _ in shown), default=0)
    return [f"{indent}{name:<{width}}  {value}" for name, value in shown]


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Lines of a table: the first column to the left, the others to the right."""
    cells = [[printable(str(cell)) for cell in row] for row in (heads, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
    lines = []
    for row in cells:
        first = f"{row[0]:<{widths[0]}}"
        rest = [f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join([first, *rest]).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    return lines


def counted(number: int, noun: str) -> str:
    """Write a number of things: ``1 iteration``, ``12,000 iterations``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def short(value: object, most: int) -> str:
    """Write a value in at most so many characters; dots stand for what is left out."""
    text = printable(str(value))
    return text if len(text) <= most else text[: most - 3] + "..."


WITHOUT_RATE = ("seconds", "kernels")
"""Units of which a rate says nothing: kernels take very different times."""


def amounts(done: float, total: float | None, rate: float | None, unit: str) -> str:
    """Write ``1.0 GiB of 2.0 GiB, 300 MiB/s`` or ``1.5 of 67.1 M edges, 20.0 M/s``; of seconds only how many."""
    if unit == "seconds":
        return seconds(done)
    whole = "" if total is None else f" of {_amount(total, unit)}"
    speed = "" if rate is None or unit in WITHOUT_RATE else f", {_amount(rate, unit) if rate >= 1 else f'{rate:.2g}'}/s"
    noun = "" if unit == "bytes" else f" {unit}"
    return f"{_amount(done, unit)}{whole}{noun}{speed}"


def _amount(number: float, unit: str) -> str:
    return format_bytes(number) if unit == "bytes" else count(number)


def count(number: float) -> str:
    """Write a number of things: ``1.5 M``, ``42,000``."""
    return f"{number / 1e6:,.1f} M" if number >= 1e5 else f"{number:,.0f}"


def seconds(duration: float) -> str:
    """Write a duration with three digits: ``431 ms``, ``2.51 s``, ``3 min 20 s``."""
    if duration < 0.9995:
        return f"{duration * 1000:.3g} ms"
    if duration < 120:
        return f"{duration:.3g} s"
    minutes, rest = divmod(round(duration), 60)
    return f"{minutes} min {rest} s"


NAME = Path("-")
"""What stands for stdout among paths."""


class StandardOutput:
    """Standard output as a file for tables: what is written goes there at once, in order, and nothing else may."""

    closed = False

    def __init__(self) -> None:
        sys.stdout.flush()
        self._size = 0

    def write(self, data: Any) -> int:
        """Write all of the data; return its bytes."""
        view = memoryview(data).cast("B")
        sys.stdout.buffer.write(view)
        self._size += len(view)
        return len(view)

    def tell(self) -> int:
        """Bytes written so far."""
        return self._size

    def flush(self) -> None:
        """Hand over what is buffered."""
        sys.stdout.buffer.flush()


RANK_HEADS = ("rank", "host", "device", "computing", "exchanging", "tasks", "from disk", "over the link", "peak memory")


def rank_table(ranks: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Heads and rows; ranks: the facts of each (`RankReport.facts`), none of a run of one process.

    Computing is all that is not the exchange, in which a rank also waits for slower ones.
    """
    rows = [
        [
            str(facts["rank"]),
            facts["host"],
            facts["device"],
            seconds(max(0.0, facts["seconds"] - facts["exchange_seconds"])),
            seconds(facts["exchange_seconds"]),
            f"{facts['tasks']:,}",
            *(format_bytes(facts[name]) for name in ("bytes_disk", "bytes_link", "peak_memory_bytes")),
        ]
        for facts in ranks
    ]
    return (list(RANK_HEADS) if rows else []), rows
