"""The form of a job file: TOML whose keys are the options of `penstock run`, without their dashes.

    graph = "web.h5"                 # and any option that holds for the whole job
    host-memory = "1GiB"
    output = "features.parquet"      # the answers of all programs as one table

    [[programs]]                     # one such table for each program, in the order in which they run
    name = "my_program.py:Mine"      # and the options of a program
    max-iter = 20
    set = { depth = 3 }              # what --set gives, by name

Relative paths are relative to the file, those of outputs to the run directory where there is one. Unknown keys, values
of another type and missing files are refused with the file, the line and the nearest name.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click
from penstock.storage.base.errors import InputError, brief
from penstock.storage.base.places import Address, beside
from penstock.tools.base.options import FILE, SIZE, VERTEX, Option
from penstock.tools.base.output import NAME
from penstock.tools.run.answer_options import tabling, wanting
from penstock.tools.run.job import JOB_GROUPS, Job, JobStep
from penstock.tools.run.run_options import parameters

ENDING = ".toml"
SPOKEN = ("force", "dry-run", "ranks", "resume")
"""Options that are said on the command line only."""
OUTPUTS = ("output", "metrics", "trace", "checkpoint")
"""What a run writes to: relative to the run directory where there is one, else to the file."""
HEADER = "A job of penstock: `penstock run job.toml --run-dir ANOTHER` repeats it."
STEP_GROUPS = (parameters, wanting)
WHOLE_GROUPS = (*JOB_GROUPS, tabling)
LONGEST_JOB = 1 << 20
"""Characters of the longest job file."""
_HEADER = re.compile(r"\s*(\[\[?)([^\]]+)\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*("[^"]*"|'[^']*'|[\w.-]+)\s*=""")
_AT = re.compile(r"\s*\(at line (\d+), column \d+\)")

Keys = tuple[str | int, ...]


@dataclass(frozen=True)
class JobFile:
    """What a job file says: options by the names of their parameters, steps; graph None where it names none."""

    path: Path
    graph: Path | None
    options: dict[str, Any]
    steps: tuple[JobStep, ...]

    def beside(self) -> JobFile:
        """The same with its relative outputs beside the file: those of a job without a run directory."""
        place = self.path.parent
        options = {str(option.name): key_of(option) for group in WHOLE_GROUPS for option in group.options}
        own = {name: v for name, v in self.options.items() if options[name] in OUTPUTS and v != Path(NAME)}
        placed = self.options | {name: beside(place, v) for name, v in own.items()}
        steps = [replace(step, wanted=step.wanted.beside(place)) for step in self.steps]
        return replace(self, options=placed, steps=tuple(steps))


def key_of(option: click.Option) -> str:
    """The key under which a job file knows an option: its longest name without the dashes."""
    return max(option.opts, key=len).lstrip("-")


def read(path: Path) -> JobFile:
    """Read a job file. Raises InputError for anything that it cannot be."""
    import tomllib

    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(LONGEST_JOB + 1)
        if len(text) > LONGEST_JOB:
            raise InputError(f"{path} has more than {LONGEST_JOB} characters, so it is no job file")
        content = tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text ({error.reason} at byte {error.start})") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        at = _AT.search(str(error))
        line = f":{at[1]}" if at else ""
        raise InputError(f"{path}{line}: {brief(_AT.sub('', str(error)))}; job files are TOML (toml.io)") from None
    except (ValueError, RecursionError):
        raise InputError(f"{path} has a number of thousands of digits, or brackets in brackets without end") from None
    return _Reading(path, lines_of(text)).job(content)


def lines_of(text: str) -> dict[Keys, int]:
    """The line on which each key, and each table, of a TOML text stands; an array of tables counts from 0."""
    found: dict[Keys, int] = {}
    counts: dict[str, int] = {}
    prefix: Keys = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            names = [name.strip().strip("\"'") for name in header[2].split(".")]
            if header[1] == "[[":
                counts[names[0]] = counts.get(names[0], -1) + 1
            at: Keys = (counts[names[0]],) if names[0] in counts else ()
            prefix = (names[0], *at, *names[1:])
            found.setdefault(prefix, number)
        elif key := _KEY.match(line):
            found.setdefault((*prefix, key[1].strip("\"'")), number)
    return found


