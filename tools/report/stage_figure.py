"""The picture of a job from the start of its process to its end: one bar, cut by stage."""

from __future__ import annotations

from typing import Any

from penstock.tools.base.output import seconds
from penstock.tools.base.plots import AUTO, OTHER, canvas, plain_axes
from penstock.tools.report.bottleneck import percent
from penstock.tools.run.account import STAGE_NAMES, Account

COLOURS = {
    "imports": "#C8C8C8", "opening": "#A8A8A8", "calibrating": "#8A8A8A", "compiling": "#D55E00", "kernels": "#E69F00",
    "index": "#F0E442", "page_locking": "#CC79A7", "loading": "#0072B2", "state": "#56B4E9", "iterations": "#009E73",
    "summary": "#8F6BB3", "writing": "#5B3A8C", "closing": "#6E5A4A", "other": "#E4E4E4",
}  # fmt: skip
NAMED = 0.06
"""Share of the bar from which a stage has room for its share."""


def stage_bar(account: Account, width: float) -> Any:
    """One bar as long as the wall time; its parts are the stages, at least one, in their usual order."""
    figure = canvas(width, 2.3)
    panel = figure.subplots()
    left = 0.0
    for stage, took in account.stages.items():
        label = f"{STAGE_NAMES.get(stage, stage)} {seconds(took)}"
        label = f"{STAGE_NAMES.get(stage, stage).lstrip('_')} {seconds(took)}"  # matplotlib hides those with _ in front
        style: dict[str, Any] = {"height": 0.7, "edgecolor": "white", "linewidth": 0.6}
        panel.barh(0, took, left=left, color=COLOURS.get(stage, OTHER), label=label, **style)
        if account.share(stage) >= NAMED:
            style = {"ha": "center", "va": "center", "fontsize": 8.5, "color": AUTO}
            panel.text(left + took / 2, 0, percent(account.share(stage)), **style)
        left += took
    panel.set_xlim(0, max(left, 1e-9))
    panel.set_yticks([])
    panel.set_xlabel("seconds; stages in the order in which a job comes to them first")
    plain_axes(panel)
    panel.set_title(f"the whole job: {seconds(account.wall)}", loc="left", fontsize=11, fontweight="bold")
    for text in figure.legend(loc="outside lower left", ncols=5, fontsize=8.5, frameon=False).get_texts():
        text.set_parse_math(False)  # names of stages are the file's
    return figure
