"""`penstock report`: what a run did, what limited it, and what would help."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from penstock.storage.base.atomic import check_target, write_text
from penstock.storage.base.errors import InputError
from penstock.tools.base.options import ANY, FOLDER, FORCE, OUTPUT, console_options, keep_inputs, option, option_group
from penstock.tools.base.output import Console

if TYPE_CHECKING:
    from penstock.tools.report.read_metrics import RunMetrics


@dataclass(frozen=True)
class Drawn:
    """Where pictures go: one page, a folder of them."""

    html: Path | None
    png: Path | None
    force: bool

    def check(self, run: Path) -> None:
        """Refuse, before anything is drawn, what could not be written; run: what is read."""
        if self.html is not None or self.png is not None:
            from penstock.tools.base.plots import present

            present()
        if self.html is not None:
            keep_inputs(self.html, [run])
            check_target(self.html, force=self.force)

    def write(self, runs: list[RunMetrics]) -> list[Path]:
        """Draw and write what was asked for; return the files."""
        from penstock.tools.base.plots import as_svg, save
        from penstock.tools.report.figures import pictures
        from penstock.tools.report.page import page

        written = []
        if self.html is not None:
            drawn = [pictures(run, alone=False) for run in runs]
            svgs = [{name: as_svg(figure) for name, figure in figures.items()} for figures in drawn]
            write_text(self.html, page(list(zip(runs, svgs, strict=True))), force=self.force)
            written.append(self.html)
        if self.png is not None:
            drawn = [pictures(run, alone=True) for run in runs]
            _make(self.png)
            for number, figures in enumerate(drawn):
                for name, figure in figures.items():
                    path = self.png / (f"{name}.png" if len(runs) == 1 else f"{number}-{name}.png")
                    save(figure, path, force=self.force)
                    written.append(path)
        return written


def _make(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be made: {error.strerror}; name another folder for --png") from error


drawing = option_group(
    "drawn",
    Drawn,
    option("--html", type=OUTPUT, help="Write one page with pictures, which needs no other file."),
    option("--png", type=FOLDER, help="Write stages.png, time.png, iterations.png into this folder, made if need be."),
    FORCE,
)


@click.command(name="report", short_help="Say what a run did, and what limited it.")
@click.argument("run", type=ANY, metavar="RUN_DIR|METRICS.jsonl")
@drawing
@console_options
def command(run: Path, drawn: Drawn, console: Console) -> None:
    """Say what a run did, what limited it, and what would help.

    RUN_DIR is the folder of a run, METRICS.jsonl what `penstock run --metrics` wrote; a run that is still going, or was
    killed, can be looked at too. The wall time is told by stage, from the start of the process to its end. Pictures
    show these stages, the frontier, the time, the routes and the bytes of every iteration, and how long disk, decoding,
    link and kernels were at work. They need matplotlib.

    \b
    Examples:
      penstock report metrics.jsonl
      penstock report metrics.jsonl --html report.html
      penstock report metrics.jsonl --png . --force
    """
    from penstock.tools.base.json_record import to_json
    from penstock.tools.report import page
    from penstock.tools.report.read_metrics import read, shared

    drawn.check(run)
    runs = read(run)
    if not any(known.iterations for known in runs) and (drawn.html or drawn.png):
        raise InputError(f"{run} tells of no iteration, so there is nothing to draw; leave out --html and --png")
    written = drawn.write(runs)
    told: list[str] = []
    for known in runs:
        told += ["", *page.lines(known)] if told else page.lines(known)
    rest = shared(runs)
    if rest is not None:
        told += ["", "all programs together, beside what each took", *page.shared_lines(rest)]
    told += ["", *(f"written {path}" for path in written)] if written else []
    facts: dict[str, Any] = {"command": "report", "runs": [page.facts(known) for known in runs]}
    facts |= {} if rest is None else {"shared": to_json(rest)}
    console.answer(facts | {"written": written}, told)
