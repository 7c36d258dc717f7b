"""What commands say: valid JSON whatever the values, aligned tables, readable durations."""

import json
from pathlib import Path

import numpy as np
import pytest
from penstock.tools.base.output import Console, pairs, plain, seconds, table


def test_json_takes_any_value(capsys: pytest.CaptureFixture[str]) -> None:
    facts = {
        "count": np.int64(3),
        "rate": np.float32(0.5),
        "array": np.array([1, 2]),
        "nan": float("nan"),
        "inf": np.float64("inf"),
        "path": Path("/x/y"),
        "dtype": np.dtype(np.uint8),
        "nested": ({"a": (1, None, True)},),
        4: "key",
    }
    Console(as_json=True, quiet=True).answer(facts, ["not shown"])
    assert json.loads(capsys.readouterr().out) == {
        "count": 3,
        "rate": 0.5,
        "array": [1, 2],
        "nan": None,
        "inf": None,
        "path": "/x/y",
        "dtype": "uint8",
        "nested": [{"a": [1, None, True]}],
        "4": "key",
    }


def test_people_get_lines_and_the_quiet_get_none(capsys: pytest.CaptureFixture[str]) -> None:
    Console().answer({"a": 1}, ["one", "two"])
    assert capsys.readouterr().out == "one\ntwo\n"
    quiet = Console(quiet=True)
    quiet.answer({"a": 1}, ["one"])
    quiet.say("underway")
    quiet.note("aside")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_notes_never_spoil_json(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(as_json=True)
    console.say("underway")
    console.note("aside")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "aside\n"


def test_columns_line_up() -> None:
    assert pairs([("a", 1), ("skip", None), ("long", "x")], indent=" ") == [" a     1", " long  x"]
    assert table(["name", "n"], [["x", 1], ["yy", 1000]]) == [
        "name     n",
        "----  ----",
        "x        1",
        "yy    1000",
    ]
    assert pairs([]) == []


@pytest.mark.parametrize(
    ("duration", "expected"),
    [(0.0004, "0.4 ms"), (0.431, "431 ms"), (2.514, "2.51 s"), (119, "119 s"), (200.4, "3 min 20 s")],
)  # fmt: skip
def test_durations_are_readable(duration: float, expected: str) -> None:
    assert seconds(duration) == expected


def test_plain_leaves_plain_values_alone() -> None:
    assert plain({"a": [1, 2.5, "x", None, False]}) == {"a": [1, 2.5, "x", None, False]}
