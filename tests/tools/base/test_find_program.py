"""Programs are found by name, file or module; parameters are checked by name."""

from pathlib import Path

import pytest
from penstock.engine.program.program import Program
from penstock.engine.programs.bfs import BFS
from penstock.storage.base.errors import InputError
from penstock.tools.base.find_program import (
    LONGEST_LINE,
    find_program,
    make_program,
    parse_setting,
    read_pairs,
    read_values,
    read_vertex,
    read_weights,
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


def test_parameters_are_checked_by_name() -> None:
    with pytest.raises(InputError, match="bfs needs --source"):
        make_program("bfs", BFS, {})
    with pytest.raises(InputError, match="bfs does not take --damping; it takes --source"):
        make_program("bfs", BFS, {"source": 1, "damping": 0.5})
    with pytest.raises(InputError, match=r"wcc does not take --set depth=.*; it takes no parameter"):
        make_program("wcc", find_program("wcc"), {"depth": 1})


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


def test_personalization_is_read(tmp_path: Path) -> None:
    path = tmp_path / "p.txt"
    path.write_text("# who\n4 0.5\n7\n\n4,0.25\nn01 2\n07\n")
    assert read_weights(path) == {4: 0.75, 7: 1.0, "n01": 2.0, "07": 1.0}


@pytest.mark.parametrize("line", ["-3", "-3 1", "4 y", "1 2 3"])
def test_bad_personalization_names_the_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "p.txt"
    path.write_text(f"1 1\n{line}\n")
    with pytest.raises(InputError, match=r"p\.txt:2"):
        read_weights(path)
    with pytest.raises(InputError, match="absent"):
        read_weights(tmp_path / "absent")


def test_values_are_read(tmp_path: Path) -> None:
    """An answer in CSV is such a file."""
    path = tmp_path / "v.csv"
    path.write_text("vertex,temperature\n4,-0.5\n# none\nn01 2e3\n")
    assert read_values(path, "initial") == {4: -0.5, "n01": 2000.0}


@pytest.mark.parametrize("line", ["7", "7,", "-3 1", "4 y", "1 2 3", "8 nan", "1 2", "vertex,name"])
def test_bad_values_name_the_line(tmp_path: Path, line: str) -> None:
    """A second value for a vertex is one of them, and so is none."""
    path = tmp_path / "v.csv"
    path.write_text(f"1,1\n{line}\n")
    with pytest.raises(InputError, match=r"v\.csv:2"):
        read_values(path, "initial")
    with pytest.raises(InputError, match=r"--time-step .*absent"):
        read_values(tmp_path / "absent", "time_step")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1 2\n" + "x" * (LONGEST_LINE + 1), f"line 2 is longer than {LONGEST_LINE} characters"),
        ("1 2\n3 " + "y" * 5000 + " z " + "9" * 5000 + " 4 5", "is not a vertex id and a value"),
        ("1 2\n\xff", "v.txt is not UTF-8 text"),
    ],
)
def test_long_lines_of_values_are_refused_in_short(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "v.txt").write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=reason) as caught:
        read_values(tmp_path / "v.txt", "initial")
    assert len(str(caught.value)) < 600


def test_devices_have_no_lines() -> None:
    for read, option in ((read_pairs, "--pairs"), (read_weights, "--personalization")):
        with pytest.raises(InputError, match=f"{option} /dev/zero is a device; name a file or a pipe"):
            read(Path("/dev/zero"))


def test_long_pairs_are_refused_in_short(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    for text, reason in (('1,"' + "y" * 200_000 + '"', "is no line of CSV"), (f"-{'9' * 5000},1", "a negative number")):
        path.write_text(f"1,2\n{text}\n")
        with pytest.raises(InputError, match=reason) as caught:
            read_pairs(path)
        assert len(str(caught.value)) < 600


def test_more_digits_than_ids_have_are_text() -> None:
    assert read_vertex("9" * 5000) == "9" * 5000
    assert read_vertex(str(2**64 - 1)) == 2**64 - 1
    assert parse_setting("depth=" + "(" * 500) == ("depth", "(" * 500)
    assert parse_setting("depth=" + "-" * 100_000 + "1")[0] == "depth"
