"""Shared options: sizes and ranges are read or refused by name; groups arrive as one value."""

from typing import Any

import click
import pytest
from click.testing import CliRunner
from penstock.tools.options import SIZE, WeightRange, option, taking


@click.command()
@click.argument("first")
@taking(
    "both",
    lambda size, weights: (size, weights),
    option("--size", type=SIZE),
    option("--weights", type=WeightRange(), default="1..9"),
)
@taking("flag", lambda x: x, option("--flag", "x", is_flag=True))
def sample(first: str, both: tuple[Any, Any], flag: bool) -> None:
    click.echo(f"{first} {both} {flag}")  # fmt: skip


def test_groups_arrive_as_values() -> None:
    runner = CliRunner()
    result = runner.invoke(sample, ["a", "--size", "2KiB"])
    assert result.output == "a (2048, (1, 9)) False\n"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--size", "many"], "'many'"),
        (["--size", "0"], "'0'"),
        (["--weights", "5"], "'5'"),
        (["--weights", "a..b"], "'a..b'"),
        (["--weights", "-1..3"], "'-1..3'"),
    ],
)
def test_what_cannot_be_read_is_named(arguments: list[str], named: str) -> None:
    result = CliRunner().invoke(sample, ["a", *arguments])
    assert result.exit_code == 2
    assert named in result.output


def test_help_lists_options_in_the_order_given() -> None:
    shown = CliRunner().invoke(sample, ["--help"]).output
    assert shown.index("--size") < shown.index("--weights") < shown.index("--flag")
