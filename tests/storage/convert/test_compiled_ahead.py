"""What is compiled ahead for a conversion is what it needs."""

from __future__ import annotations

from pathlib import Path

import pytest
from penstock.storage.base.missing_code import tell_missing
from penstock.storage.companion import process
from penstock.storage.convert.convert import compiled_ahead
from penstock.storage.convert.sort.options import ConvertOptions
from support.faults import python

RUN = """
import sys
from penstock import convert
from penstock.storage.base.missing_code import when_asked
from penstock.storage.companion.process import request_for
from penstock.storage.convert.convert import kernel_job

asked = []
when_asked(lambda entry, origin, signature: asked.append(request_for(origin, signature)))
convert(sys.argv[1], sys.argv[2], weights=True, undirected=True, renumber=True)
print([one for one in kernel_job()["listed"] if one not in asked])
"""

TAKEN = """
import sys
from pathlib import Path
from penstock.storage.companion.claims import Claims
from penstock.storage.companion.job_compiler import compile_listed
from penstock.storage.convert.convert import kernel_job

asked, folder = [], Path(sys.argv[1])
Claims.take = lambda claims, name: asked.append(name)
compile_listed(kernel_job(), Claims(folder))
print(len(asked) > 0, Claims(folder).counts() == (0, len(asked)), *(folder / "penstock").rglob("*.kernel"))
"""


def test_a_conversion_asks_for_all_that_is_listed(tmp_path: Path) -> None:
    edges = tmp_path / "edges.txt"
    edges.write_text("".join(f"{v % 90} {10**7 * v * v} {v % 300 + 1}\n" for v in range(2000)))
    child = python(RUN, str(edges), str(tmp_path / "graph.h5"))
    assert (child.stdout, child.stderr) == ("[]\n", "")


def test_what_another_process_has_taken_is_not_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    child = python(TAKEN, str(tmp_path))
    assert (child.stdout, child.stderr) == ("True True\n", "")


@pytest.mark.parametrize(("threads", "layout", "jobs"), [(2, "rows", 1), (1, "rows", 0), (2, "list", 0)])
def test_the_job_begins_at_the_first_kernel_that_is_missing(
    threads: int, layout: str, jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[object] = []

    class Busy:
        has_job = False
        give = staticmethod(given.append)
        end_jobs = staticmethod(list)

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(process, "start", lambda module=None: Busy())
    monkeypatch.setattr(process, "is_possible", lambda processes: True)
    with compiled_ahead(ConvertOptions(threads=threads, layout=layout)):  # type: ignore[arg-type]
        assert given == []
        tell_missing("parse_lines", "entry")
    tell_missing("parse_lines", "entry")
    assert len(given) == jobs