@dataclass(frozen=True)
class _Reading:
    """A file under its name, and where its keys stand."""

    path: Path
    lines: Mapping[Keys, int] = field(default_factory=dict)

    def error(self, keys: Keys, message: str) -> InputError:
        """A refusal that says where."""
        at = [self.lines[keys[:count]] for count in range(len(keys), 0, -1) if keys[:count] in self.lines]
        line = f":{at[0]}" if at else ""
        return InputError(f"{self.path}{line}: {message}")

    def job(self, content: dict[str, Any]) -> JobFile:
        """What the whole file says."""
        options = {key_of(option): option for group in WHOLE_GROUPS for option in group.options}
        known = [key for key in options if key not in SPOKEN]
        for key in content:
            if key in SPOKEN:
                raise self.error((key,), f"{key} is said on the command line only: --{key}")
            if key not in (*known, "graph", "programs"):
                raise self.error((key,), self._unknown(key, ["graph", "programs", *known]))
        given = {}
        for key in content.keys() - {"graph", "programs"}:
            given[str(options[key].name)] = self.value(options[key], content[key], (key,))
        graph = content.get("graph")
        if not (graph is None or isinstance(graph, str)):
            raise self.error(("graph",), f"graph is {_shown(graph)}; it must be the path of a graph file, a string")
        place = None if graph is None else self.existing(graph, ("graph",))
        return JobFile(self.path, place, given, self._steps(content.get("programs")))

    def _unknown(self, key: str, known: Sequence[str]) -> str:
        """What to say of a key that there is not."""
        of_program = [key_of(option) for group in STEP_GROUPS for option in group.options]
        if key in of_program:
            return f"{key} belongs to a program: write it below [[programs]]"
        return f"there is no {brief(key)!r} here{nearest(key, known)}"

    def _steps(self, tables: Any) -> tuple[JobStep, ...]:
        if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
            raise self.error(("programs",), "a job needs one table [[programs]] for each program, with its name")
        return tuple(self._step(table, ("programs", number)) for number, table in enumerate(tables))

    def _step(self, table: dict[str, Any], at: Keys) -> JobStep:
        name = table.get("name")
        if not isinstance(name, str):
            raise self.error(at, f'name is {_shown(name)}; it must be that of a program, such as "bfs"')
        options = {key_of(option): option for group in STEP_GROUPS for option in group.options}
        for key in table:
            if key not in (*options, "name"):
                raise self.error(
                    (*at, key), f"there is no {brief(key)!r} for a program{nearest(key, ['name', *options])}"
                )
        given = dict(click.Command("run", params=list(options.values())).make_context("run", []).params)  # defaults
        for key in options.keys() & table.keys():
            read = self._settings if key == "set" else self.value
            given[str(options[key].name)] = read(options[key], table[key], (*at, key))
        made = [group.of(given) for group in STEP_GROUPS]
        return JobStep(_moved(name, lambda file: self.existing(file, (*at, "name"))), *made)

    def _settings(self, option: Option, value: Any, keys: Keys) -> dict[str, Any] | tuple[str, ...]:
        if isinstance(value, dict):
            return value
        if isinstance(value, list) and all(isinstance(text, str) for text in value):
            return tuple(value)
        raise self.error(keys, f'set is {_shown(value)}; it must be a table of parameters, or a list of "NAME=VALUE"')

    def existing(self, text: str, keys: Keys) -> Path:
        """The path of a file that there must be."""
        found = self.path.parent / Path(text).expanduser()
        if not found.is_file():
            raise self.error(keys, f"{keys[-1]}: there is no file {brief(str(found))}")
        return found

    def value(self, option: Option, value: Any, keys: Keys) -> Any:
        """A value for an option, as the command line would have it. Raises InputError for one of another type."""
        if option.multiple:
            several = value if isinstance(value, list) else [value]
            return tuple(self._one(option, item, keys) for item in several)
        return self._one(option, value, keys)

    def _one(self, option: Option, value: Any, keys: Keys) -> Any:
        kinds, wanted = _kinds(option)
        if type(value) not in kinds:
            raise self.error(keys, f"{keys[-1]} is {_shown(value)}; it must be {wanted}")
        if option.type is FILE:
            return self.existing(value, keys)
        if option.is_flag:
            return value
        try:
            text = str(value) if option.type in (SIZE, VERTEX) else value
            found = option.type.convert(text, option, None)
            if not isinstance(option.type, click.Path):
                return found
            place = found if isinstance(found, Address) else Path(value).expanduser()
            return place if key_of(option) in OUTPUTS else beside(self.path.parent, place)
        except click.BadParameter as error:
            raise self.error(keys, f"{keys[-1]}: {error.message}") from None


