"""Shared options: sizes and ranges are read or refused by name; groups arrive as one value."""

from typing import Any

import click
import pytest
from click.testing import CliRunner
from penstock.tools.base.options import SIZE, WEIGHT_RANGE, Titled, option, option_group


@click.command()
@click.argument("first")
@option_group(
    "both",
    lambda size, weights: (size, weights),
    option("--size", type=SIZE),
    option("--weights", type=WEIGHT_RANGE, default="1..9"),
)
@option_group("flag", lambda x: x, option("--flag", "x", is_flag=True))
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


INNER = option_group("inner", lambda deep: deep, option("--deep", is_flag=True, help="Go down."), title="Depth")


@click.command(cls=Titled)
@click.argument("first")
@INNER
@option_group("plain", lambda x: x, option("--plain", "x", type=int, help="A number."))
def titled(first: str, **groups: Any) -> None:
    click.echo(f"{first} {dict(sorted(groups.items()))}")


def test_each_group_arrives_as_one() -> None:
    assert CliRunner().invoke(titled, ["a", "--deep", "--plain", "3"]).output == "a {'inner': True, 'plain': 3}\n"
    assert INNER.of({"deep": False, "other": 1}) is False


def test_help_lists_groups_under_their_titles() -> None:
    shown = CliRunner().invoke(titled, ["--help"]).output
    places = [shown.index(words) for words in ("Depth:\n  --deep", "Options:\n  --plain", "--help")]
    assert places == sorted(places)
    assert "FIRST" not in shown[places[0] :]
