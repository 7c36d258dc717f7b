"""Names of kernels say what the author's functions are, not where a library is installed."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from penstock.storage.base.function_digest import function_digest


def distance(value: float) -> float:
    """Takes functions from modules, as an author's does."""
    return math.sqrt(np.float64(value))


@pytest.mark.parametrize("module", [np, math])
def test_libraries_may_be_installed_anywhere(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    before, shown = function_digest(distance), repr(module)
    monkeypatch.setattr(module.__spec__, "origin", "/elsewhere/module.py")
    monkeypatch.setattr(module.__spec__, "has_location", True, raising=False)
    assert repr(module) != shown
    assert function_digest(distance) == before


def test_modules_of_an_author_are_told_by_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digests = set()
    for folder in (tmp_path / "one", tmp_path / "other"):
        folder.mkdir()
        (folder / "helper_of_kernels.py").write_text("FACTOR = 2.0\n")
        monkeypatch.syspath_prepend(str(folder))
        monkeypatch.delitem(sys.modules, "helper_of_kernels", raising=False)
        names: dict[str, object] = {}
        exec("import helper_of_kernels\ndef scaled(value):\n    return value * helper_of_kernels.FACTOR\n", names)
        digests.add(function_digest(names["scaled"]))  # type: ignore[arg-type]
    assert len(digests) == 2


def author(text: str, **names: object) -> str:
    """The digest of a function `f` of an author's module, compiled from a text."""
    exec(text, names)
    return function_digest(names["f"])


def test_what_an_authors_function_calls_and_takes_is_in_the_name() -> None:
    text = "def g(x):\n    return x + 1\ndef f(x):\n    return g(x) * FACTORS[3]\n"
    factors = np.arange(5000.0)
    changed = factors.copy()
    changed[3000] = 7  # which its text leaves out
    digests = [author(text, FACTORS=factors), author(text, FACTORS=changed)]
    digests += [
        author(text.replace("+ 1", "+ 2"), FACTORS=factors),
        author(text.replace("[3]", "[4]"), FACTORS=factors),
    ]
    assert len(set(digests)) == len(digests)
    assert author(text, FACTORS=factors.copy()) == digests[0]


def test_functions_within_a_function_are_told_by_what_they_do() -> None:
    text = "def f(x):\n    def inner(y):\n        return y + 1\n    return inner(x)\n"
    assert author(text) == author(f"unused = 1\n\n{text}")
    assert author(text) != author(text.replace("+ 1", "+ 2"))


TAKEN = {
    "a default": ("@njit\ndef g(x, k=2.0):\n    return x * k\n", "k=2.0", "k=3.0"),
    "a named default": ("@njit\ndef g(x, *, k=2.0):\n    return x * k\n", "k=2.0", "k=3.0"),
    "an option": ("@njit(fastmath=False)\ndef g(x):\n    return x * 2.0\n", "False", "True"),
    "a signature": ("@njit('f8(f8)')\ndef g(x):\n    return x * 2.0\n", "f8(f8)", "f4(f8)"),
    "a ufunc": ("@vectorize\ndef g(x):\n    return x * 2.0\n", "2.0", "3.0"),
    "which of two": ("def a(x):\n    return x\ndef b(x):\n    return -x\ng, h, i = a, a, b\n", "a, a, b", "a, b, b"),
    "an enumeration": ("class Place(IntEnum):\n    X = 1\n", "X = 1", "X = 2"),
    "names of a tuple": ("Place = namedtuple('Place', 'X Y')\n", "X Y", "Y X"),
    "a value in a tuple": ("FACTORS = (np.arange(5000.0), 1)\n", "np.arange(5000.0)", "np.arange(5000.0)[::-1]"),
}


@pytest.mark.parametrize(("text", "one", "other"), TAKEN.values(), ids=TAKEN)
def test_whatever_changes_what_is_compiled_is_in_the_name(text: str, one: str, other: str) -> None:
    start = "import numpy as np\nfrom numba import njit, vectorize\nfrom enum import IntEnum\n"
    start += "from collections import namedtuple\n"
    f = "def f(x):\n    return g(x) + 2 * h(x) + 3 * i(x) + Place.X + FACTORS[0][2500]\n"
    assert one in text
    changed = author(start + text.replace(one, other) + f, __name__="authors")
    assert changed != author(start + text + f, __name__="authors") == author(start + text + f, __name__="authors")


def test_what_a_function_takes_of_a_module_is_in_the_name_and_nothing_else() -> None:
    def digest(of_module: str) -> str:
        module = ModuleType("helper_of_kernels")
        module.__file__ = "/authors/helper_of_kernels.py"
        exec("from numba import njit\n" + of_module, vars(module))
        return author("def f(x):\n    return helper.g(x) * helper.FACTOR\n", helper=module)

    text = "FACTOR = 2\nOTHER = 2\n@njit\ndef g(x):\n    return x + 1\n"
    assert digest(text) == digest(text.replace("OTHER = 2", "OTHER = 3"))
    assert (
        len({digest(text), digest(text.replace("FACTOR = 2", "FACTOR = 3")), digest(text.replace("+ 1", "+ 2"))}) == 3
    )
