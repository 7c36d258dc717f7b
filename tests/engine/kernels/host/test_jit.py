"""The key under which a compiled kernel is kept: every source that it depends on is in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine.kernels.host import jit
from penstock.engine.kernels.host.launch import HostKernels
from penstock.engine.program.bindings import Author
from penstock.engine.programs.cdlp import CDLP
from penstock.engine.programs.sssp import SSSP
from penstock.storage.base import kernel_cache


def compiled_from(monkeypatch: pytest.MonkeyPatch) -> set[Path]:
    """The files of all functions that the host's kernels consist of, but for those of a program."""
    paths: set[str] = set()
    monkeypatch.setattr(kernel_cache, "_file_digest", lambda path: paths.add(path) or b"")
    of_edges, of_rows = (
        HostKernels(program, np.dtype(np.uint32), weighted=True, threads=1).author
        for program in (SSSP(source=0), CDLP())
    )
    author = replace(of_edges, calls={**of_rows.calls, **of_edges.calls})
    folder = Path(jit.__file__).parent
    for path in [*folder.glob("*.py"), *folder.glob("whole_rows/*.py"), *folder.glob("lists/*.py")]:
        module = import_module(
            ".".join(("penstock.engine.kernels.host", *path.relative_to(folder).with_suffix("").parts))
        )
        makers = [value for name, value in vars(module).items() if name.startswith("make_")]
        for kernel in (*jit.kernels_of(module), *(made for make in makers for made in _kernels_by(make, author))):
            kernel_cache.source_digest(kernel._function)
    return {Path(path) for path in paths if "programs" not in Path(path).parts and not path.startswith("<")}


def _kernels_by(make: Callable[..., Any], author: Author) -> list[jit.JitKernel]:
    """What a maker makes of an author, if that is a kernel; its options are False, or the first of its kind."""
    first, *options = signature(make).parameters.values()
    if first.annotation != "Author" or signature(make).return_annotation not in ("Any", "JitKernel"):
        return []
    given = [
        "forward" if option.annotation == "WaysName" else False for option in options if option.default is option.empty
    ]
    made = make(author, *given)
    return [made] if isinstance(made, jit.JitKernel) else []


def test_every_source_that_is_compiled_is_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    files = set(jit.source_files())
    compiled = compiled_from(monkeypatch)
    assert {"combiners.py", "shared_functions.py", "push.py"} <= {path.name for path in compiled}
    assert compiled <= files
    assert Path(jit.bind.__code__.co_filename) in files
    assert not [path for path in files if path.parent.name in ("cuda", "reference")]


@pytest.mark.parametrize("name", [path.name for path in jit.source_files()])
def test_a_change_of_any_source_changes_the_key(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before, original = jit._sources.__wrapped__(), Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: original(path) + (b"#" if path.name == name else b""))
    assert jit._sources.__wrapped__() != before
