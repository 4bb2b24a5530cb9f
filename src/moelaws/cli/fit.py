"""moelaws fit: a law's parameters from a table, with intervals and diagnostics."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moelaws.cli.common import (
    TABLE,
    WHOLE,
    Answer,
    Decorator,
    json_command,
    law_study_option,
    option,
    out_option,
    pairs_option,
    table_text,
    warn_last,
    with_options,
)
from moelaws.records.progress import reporting
from moelaws.spec.base import parse
from moelaws.spec.errors import ColumnsError, UserError, located
from moelaws.spec.fit import Fit

if TYPE_CHECKING:
    import pandas as pd

    from moelaws.fitting.report import FitReport, GroupFit

# The options that the fit of one law and the comparison of several share.
fit_options = with_options(
    pairs_option(
        "--map mapping",
        "Column of a variable, such as L=loss; may be repeated.",
        "VAR=COLUMN, such as L=loss",
    ),
    pairs_option(
        "--unit units",
        "Unit of a variable's column: K, M, B, T; PF-days and MFLOP to ZFLOP; percent; bits; "
        "or a factor, such as 1e6.",
        "VAR=UNIT, such as N=M or S=percent",
    ),
    option("--rows", "Rows to use, as 'C >= 1e19 and S > 0'.", metavar="EXPR"),
    option("--drop-missing", "Leave out rows with an empty cell.", is_flag=True, default=None),
    option(
        "--best-per",
        "Of rows alike in these columns, use the one of least loss; may be repeated.",
        multiple=True,
        metavar="COLUMN",
    ),
    option(
        "--holdout",
        "Rows kept for validation, such as 'S>=0.98', or a file of them.",
        metavar="EXPR|FILE",
    ),
    option(
        "--objective",
        "Objective (default: the law's own).",
        click.Choice(("huber", "squared", "absolute")),
    ),
    option("--delta", "Threshold of the Huber losses (default: the law's own).", float),
    pairs_option(
        "--fix fixed",
        "Fix a parameter, such as E=1.6; may be repeated.",
        "PARAMETER=VALUE, such as E=1.6",
    ),
    option(
        "--prior priors",
        "What is known of a parameter, its mean and standard deviation; may be repeated.",
        multiple=True,
        metavar="'E ~ N(1.6, .1)'",
        callback=lambda _, __, texts: dict(map(_prior, texts)),
    ),
    option("--weights", "Weight rows by this standard error of the loss.", metavar="COLUMN"),
    option("--bootstrap", "Number of refits behind the intervals (default 200).", int),
    option("--resample-by", "Draw blocks (default: the table's own).", metavar="COLUMN|rows"),
    option("--level", "Level of the intervals (default 0.9).", float),
)
_HELD = "of_the_holdout"  # a column that is 1 in rows of the hold-out's own file, else 0
seed_option = option("--seed", "Seed of the starts and the bootstrap.", WHOLE, 0)


def threads_option(default: int = 1, shown: str = "1") -> Decorator:
    """Returns ``--threads``: fits within the command use these cores, and keep freed memory."""
    help = "Cores to use; the results are the same to the last digit."
    cores, more = click.IntRange(1, 256), {"expose_value": False, "callback": _use_threads}
    return option("--threads", help, cores, default, show_default=shown, **more)


def _use_threads(context: click.Context, _: click.Parameter, threads: int) -> None:
    from moelaws.records.memory import keep_freed_memory

    keep_freed_memory()
    # One thread is the default, so a command that fits nothing loads none of the code for it.
    if threads > 1:
        from moelaws.fitting.cores import using_cores

        context.with_resource(using_cores(threads))


@json_command
@click.argument("table", type=TABLE)
@option("--law", "The law, or LAW:VARIANT; `moelaws laws` lists them.")
@fit_options
@option("--split-by", "One fit for each value of a column.", metavar="COLUMN")
@option("--select", "Choose among the law's forms by cross-validation.", is_flag=True)
@option("--sample", "Run only so many of the law's starts (default: all).", int)
@option(
    "--intervals",
    "auto takes Student's t for least squares and the bootstrap otherwise; none gives none, for "
    "rows that come from other fits.",
    click.Choice(("auto", "bootstrap", "none")),
)
@option("--profile", "Add its profile likelihood.", multiple=True, metavar="PARAMETER")
@seed_option
@threads_option()
@out_option("FILE.json; draws go beside it.", ".json")
@law_study_option
def command(table: Path, seed: int, out: Path | None, **options: Any) -> Answer:
    """Fit a law to TABLE (Parquet, CSV, TSV, JSON or Markdown), with intervals and diagnostics.

    TABLE may also be the FIT.json of a fit that was split. It then has a row for each
    value of the split column and a column for each parameter.

    A column that has a variable's own name needs no --map; the loss is L. In a study's table N is
    the column that the law means, such as N_total. Variables that have no column are derived where
    they can be, such as D = C / (6 N_active), and the output says so.
    """
    # ``is not``, because 0 == False: a zero that was given must be refused, not forgotten.
    given = {k: v for k, v in options.items() if v is not None and v is not False and v != ()}
    if "law" not in given:
        raise UserError("--law is missing; `moelaws laws` lists the laws")
    entry = from_options({"name": "fit"} | given, "fit")
    from moelaws.cli.laws import join_own_laws

    join_own_laws([entry.law])
    with repaired():
        return answer_of(fit_entry(entry, table, out, seed, by_hand=True))


def fit_entry(
    entry: Fit, table: Path, out: Path | None, seed: int = 0, by_hand: bool = False
) -> FitReport:
    """Returns the fit ``entry`` of a table, and writes it to ``out``, with its draws.

    Only ``by_hand`` a law may take its size from compute that a table of others has.
    """
    from moelaws import laws
    from moelaws.files.seal import made_of
    from moelaws.fitting.fit import fit
    from moelaws.fitting.report import write_fit
    from moelaws.fitting.variables import sized_by_compute
    from moelaws.records.code import digest
    from moelaws.tables.foreign import file_and_part
    from moelaws.tables.parquet import is_study
    from moelaws.workflow.code import of_fit

    law = laws.fittable(entry.law)
    frame, declared, spec, files = read_all(table, entry)
    if by_hand and not is_study(table):
        law = sized_by_compute(law)
    with reporting() as progress, located(table):
        report = fit(law, frame, spec, seed=seed, units=declared, progress=progress)
    if out is not None:
        sources = [file_and_part(file)[0] for file in files]
        write_fit(report, out, made_of(sources, digest(of_fit(entry.law))))
    return report


def answer_of(report: FitReport) -> Answer:
    """Returns a fit's report, with estimates, errors and diagnostics for people; warns of it."""
    warn_last(*report.warnings)
    lines = []
    if report.selection:
        columns = ("form", "parameters", "held-out mse", "standard error", "Pearson")
        rows = [tuple(form.values()) for form in report.selection["ranked"]]
        lines += [table_text(columns, rows, "Cross-validation, best forms first:"), ""]
    lines += [line for part in report.parts for line in _lines(report, part)]
    return report.to_json(), "\n".join(lines)