def nearest(name: str, known: Iterable[str]) -> str:
    """A suggestion: `; did you mean 'host-memory'?`, or the names there are."""
    known = sorted(known)
    close = difflib.get_close_matches(name.replace("_", "-").lower(), known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(known)}"


_KINDS: tuple[tuple[type, tuple[type, ...], str], ...] = (
    (click.types.IntParamType, (int,), "a whole number"),
    (click.types.FloatParamType, (int, float), "a number"),
    (click.Path, (str,), "a path, a string"),
    (click.ParamType, (str,), "a string"),
)


def _kinds(option: Option) -> tuple[tuple[type, ...], str]:
    """Types in which a job file may give an option's value, and their names."""
    kind = option.type
    if option.is_flag:
        return (bool,), "true or false"
    if kind is SIZE:
        return (int, str), 'a size such as "800MiB", or a number of bytes'
    if kind is VERTEX:
        return (int, str), "the id of a vertex, or a list of such"
    if isinstance(kind, click.Choice):
        return (str,), f"one of {', '.join(kind.choices)}"
    return next((types, words) for known, types, words in _KINDS if isinstance(kind, known))


def _shown(value: Any) -> str:
    return "missing" if value is None else f"{brief(repr(value))} ({type(value).__name__})"


def text_of(job: Job, values: Mapping[str, Any]) -> str:
    """The text of a job file in the job's run directory; values: of its options, by their names. See `Job.recorded`."""
    options = [option for group in WHOLE_GROUPS for option in group.options if key_of(option) not in SPOKEN]
    told = {key_of(option): values.get(str(option.name)) for option in options}
    import tomlkit

    written = tomlkit.document()
    written.add(tomlkit.comment(HEADER))
    written.add(tomlkit.nl())
    written.update({"graph": str(job.recorded(job.graph)), **_given(told)})
    programs = tomlkit.aot()
    for step in job.steps:
        program = _moved(step.program, lambda file: job.recorded(Path(file)))
        programs.append(tomlkit.item({"name": program, **_of_step(job, step)}))
    written.add("programs", programs)
    return tomlkit.dumps(written)


def _moved(program: str, place: Callable[[str], Path]) -> str:
    """The name of a program; if it is in a file of the user's, with that file where `place` has it."""
    before, colon, class_name = program.rpartition(":")
    file = before if colon else program
    return f"{place(file)}{colon}{class_name}" if file.endswith(".py") else program


def _of_step(job: Job, step: JobStep) -> dict[str, Any]:
    """A step's options by key; parameters that none is for go below `set`, in TOML or as NAME=VALUE texts."""
    known = {str(option.name): key_of(option) for option in parameters.options}
    given = {name: job.recorded(v) if isinstance(v, Path) else v for name, v in step.parameters.items()}
    named = {known[name]: value for name, value in given.items() if name in known}
    more: Any = {name: value for name, value in given.items() if name not in known}
    if not all(_in_toml(value) for value in more.values()):
        literals = {  # infinity has no literal but a number too large
            name: repr(value).replace("inf", "1e999") if isinstance(value, float) else repr(value)
            for name, value in more.items()
        }
        more = [f"{name}={literal}" for name, literal in literals.items()]
    values = {**vars(step.wanted), **step.wanted.style}
    wanted = {key_of(option): values.get(str(option.name)) for option in wanting.options}
    refused = {key_of(one): False for one in wanting.options if one.default is None and wanted[key_of(one)] is False}
    return {key: _plain(value) for key, value in named.items()} | _given(wanted | {"set": more}) | refused


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options that say something: flags that are not set, and lists of nothing, do not."""
    return {
        key: _plain(value)
        for key, value in options.items()
        if (bool(value) if isinstance(value, bool | list | tuple | dict) else value is not None)
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Path | Address):
        return str(value)
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _in_toml(value: Any) -> bool:
    """Whether TOML has such a value, so that it comes back the same."""
    if isinstance(value, list):
        return all(_in_toml(item) for item in value)
    return isinstance(value, bool | float | str) or (isinstance(value, int) and abs(value) < 1 << 63)
