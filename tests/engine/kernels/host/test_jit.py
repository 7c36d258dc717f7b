"""The key under which a compiled kernel is kept: every source that it depends on is in it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from penstock.engine.kernels.host import jit, launch
from penstock.engine.kernels.host.whole_rows import launch_rows
from penstock.engine.programs.cdlp import CDLP
from penstock.engine.programs.sssp import SSSP
from penstock.storage.base import kernel_cache


def compiled_from(monkeypatch: pytest.MonkeyPatch) -> set[Path]:
    """The files of all functions that the host's kernels consist of, but for those of a program."""
    paths: set[str] = set()
    monkeypatch.setattr(kernel_cache, "_file_digest", lambda path: paths.add(path) or b"")
    kernels, on_rows = (
        launch_rows.HostRowKernels(program, np.dtype(np.uint32), weighted=True, threads=1)
        for program in (SSSP(source=0), CDLP())
    )
    kernels.author = replace(kernels.author, calls={**on_rows.author.calls, **kernels.author.calls})
    for module in (launch, launch_rows):
        for name in (*module._SHARED, *module._BY_EDGE, *module._BY_VERTEX, "fused_iterations", "select"):
            kernel_cache.source_digest(kernels._make(name)._function)
    return {Path(path) for path in paths if "programs" not in Path(path).parts and not path.startswith("<")}


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
