"""Programs are found by name, file or module; parameters are checked by name."""

from pathlib import Path

import pytest
from penstock.engine.program.program import Program
from penstock.engine.programs.bfs import BFS
from penstock.storage.base.errors import InputError
from penstock.tools.base.find_program import (
    find_program,
    make_program,
    parse_setting,
    read_vertex,
)

OWN = """
from penstock.engine.program.program import Program, Field
import numpy as np

class Hops(Program):
    level = Field(np.uint32)
    def __init__(self, source, limit=3):
        self.source, self.limit = source, limit
"""


PHASED = """
from penstock.engine.program.program import Program, Field
import numpy as np

class Phased(Program):
    level = Field(np.uint32)
    def phases(self, graph, state):
        for _ in range({}):
            yield self
"""


def test_built_in_programs_are_found() -> None:
    for name in ("bfs", "sssp", "pagerank", "wcc"):
        assert issubclass(find_program(name), Program)
    assert find_program("bfs") is BFS
    assert find_program("penstock.engine.programs.bfs:BFS") is BFS


@pytest.mark.parametrize("ending", [":Hops", ""])
def test_a_users_file_is_loaded(tmp_path: Path, ending: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(OWN)
    kind = find_program(f"{path}{ending}")
    made = make_program("mine", kind, {"source": 5})
    assert (made.source, made.limit) == (5, 3)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("", "walktrap", "'walktrap'.*path/to/file"),
        ("", "Random-Walks", "Random-Walks is no program here: 'penstock walk' does it"),
        ("", "jaccard", "'penstock similarity' does it"),
        ("", "ego_graph", "'penstock extract' does it"),
        ("", "absent.py:X", "does not exist"),
        ("", "no.such.module:X", "No module named"),
        ("x = 1", "{}:X", "no class"),
        (OWN, "{}:Jumps", "Hops.*Jumps"),
        (OWN + "class Two(Hops): pass", "{}", "Hops, Two"),
        ("a b", "{}:X", "mine.py:1"),
        ("\n\n1 / 0", "{}:X", r"ZeroDivisionError.*\(line 3\)"),
    ],
)
def test_what_is_no_program_is_refused(tmp_path: Path, text: str, name: str, message: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        find_program(name.format(path))


def test_phases_that_ask_for_the_limit_are_given_it(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(PHASED.format("self.max_iter"))
    assert make_program("mine", find_program(str(path)), {"max_iter": 1}).max_iter == 1
    path.write_text(PHASED.format("7"))
    with pytest.raises(InputError, match="mine does not take --max-iter; it takes no parameter"):
        make_program("mine", find_program(str(path)), {"max_iter": 1})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("depth=3", ("depth", 3)),
        ("rate=0.5", ("rate", 0.5)),
        ("on=True", ("on", True)),
        ("name=some text", ("name", "some text")),
        ("list=[1, 2]", ("list", [1, 2])),
        ("empty=", ("empty", "")),
        ("formula=a=b", ("formula", "a=b")),
    ],
)
def test_settings_are_values(text: str, expected: tuple[str, object]) -> None:
    assert parse_setting(text) == expected


@pytest.mark.parametrize("text", ["depth", "=3", "two words=3", "3=x"])
def test_what_is_no_setting_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="name=value"):
        parse_setting(text)


def test_more_digits_than_ids_have_are_text() -> None:
    assert read_vertex("9" * 5000) == "9" * 5000
    assert read_vertex(str(2**64 - 1)) == 2**64 - 1
    assert parse_setting("depth=" + "(" * 500) == ("depth", "(" * 500)
    assert parse_setting("depth=" + "-" * 100_000 + "1")[0] == "depth"
