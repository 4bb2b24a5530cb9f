"""``moelaws coordinates``: whether rates of a base shape suit models of all sizes."""

import sys
from pathlib import Path

import click

from moelaws.cli.common import (
    COUNTS,
    REPEATS,
    json_command,
    option,
    out_option,
    print_answer,
    rows_text,
)


@json_command
@option("--optimizer", "The optimizer of the matrices.", click.Choice(["adamw", "muon"]), "adamw")
@option("--widths", "Widths, multiples of 16; 32,64,128,256,512 by default.", COUNTS)
@option("--depths", "Numbers of layers; 2,4,8,16 by default.", COUNTS)
@option("--seeds", "Starts of each model; intervals need two.", REPEATS, 5)
@out_option("A PDF for the figure; a PNG and its numbers (CSV) stand beside it.", ".pdf")
def command(
    optimizer: str,
    widths: tuple[int, ...] | None,
    depths: tuple[int, ...] | None,
    seeds: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Check that first steps change models of all sizes alike (docs/training.md).

    Small mixtures of rising width and depth train ten steps under `completep`, and so do controls
    whose rate follows no rule of that size. A row is the slope of what changed over the size, both
    as logarithms. The exit code is 1 if a slope leaves its prediction, or if the slopes of a
    control do not, for the check would then see nothing.

    \b
    moelaws coordinates --out coordinates.pdf
    """
    from moelaws.analysis.coordinates import slopes
    from moelaws.figures import coordinates as figure
    from moelaws.figures.draw import save
    from moelaws.probing.coordinates import SIZES, measure
    from moelaws.records.progress import reporting

    sizes = {"width": widths or SIZES["width"], "depth": depths or SIZES["depth"]}
    with reporting() as report:
        runs = measure(sizes, optimizer, seeds, report)
    rows = slopes(runs)
    if out:
        save(figure.draw(runs), out)
    judged = [row for row in rows if row["passes"] is not None]
    failed = [row for row in judged if not row["passes"]]
    verdict = f"{len(judged) - len(failed)} of {len(judged)} slopes are as predicted"
    print_answer(as_json, rows, "\n".join([rows_text(judged, *rows[0]), "", verdict]))
    if failed:
        sys.exit(1)
