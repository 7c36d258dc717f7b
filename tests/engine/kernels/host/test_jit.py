"""The key under which a compiled kernel is kept: every source that it depends on is in it, and no other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from penstock.engine.kernels.host import fused, jit, pull, push, union_find
from penstock.engine.kernels.host.jit import JitKernel
from penstock.engine.kernels.host.launch import HostKernels
from penstock.engine.program import bindings
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.sssp import SSSP
from penstock.storage.base import function_digest


def kernel(make: Any) -> JitKernel:
    return HostKernels(SSSP(source=0), np.dtype(np.uint32), weighted=True, threads=1).kernel(make)


def key(made: JitKernel) -> str:
    """The key under which it would be kept; it is not compiled."""
    with mock.patch.object(jit, "kept", lambda compiled, key, origin, linked: key()):
        return str(type(made)._compiled.func(made))


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Lets a file of this name be another one."""
    original = function_digest.file_digest

    def change(name: str) -> None:
        monkeypatch.setattr(
            function_digest, "file_digest", lambda path: original(path) + (b"#" if Path(path).name == name else b"")
        )

    return change


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("push.py", True), ("atomics.py", True), ("device_functions.py", True), ("shared_functions.py", True),
        ("interface.py", True), ("combiners.py", True), ("sssp.py", True), ("jit.py", True), ("compiler.py", True),
        ("parallel_loop.py", True),
        ("pull.py", False), ("fused.py", False), ("bfs.py", False), ("rows.py", False),
    ],
)  # fmt: skip
def test_a_change_of_a_file_changes_the_keys_of_what_comes_from_it(
    name: str, changes: bool, changed: Callable[[str], None]
) -> None:
    before = key(kernel(push.make_push_rows))
    changed(name)
    assert (key(kernel(push.make_push_rows)) != before) is changes


def test_a_generated_text_is_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    author = HostKernels(SSSP(source=0), np.dtype(np.uint32), weighted=True, threads=1).author
    before, define = key(fused.make_fused_iterations(author, True, False)), bindings.define
    assert key(fused.make_fused_iterations(author, True, False)) == before
    monkeypatch.setattr(
        bindings, "define", lambda name, text, names: define(name, text.replace("count", "rounds"), names)
    )
    assert key(fused.make_fused_iterations(author, True, False)) != before


def test_programs_and_options_have_their_own() -> None:
    authors = [
        HostKernels(program, np.dtype(np.uint32), weighted, 1).author
        for program in (SSSP(source=0), BFS(source=0))
        for weighted in (True, False)
    ]
    assert len({key(pull.make_pull(author)) for author in authors}) == len(authors)
    options = [(apart, both) for apart in (True, False) for both in (True, False)]
    assert len({key(fused.make_fused_iterations(authors[0], *given)) for given in options}) == len(options)
    assert len({key(made) for made in jit.kernels_of(union_find)}) == len(jit.kernels_of(union_find))
