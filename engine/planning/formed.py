"""Which form of a program runs: the first that fits the memory of those that give the same answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.planning.requirements import RunRequirements, RunSetting, plan_memory
from penstock.storage.base.errors import BudgetError

if TYPE_CHECKING:
    from penstock.engine.program.program import Program
    from penstock.engine.resources.requirements_types import MemoryRequest
    from penstock.storage.format.graph import Graph


def planned(
    graph: Graph, program: Program, setting: RunSetting
) -> tuple[Program, tuple[RunRequirements, ...], MemoryRequest]:
    """The program that runs for this one, and what it asks for; lighter ones (`Program.lighter`) where memory is short.

    Raises InputError for what cannot run, BudgetError where the lightest does not fit.
    """
    made = program.form(graph, setting.config.mode)
    while True:
        try:
            return made, *plan_memory(graph, made, setting)
        except BudgetError:
            lighter = made.lighter(graph)
            if lighter is None:
                raise
            made = lighter
