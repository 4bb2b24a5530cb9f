"""``moelaws plan`` and ``simulate``: what a grid would tell and cost, before any training."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moelaws.cli.common import (
    BEST,
    COUNT,
    PARAMS,
    REPEATS,
    WHOLE,
    Answer,
    Data,
    between,
    json_command,
    option,
    out_option,
    pairs_option,
    table_text,
    with_options,
)
from moelaws.cli.fit import threads_option
from moelaws.cli.project import project_options
from moelaws.files.layout import Results
from moelaws.records.code import digest
from moelaws.records.progress import reporting
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project, load_study
from moelaws.spec.study import Simulation as SimulationEntry
from moelaws.spec.words import counted

if TYPE_CHECKING:
    import pandas as pd

    from moelaws.analysis.plan import Coefficient, Planned
    from moelaws.grids.budget import Budget
    from moelaws.grids.sweep import Sweep
    from moelaws.laws.base import FittableLaw
    from moelaws.tables.simulate import Simulation


# Adds ``--noise``, ``--seed``, ``--repeats`` and ``--params``, which ``from_options`` takes.
simulation_options = with_options(
    option(
        "--noise",
        "Standard deviation of ln of the loss (of the response itself for laws not of a log); "
        "0.003 unless the study says otherwise.",
        between(0, 100),
    ),
    option("--seed", "Seed of the noise; 1 unless the study says otherwise.", WHOLE),
    option("--repeats", "Seeds of each run of the grid.", REPEATS, 1),
    option(
        "--params",
        "Coefficients to simulate with: the paper's or a fit's.",
        PARAMS,
        "published",
        metavar="published|FIT.json",
    ),
)


@json_command
@click.argument("law_ref", metavar="[LAW]", default="")
@option("--study study_name", "The study whose grid gives the points.", required=True)
@project_options
@simulation_options
@option("--rows", "Runs to use, such as 'C >= 1e11'.", metavar="EXPR")
@pairs_option(
    "--map mapping",
    "The grid's column of a variable; by default as the fit or the study has it.",
    "VAR=COLUMN, such as N=N_active",
)
@out_option(
    "FILE.parquet or FILE.csv to write; STUDY.parquet in this folder by default.",
    ".parquet",
    ".csv",
)
def simulate(
    law_ref: str,
    study_name: str,
    project: Project,
    mapping: dict[str, str],
    out: Path | None,
    **options: Any,
) -> Answer:
    """Write a table of LAW's losses at the points of a study's grid, with noise.

    Without LAW it is the study's own `simulation`, as `--config source=simulated` makes it.
    Nothing is trained or tokenised. `moelaws fit` on the table tells how well the grid
    determines the law; `moelaws plan` does both.
    """
    from moelaws.grids.sweep import expand_study
    from moelaws.tables.simulate import write
    from moelaws.workflow.code import of_simulation

    study = load_study(study_name)
    _, simulation, about = from_options(expand_study(study, project), law_ref, mapping, **options)
    path = out or Path(f"{study.study}.parquet")
    write(simulation, path, about, digest(of_simulation(about["law"])))
    runs = len(simulation.frame)
    variables = ", ".join(f"{name} = {origin}" for name, origin in simulation.origins.items())
    text = (
        f"{path}: {counted(runs, 'simulated run')} of {study.study}, {project.tier}\n"
        f"{about['law']} of {variables}"
    )
    return {"table": path, "rows": runs, **about}, text


def from_options(
    sweep: Sweep,
    law: str,  # if it is not the study's own
    mapped: Mapping[str, str] = {},  # variable -> column, before those of the study and the fit
    *,
    repeats: int,  # seeds of each run
    params: str,  # published, or the file of a fit's report
    **entry: Any,  # rows, noise and seed; where one is None, the study says it
) -> tuple[SimulationEntry, Simulation, Data]:
    """Returns what the options ask for: the entry, its table, and how that was simulated."""
    from moelaws.tables.simulate import simulated, simulation_entry

    own = simulation_entry(sweep.study, law, **entry)
    fitted = None if params == "published" else _coefficients(own.law, params)
    return own, *simulated(sweep, own, repeats, fitted, mapped)


def _coefficients(ref: str, params: str) -> tuple[FittableLaw, dict[str, float], dict[str, str]]:
    """Returns the form of a law, its coefficients, and the mapping that they were fitted with."""
    from moelaws import laws
    from moelaws.fitting.report import read_fit

    report, law = read_fit(Path(params)), laws.fittable(ref)
    form = laws.fittable(report.law)  # a fit may have chosen it
    if form.id != law.id or law.variant not in ("", form.variant):
        raise UserError(f"{params} holds a fit of {form.ref}; give a fit of {law.ref}")
    if (unit := report.unit(law.response)) != law.response.unit:
        raise UserError(f"{params}: its losses are in {unit}, and tables in {law.response.unit}")
    if column := report.split_by:
        raise UserError(f"{params}: it is split by {column}, and one fit is needed of all rows")
    return form, report.parts[0].estimates(), dict(report.spec.get("mapping", {}))


# Of the 437,400 starts of Eq 6 one in ten or more reaches the optimum, and of other laws far more.
_SAMPLE = 100
_CORES = min(8, len(os.sched_getaffinity(0))) if sys.platform == "linux" else 1


@json_command
@click.argument("study_name", metavar="STUDY")
@project_options
@option("--law", "The law to simulate; the study's own by default.", default="")
@simulation_options
@option("--rows", "Runs to plan, such as 'C >= 1e11'; all by default.", default="", metavar="EXPR")
@option("--sample", "Number of starts of a fit whose law has more.", COUNT, _SAMPLE)
@option("--target", "A budget: how well the sweep would tell its best model and the losses.", BEST)
@option("--all every", "Make the study's fits that have no true value, too.", is_flag=True)
@threads_option(_CORES, "up to 8")
def command(
    study_name: str,
    project: Project,
    law: str,
    rows: str,
    sample: int,
    target: float | None,
    every: bool,
    **options: Any,
) -> Answer:
    """Tell how well STUDY's grid would determine the laws, and what it would cost.

    Nothing is trained. The study's law is simulated at each run of the grid, with noise, and the
    study's fits of this law are made of these losses. Their intervals are what to expect of such a
    sweep.
    """
    from moelaws.analysis.plan import fits_of, plan
    from moelaws.grids.sweep import expand_study
    from moelaws.tables.simulate import DEFAULT_MAPPING, write

    study = load_study(study_name).at_tier(project.tier, project.stages)
    if options["noise"] == 0:
        raise UserError("--noise is 0, but losses vary between trainings; say how far")
    sweep = expand_study(study, project)
    entry, simulation, about = from_options(sweep, law, rows=rows, **options)
    costs = [*_costs(sweep, options["repeats"], rows, project)]
    with tempfile.TemporaryDirectory() as root, reporting(lines=False) as show:
        folder = Results(Path(root)).tier(about["tier"], simulated=True)
        write(simulation, folder.table(study.study), about, code="")

        def progress(name: str) -> Any:
            return lambda _, done, total: show(name, done, total)

        possible = fits_of(study, entry, sample)
        fits = [*plan(possible, folder, about, progress, every)]
    runs, mapping = len(simulation.frame), DEFAULT_MAPPING | entry.mapping
    expected = _expected(simulation.frame, about, target, mapping) if target else {}
    keys = ("study", "tier", "law", "params", "noise", "seed", "assumed", "repeats")
    data = {key: about[key] for key in keys} | {
        "rows": runs,
        "costs": [cost.as_dict() for cost in costs],
        "fits": [*map(_as_data, fits)],
        "expected": expected,
    }
    lines = [
        f"{study.study}, {project.tier}: {about['law']} at {counted(runs, 'run')}, noise "
        f"{about['noise']:g} of ln L, simulated"
    ]
    lines += [f"assumed: {about['assumed']}"] if about["assumed"] else []
    lines += [f"\n{_as_text(fit)}" for fit in fits]
    if others := len(possible.fits) - len(fits):
        lines.append(f"{counted(others, 'other fit')} of the study: --all")
    lines.append("")
    for name, error in expected.items():
        lines.append(f"expected {name} at C={target:g}: {100 * error:.2g} % of the loss")
    for cost in costs:
        lines += filter(None, [cost.words(), cost.device.basis])
    return data, "\n".join(lines)


def _costs(sweep: Sweep, repeats: int, rows: str, project: Project) -> Iterator[Budget]:
    """Yields what the runs that ``rows`` chooses, or else all, cost on a CPU and on a GPU."""
    from moelaws.accounting.cost import device_of
    from moelaws.grids.budget import budget
    from moelaws.grids.timings import learned
    from moelaws.tables.describe import kept_runs
    from moelaws.tables.simulate import design

    runs = sweep.runs
    if rows:
        chosen = set(design(sweep, rows)["run_id"])
        runs = tuple(run for run in runs if run.run_id in chosen)
    kept = kept_runs(sweep)
    probed = kept if any(d.hidden for d in sweep.study.derived) else ()
    for kind in ("cpu", "cuda"):
        device = learned(device_of(kind, project), Results())
        yield budget(runs * repeats, device, kept, probed, project.devices_per_run)


def _expected(
    frame: pd.DataFrame, about: Data, target: float, mapping: Mapping[str, str]
) -> dict[str, float]:
    """Returns what `moelaws next` would expect behind these runs, as parts of the loss."""
    from moelaws.analysis.choice.ask import ask
    from moelaws.cli.rounds import Options, question_of

    options = Options(
        laws=(about["law"],), mapping={}, cost="C", rows="", target=target, search=(), per=()
    )
    question = question_of(frame, frame["L"].isna().to_numpy(), options, lambda law: mapping)
    each = {"regret": question, "error": replace(question, is_budget=False)}
    return {name: ask(q, about["noise"], 0.0, about["seed"]).error for name, q in each.items()}


def _as_data(fit: Planned) -> Data:
    entry = fit.entry
    groups = [
        {
            "where": own.where,
            "n": own.n,
            "converged": own.converged,
            "params": {name: vars(known) for name, known in coefficients.items()},
            "r2": own.metrics["r2"],
        }
        for own, coefficients in fit.parts
    ]
    return {"name": entry.name, "law": entry.law, "error": fit.reason or None, "parts": groups}


def _as_text(fit: Planned) -> str:
    report, split = fit.report, fit.entry.split_by
    if report is None:
        return f"{fit.entry.name}, {fit.entry.law}: cannot be fitted: {fit.reason}"
    rows = [
        (*own.where.values(), *_cells(name, known))
        for own, coefficients in fit.parts
        for name, known in coefficients.items()
    ]
    every = [known for _, coefficients in fit.parts for known in coefficients.values()]
    runs, open_ones = sum(own.n for own, _ in fit.parts), sum(not c.identified for c in every)
    divided = f" in {counted(len(fit.parts), 'group')}" if split else ""
    state = f"{open_ones} of {len(every)} coefficients not identified"
    title = f"{fit.entry.name}, {report.law}: {counted(runs, 'row')}{divided}, "
    title += state if open_ones else "all identified"
    columns = (*([split] if split else ()), "", "true", "estimate", "low", "high", "width")
    text = table_text((*columns, "identified"), rows, title)
    note = "* as published, for another law than the one simulated"
    return f"{text}\n{note}" if any(c.is_of_another_law for c in every) else text


def _cells(name: str, c: Coefficient) -> tuple[object, ...]:
    """Returns a coefficient's name, true value, estimate, interval and whether it is identified."""
    numbers = ("" if x is None else x for x in (c.reference, c.estimate, c.low, c.high))
    width = "" if c.relative_width is None else f"{100 * c.relative_width:.3g} %"
    mark = " *" if c.is_of_another_law else ""
    return name + mark, *numbers, width, "yes" if c.identified else "no"
