"""The bytecode that commands of a test session share: that of others is linked, or made where they have none."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support import shared_bytecode


@pytest.mark.parametrize("compiled", [True, False])
def test_bytecode_of_others_is_linked_or_made_once(
    compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder goes at the end of the session, and what it links stays."""
    cached = tmp_path / "others" / "one" / "__pycache__"
    cached.mkdir(parents=True)
    names = [f"a.{sys.implementation.cache_tag}.pyc", f"a.{sys.implementation.cache_tag}.opt-1.pyc", "a.cpython-27.pyc"]
    for name in names[not compiled :]:
        (cached / name).write_bytes(b"code")
    commands: list[list[str]] = []
    ends: list[Any] = []
    monkeypatch.setattr(shared_bytecode.sysconfig, "get_path", lambda _: str(tmp_path / "others"))
    monkeypatch.setattr(subprocess, "run", lambda command, **_: commands.append(command))
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", "elsewhere")
    session: Any = SimpleNamespace(add_cleanup=ends.append)
    shared_bytecode.share_bytecode(session)
    folder = os.environ["PYTHONPYCACHEPREFIX"]
    assert [path.name for path in Path(folder).rglob("*.pyc")] == names[:compiled]
    assert [command[1] for command in commands] == ["-m"] + ["-c"] * (not compiled)
    for end in ends:
        end()
    assert not Path(folder).exists()
    assert sorted(path.name for path in cached.iterdir()) == sorted(names[not compiled :])
