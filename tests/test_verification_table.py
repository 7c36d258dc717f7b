"""Every program is held against an independent verifier on all kinds of kernels."""

from __future__ import annotations

import pytest
from support.verification_table import (
    CATALOGUE,
    EVIDENCE,
    WEIGHTED,
    Evidence,
    checked,
    directions,
    keys_of,
    parameters_of,
)


def test_every_program_is_checked_on_all_kernels() -> None:
    for name, columns in checked().items():
        for column, letters in columns.items():
            assert {"d", "u"} <= letters, f"{name} on {column}"
            assert name not in WEIGHTED or "w" in letters, f"{name} on {column}"


def test_a_test_that_is_gone_is_missed() -> None:
    with pytest.raises(LookupError, match="has no test test_that_never_was"):
        parameters_of(CATALOGUE, "test_that_never_was")
    with pytest.raises(LookupError, match="assigns nothing to NOTHING"):
        keys_of(CATALOGUE, "NOTHING")


def test_directions_are_those_of_the_parameters() -> None:
    assert directions(Evidence(CATALOGUE, "test_every_way_gives_the_answer", (), set)) == (True, False)
    assert directions(Evidence("test_parity.py", "test_integer_answers_are_equal_to_the_bit", (), set)) == (True,)
    assert all(directions(evidence) for evidence in EVIDENCE)
