"""How a process that does a job compiles code, unless another process has taken it."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any

from penstock.storage.base.missing_code import Origin, when_missing
from penstock.storage.companion.claims import Claims
from penstock.storage.companion.process import request_for


class _LeftError(Exception):
    """Code is not compiled here, or not yet."""


class JobCompiler:
    """Compiles what is missing and has not been taken, from `begin` on; until then it only notes what that is."""

    def __init__(self, claims: Claims) -> None:
        self._claims = claims
        self._planned: set[str] | None = set()
        self._taken: str | None = None

    def begin(self) -> None:
        """Say what is missing of all that was asked for, and compile from now on."""
        if self._planned:
            self._claims.plan(self._planned)
        self._planned = None

    def compile(self, compile_: Callable[[], Any]) -> None:
        """Let a call compile a piece of code, and what that calls."""
        before = when_missing(self._take)
        try:
            with suppress(_LeftError):
                compile_()
        finally:
            when_missing(before)
            if self._taken is not None:
                self._claims.end(self._taken)
                self._taken = None

    def _take(self, name: str, entry: str, origin: Origin | None, signature: Any) -> bool:
        if self._taken is None:
            if self._planned is not None:
                self._planned.add(entry)
                raise _LeftError
            if not self._claims.take(entry):
                raise _LeftError
            self._taken = entry
        return False


def requests_of(calls: Iterable[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Requests of functions of ours (`storage/base/jit.py`), each with arguments of the types that it will have."""
    from numba import typeof

    return [request_for(function._origin, [*map(typeof, given)]) for function, *given in calls]


def listed_job(calls: Iterable[tuple[Any, ...]]) -> dict[str, Any]:
    """A job of one process that compiles functions of ours, as in `requests_of`."""
    target = [compile_listed.__module__, compile_listed.__name__]
    return {"target": target, "processes": 1, "listed": requests_of(calls)}


def job_of(jobs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A job that is several, one after another, of as many processes as the one with most."""
    processes = max(job["processes"] for job in jobs)
    return {"target": [do_each.__module__, do_each.__name__], "processes": processes, "jobs": [*jobs]}


def do_each(job: dict[str, Any], claims: Claims) -> None:
    """Do the parts of a job of `job_of`."""
    for one in job["jobs"]:
        module, name = one["target"]
        getattr(import_module(module), name)({**one, "number": job["number"]}, claims)


def compile_listed(job: dict[str, Any], claims: Claims) -> None:
    """Compile what a job lists as requests of single functions."""
    compiler = JobCompiler(claims)
    for begins in (False, True):
        if begins:
            compiler.begin()
        for request in job["listed"]:
            module, name = request["target"]
            compiler.compile(partial(getattr(import_module(module), name), request))
