"""Compiles what this process asks for in other processes, for several kinds of processors, and keeps it in one folder.

Each kind has processes of its own, whose environment says what Numba compiles for. They run nothing of it, so that this
machine need not have such a processor. This process runs code of one kind, which they compile for it as a companion
would.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from itertools import product
from pathlib import Path
from types import TracebackType
from typing import Any

from penstock.storage.base.budget import cores, resident_bytes
from penstock.storage.base.errors import RunError
from penstock.storage.base.missing_code import Origin, when_asked
from penstock.storage.base.threads import ThreadPool
from penstock.storage.companion import server
from penstock.storage.companion.process import Companion, name_in, replace, request_for

PATIENCE = 1800.0
"""Seconds for the kernels of a job."""
MOST_BYTES = 768 << 20
"""Of a process: another one follows it then. Numba keeps what each kernel was made of, some 2.5 MiB."""


class Builders:
    """Within the block, what is asked for is compiled in other processes; `finish` waits for all of it.

    Parameters
    ----------
    folder : Path
        For the processes' claims; there is one, for this user alone.
    environments : mapping
        By kind of processor, the environment of its processes, which says where they keep kernels.
    own : str
        The kind of which this process runs code itself. What it runs is kept where it finds it.
    wanted : sequence of str
        The kinds of which all is kept.
    changes : mapping
        By kind, what is otherwise in the jobs of runs. Such a kind, of GPUs, gets nothing but jobs.
    """

    def __init__(
        self,
        folder: Path,
        environments: Mapping[str, Mapping[str, str]],
        own: str,
        wanted: Sequence[str],
        changes: Mapping[str, Mapping[str, Any]],
    ) -> None:
        self._folder, self._environments, self._own, self._wanted = folder, environments, own, wanted
        self._changes = changes
        each = max(1, cores() // len(environments))
        self._pools = {name: ThreadPool(each, f"penstock-{name}") for name in environments}
        self._here = threading.local()
        self._companions: list[Companion] = []
        self._waiting: list[Future[bool]] = []
        self._jobs: set[str] = set()
        self._entries: set[str] = set()
        self.last = ""
        """What was compiled last."""
        self.unknown: set[str] = set()
        """Why code can be compiled by no other process."""
        self.failed: set[str] = set()
        """Of what no process has compiled what it was asked for."""

    def __enter__(self) -> Builders:
        when_asked(self._ask)
        replace(self._make, self._offer)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        when_asked(None)
        replace(None, None)
        for waiting in self._waiting:
            waiting.cancel()
        for companion in self._companions:
            companion.close()
        for pool in self._pools.values():
            pool.shutdown()

    @property
    def counts(self) -> tuple[int, int]:
        """How many requests are done, of how many."""
        return sum(one.done() for one in self._waiting), len(self._waiting)

    def finish(self) -> None:
        """Wait. Raises RunError."""
        for one in self._waiting:
            one.result()

    def _ask(self, entry: str, origin: Origin | None, signature: Any) -> None:
        """Let code be compiled for the other kinds."""
        if entry in self._entries:
            return
        self._entries.add(entry)
        try:
            if origin is None:
                raise TypeError(f"a function of arguments {signature} has no origin")
            request = request_for(origin, signature)
        except TypeError as error:
            self.unknown.add(str(error))
            return
        for kind in self._wanted:
            if kind != self._own:
                self._submit(kind, request)

    def _make(self, name: str, entry: str, origin: Origin | None, signature: Any) -> bool:
        """Let code be compiled for this process, and wait."""
        if origin is None:
            return False
        try:
            return self._submit(self._own, request_for(origin, signature)).result()
        except TypeError:
            return False

    def _offer(self, describe: Callable[[], dict[str, Any]]) -> None:
        """Compile what runs like it may need, of one chunk or many, packed or not; once for each class of programs."""
        try:
            job = describe()
        except TypeError as error:
            self.unknown.add(str(error))
            return
        runs = [part for part in job.get("jobs", [job]) if "program" in part]  # a conversion asks for all that it needs
        for part, packed in product(runs, (False, True)):
            one = {**part, "packed": packed, "counts": True}
            *kind, _ = part["program"]  # searches from each of many sources differ in attributes alone
            named = json.dumps({**one, "program": kind})
            if named in self._jobs:
                continue
            self._jobs.add(named)
            for processor in (*self._wanted, *self._changes):
                own = {**one, **self._changes.get(processor, {})}
                self._submit(processor, {"target": [server.__name__, server.do_alone.__name__], "job": own})

    def _submit(self, kind: str, request: dict[str, Any]) -> Future[bool]:
        self._waiting.append(self._pools[kind].submit(self._compile, kind, request))
        return self._waiting[-1]

    def _compile(self, kind: str, request: dict[str, Any]) -> bool:
        companion = getattr(self._here, "companion", None)
        if companion is None or companion.is_idle or resident_bytes(companion.process.pid) > MOST_BYTES:
            if companion is not None:
                self._companions.remove(companion)
                companion.close()
            companion = self._here.companion = Companion(self._folder, self._environments[kind])
            self._companions.append(companion)
        answer = companion.ask(request, PATIENCE)
        if answer is None:
            raise RunError(
                f"a process that compiles kernels for {kind} has ended, or takes longer than {PATIENCE:.0f} s"
            )
        self.last = name_in(request) or self.last
        if not answer:
            self.failed.add(f"{name_in(request) or request['job']['program'][2]} for {kind}")
        return answer
