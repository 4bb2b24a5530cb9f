"""moelaws fit: a law's parameters from a table, with intervals and diagnostics."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moelaws.cli.output import json_option, print_json, print_table
from moelaws.spec.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

    from moelaws.fitting.report import FitPart, FitReport
    from moelaws.spec.study import Fit


@click.command("fit")
@click.argument("table", type=click.Path(path_type=Path))
@click.option("--law", help="The law's id; `moelaws laws` lists them.")
@click.option("--map", "mapping", multiple=True, metavar="VAR=COLUMN", help="Column of a variable.")
@click.option("--rows", metavar="EXPR", help="Rows to use, such as 'C >= 1e19 and S > 0'.")
@click.option("--holdout", metavar="EXPR", help="Rows kept for validation, such as 'S>=0.98'.")
@click.option("--split-by", metavar="COLUMN", help="One fit for each value of a column.")
@click.option("--bootstrap", type=int, help="Refits for the intervals (default 200).")
@click.option("--level", type=float, help="Of the intervals (default 0.9).")
@click.option("--seed", default=0, show_default=True, help="Of the starts and the bootstrap.")
@click.option("--out", type=click.Path(path_type=Path), help="FILE.json; draws go beside it.")
@click.option("--spec", metavar="JSON|FILE", help="A study's fit entry, instead of the options.")
@json_option
def command(
    table: Path, seed: int, out: Path | None, spec: str | None, as_json: bool, **options: Any
) -> None:
    """Fit a law to TABLE (Parquet or CSV), with intervals and diagnostics.

    A column that has a variable's own name needs no --map; the loss is L.
    """
    given = {key: value for key, value in options.items() if value not in (None, ())}
    if spec is not None and given:
        named = ", ".join("--" + _flag(key) for key in given)
        raise UserError(f"--spec holds the whole fit; leave {named} out")
    entry = _entry(spec) if spec is not None else _from_options(given, out)
    if out is not None and out.suffix != ".json":
        raise UserError(f"--out is {str(out)!r}; a path ending in .json is wanted")

    from moelaws import laws
    from moelaws.fitting.fit import fit
    from moelaws.fitting.report import write_fit

    law = laws.get(entry.law)
    frame = _read(table)
    with _progress() as progress:
        report = fit(law, frame, entry, seed=seed, label=str(table), progress=progress)
    if out is not None:
        write_fit(report, out)
    if as_json:
        print_json(report.to_json())
    else:
        _print(report)
    for warning in report.warnings:
        click.echo(f"warning: {warning}", err=True)


def _flag(key: str) -> str:
    return {"mapping": "map"}.get(key, key.replace("_", "-"))


def _entry(spec: str) -> Fit:
    """The fit entry in a JSON text, or in the file that it names."""
    from moelaws.records.files import read_json
    from moelaws.spec.base import parse
    from moelaws.spec.study import Fit

    if not spec.lstrip().startswith("{"):
        return parse(Fit, read_json(Path(spec)), spec)
    try:
        return parse(Fit, json.loads(spec), "--spec")
    except json.JSONDecodeError as error:
        raise UserError(f"--spec: not JSON: {error}") from None


def _from_options(given: dict[str, Any], out: Path | None) -> Fit:
    from moelaws.spec.base import parse
    from moelaws.spec.study import Fit

    if "law" not in given:
        raise UserError("--law is missing; `moelaws laws` lists the laws")
    mapping = {}
    for text in given.pop("mapping", ()):
        variable, equals, column = text.partition("=")
        if not (variable and equals and column):
            raise UserError(f"--map {text!r} is not VAR=COLUMN, such as L=loss")
        mapping[variable] = column
    return parse(Fit, {"name": "fit", "mapping": mapping, **given}, "moelaws fit")


def _read(path: Path) -> pd.DataFrame:
    import pandas as pd

    from moelaws.tables.parquet import is_study, read_study, read_table

    if path.suffix != ".csv":
        return read_study(path) if is_study(path) else read_table(path)
    try:
        return pd.read_csv(path)
    except FileNotFoundError:
        raise UserError(f"{path}: no such table") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: not a readable CSV file: {error}") from None


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """A bar on standard error, silent where that is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        tasks: dict[str, Any] = {}

        def show(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total)
            bars.update(tasks[stage], completed=done)

        yield show


def _print(report: FitReport) -> None:
    for part in report.parts:
        _print_part(report, part)


def _print_part(report: FitReport, part: FitPart) -> None:
    where = "".join(f", {column} = {value:.6g}" for column, value in part.where.items())
    state = "converged" if part.converged else "NOT converged"
    click.echo(f"{report.law}{where}: {part.n} rows ({report.source}), {state}")
    for reason, count in part.left_out.items():
        click.echo(f"  left out: {count} ({reason})")
    percent = f"{100 * report.level:g} %"
    print_table(
        ("parameter", "estimate", f"low ({percent})", "high"),
        [(name, p.estimate, p.low, p.high) for name, p in part.params.items()],
    )
    errors = [(k, v, (part.holdout or {}).get(k)) for k, v in part.metrics.items()]
    print_table(("error", "fitted", "held out"), errors)
    starts = part.diagnostics.get("starts")
    if starts:
        click.echo(
            f"objective {part.objective:.6g}; {starts['reached']} of {starts['run']} starts "
            f"(grid: {starts['grid']:,}) reached it"
        )
    else:
        click.echo(f"objective {part.objective:.6g}")
    click.echo()
