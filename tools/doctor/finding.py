"""What the doctor finds: rows of a page, each with how it stands and, where something is missing, the way out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from penstock.tools.base.output import pairs

State = Literal["ok", "missing", "broken"]


@dataclass(frozen=True)
class Finding:
    """One row: what was looked at, what is there, and how that stands.

    missing: something optional, without which something does not work or is slower. broken: nothing works without it.
    way_out: a command or a sentence, "" where all is well.
    """

    name: str
    told: str
    state: State = "ok"
    way_out: str = ""

    def facts(self) -> dict[str, str]:
        """For machines."""
        return {"name": self.name, "told": self.told, "state": self.state, "way_out": self.way_out}


@dataclass(frozen=True)
class Section:
    """The rows of one subject, and the values behind them for machines."""

    title: str
    findings: list[Finding] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """For people: two columns below the title."""
        rows = [(one.name, one.told if one.state == "ok" else f"{one.told}  <- {one.state}") for one in self.findings]
        return [self.title, *pairs(rows, indent="  ")]


def verdict(sections: Sequence[Section]) -> list[str]:
    """The last lines of the page: what is broken and what is missing, each with its way out."""
    wrong = [one for section in sections for one in section.findings if one.state != "ok"]
    if not wrong:
        return ["all is well"]
    order = sorted(wrong, key=lambda one: one.state != "broken")
    return [f"{one.state}: {one.name}: {one.told}{'; ' if one.way_out else ''}{one.way_out}" for one in order]