@contextmanager
def repaired() -> Iterator[None]:
    """Adds the call with likely columns and units to a message on those that do not fit."""
    try:
        yield
    except ColumnsError as error:
        call = shlex.join(["moelaws", *sys.argv[1:]])
        for name in error.columns:
            call = re.sub(rf" --map[ =]('?){name}=.*?\1(?= |$)", "", call)
        added = [("--map", *pair) for pair in error.columns.items()]
        added += [("--unit", *pair) for pair in error.units.items()]
        words = [word for flag, name, value in added for word in (flag, f"{name}={value}")]
        if not words:
            raise
        raise UserError(f"{error}; if it is so: {call} {shlex.join(words)}") from None


def read_all(path: Path, entry: Fit) -> tuple[pd.DataFrame, dict[str, str], Fit, tuple[Path, ...]]:
    """Returns the table at ``path``, its units, the entry of its fit, and the files that were read.

    If the entry's hold-out is a file, its rows join the table, and the entry holds them out.
    """
    import pandas as pd

    from moelaws.fitting.rows import read_rows

    frame, units = read_rows(path)
    held = Path(entry.holdout)
    if not held.is_file():
        return frame, units, entry, (path,)
    others, own = read_rows(held)
    if clash := [n for n in map(str, others) if n in frame and units.get(n) != own.get(n)]:
        raise UserError(f"{held}: its column {clash[0]} is in another unit than that of {path}")
    parts = [frame.assign(**{_HELD: 0}), others.assign(**{_HELD: 1})]
    joined = pd.concat(parts, ignore_index=True)
    joined.attrs = frame.attrs
    return joined, units, entry.model_copy(update={"holdout": f"{_HELD} > 0"}), (path, held)


def from_options(given: dict[str, Any], where: str) -> Fit:
    """Returns the entry that the options ``given`` make; messages call it ``where``."""
    protocol = {key: given.pop(key) for key in ("objective", "delta", "sample") if key in given}
    return parse(Fit, {"protocol": protocol, **given}, where)


def _prior(text: str) -> tuple[str, tuple[str, str]]:
    """Returns parameter, mean and standard deviation of ``E ~ N(1.6, .1)``."""
    match = re.fullmatch(r"\s*(\w+)\s*~\s*N\(([^,()]+),([^,()]+)\)\s*", text)
    if match is None:
        raise UserError(f"--prior {text!r} is not PARAMETER ~ N(MEAN, SD), such as E ~ N(1.6, .1)")
    return match[1], (match[2].strip(), match[3].strip())


def _lines(report: FitReport, fitted: GroupFit) -> Iterator[str]:
    from moelaws.fitting.report import place

    where = f", {place(fitted.where)}" if fitted.where else ""
    state = "converged" if fitted.converged else "NOT converged"
    yield f"{report.law}{where}: {fitted.n} rows ({report.source}), {state}"
    for note in fitted.notes:
        yield f"  {note}"
    for reason, count in fitted.left_out.items():
        yield f"  left out: {count} ({reason})"
    ends = ("estimate", f"low ({100 * report.level:g} %)", "high")
    estimates = [(name, p.estimate, p.low, p.high) for name, p in fitted.params.items()]
    yield table_text(("parameter", *ends), estimates)
    yield f"intervals: {fitted.intervals}"
    if fitted.profile:
        profiles = [(name, p.estimate, p.low, p.high) for name, p in fitted.profile.items()]
        yield table_text(("profile likelihood", *ends), profiles)
    errors = [(k, v, (fitted.holdout or {}).get(k)) for k, v in fitted.metrics.items()]
    yield table_text(("error", "fitted", "held out"), errors)
    objective, starts = f"objective {fitted.objective:.9g}", fitted.diagnostics.starts
    if starts:
        pruned = f"; {starts.survived} survived pruning, " if starts.sample else "; "
        objective += f"; {starts.run:,} of the grid's {starts.grid:,} starts{pruned}"
        objective += f"{starts.reached} of {starts.survived} reached the optimum"
    yield objective
    if starts and starts.sample:
        lost = "found a LOWER optimum" if starts.pruning_lost else "found none lower"
        yield (
            f"pruning: a sample of {starts.sample} starts run to the end {lost} "
            f"({starts.sample_reached} reached it)"
        )
    yield ""
