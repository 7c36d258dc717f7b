"""`convert` for Python programs takes what `penstock convert` takes, and says what it does underway."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from penstock.engine import convert
from penstock.storage.base.errors import InputError


@pytest.fixture
def payments(tmp_path: Path) -> Path:
    path = tmp_path / "payments.csv"
    path.write_text("day,payer,payee,amount\n1,ann,bob,5\n2,bob,cy,7\n")
    return path


def test_options_of_the_command_line(payments: Path, tmp_path: Path) -> None:
    graph = convert(
        payments, tmp_path / "p.h5", columns="payer,payee,amount", renumber=True, direction="both", host_memory="64MiB"
    )
    assert pa.table(graph).to_pydict() == {"source": ["ann", "bob"], "target": ["bob", "cy"], "weight": [5, 7]}
    assert graph.neighbors("cy", "in").tolist() == ["bob"]
    again = convert([payments], tmp_path / "q.h5", columns=("payer", "payee"), bipartite=True)
    assert (again.left, again.weight_dtype) == (2, None)


def test_files_and_folders_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("0 1\n")
    (tmp_path / "b.txt").write_text("1;5\n")
    (tmp_path / "ids.txt").write_text("0\n1\n9\n")
    (tmp_path / "shards").mkdir()
    graph = convert(
        str(tmp_path / "a.txt"), tmp_path / "a.h5", vertices=str(tmp_path / "ids.txt"), stripe=str(tmp_path / "shards")
    )
    assert graph.vertices == 3
    assert len(graph.files) == 2
    assert convert(tmp_path / "b.txt", tmp_path / "b.h5", delimiter="semicolon", format="csv").edges == 1


def test_what_cannot_be_used_is_refused_in_keywords(payments: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"convert has no option renumbr; did you mean renumber\?"):
        convert(payments, tmp_path / "p.h5", renumbr=True)
    with pytest.raises(InputError, match=r'host_memory="1\.0 MiB" is too little to convert'):
        convert(payments, tmp_path / "p.h5", host_memory=1 << 20)
    convert(payments, tmp_path / "p.h5", columns="payer,payee", renumber=True)
    with pytest.raises(InputError, match="exists already; force=True replaces it"):
        convert(payments, tmp_path / "p.h5", columns="payer,payee", renumber=True)
    with pytest.raises(InputError, match="is an input too"):
        convert(payments, payments, columns="payer,payee", renumber=True, force=True)
    assert payments.read_text().startswith("day,")
