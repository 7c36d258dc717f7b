"""`penstock report`: what a run did, what limited it, and what would help."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from penstock.storage.base.atomic import check_target, keep_inputs, write_text
from penstock.storage.base.errors import InputError
from penstock.tools.base.options import ANY, FOLDER, FORCE, OUTPUT, console_options, option, option_group
from penstock.tools.base.output import Console

if TYPE_CHECKING:
    from penstock.tools.report.read_metrics import RunMetrics


drawing = option_group(
    "drawn",
    dict,
    option("--html", type=OUTPUT, help="Write one page with pictures, which needs no other file."),
    option("--png", type=FOLDER, help="Write stages.png, time.png, iterations.png into this folder, made if need be."),
    FORCE,
)


@click.command(name="report", short_help="Say what a run did, and what limited it.")
@click.argument("run", type=ANY, metavar="RUN_DIR|METRICS.jsonl")
@drawing
@console_options
def command(run: Path, drawn: dict[str, Any], console: Console) -> None:
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

    html, png, force = drawn["html"], drawn["png"], drawn["force"]
    if html or png:
        from penstock.tools.base.plots import present

        present()
    if html is not None:
        keep_inputs(html, [run])
        check_target(html, force=force)
    runs = read(run)
    if not any(known.iterations for known in runs) and (html or png):
        raise InputError(f"{run} tells of no iteration, so there is nothing to draw; leave out --html and --png")
    written = _drawn(runs, html, png, force=force)
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


def _drawn(runs: list[RunMetrics], html: Path | None, png: Path | None, *, force: bool) -> list[Path]:
    """Draw and write a page, and a folder of pictures, as far as they are asked for; return the files."""
    from penstock.tools.base.plots import as_svg, save
    from penstock.tools.report.figures import pictures
    from penstock.tools.report.page import page

    written = []
    if html is not None:
        drawn = [pictures(run, alone=False) for run in runs]
        svgs = [{name: as_svg(figure) for name, figure in figures.items()} for figures in drawn]
        write_text(html, page(list(zip(runs, svgs, strict=True))), force=force)
        written.append(html)
    if png is not None:
        drawn = [pictures(run, alone=True) for run in runs]
        try:
            png.mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(f"{png} cannot be made: {error.strerror}; name another folder for --png") from error
        for number, figures in enumerate(drawn):
            for name, figure in figures.items():
                path = png / (f"{name}.png" if len(runs) == 1 else f"{number}-{name}.png")
                save(figure, path, force=force)
                written.append(path)
    return written
