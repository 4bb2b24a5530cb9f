"""``moelaws plan``: how well a grid would determine the laws, and what it would cost."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moelaws.cli.answers import JsonCommand, print_json, print_table
from moelaws.cli.common import BEST, COUNT, option
from moelaws.cli.fit import threads_option
from moelaws.cli.project import project_options
from moelaws.cli.simulate import SimulationOptions, simulated, simulation_options, write
from moelaws.files.layout import Results
from moelaws.records.progress import reporting
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project, load_study
from moelaws.spec.words import counted

if TYPE_CHECKING:
    import pandas as pd

    from moelaws.analysis.plan import Coefficient, Planned
    from moelaws.grids.budget import Budget
    from moelaws.grids.sweep import Sweep

# Of the 437,400 starts of Eq 6 one in ten or more reaches the optimum, and of other laws far more.
_SAMPLE = 100
_CORES = min(8, len(os.sched_getaffinity(0))) if sys.platform == "linux" else 1


@click.command(name="plan", cls=JsonCommand)
@click.argument("study_name", metavar="STUDY")
@project_options
@option("--law", "The law to simulate; the study's own by default.", default="")
@simulation_options
@option("--rows", "Runs to plan, such as 'C >= 1e11'; all by default.", default="", metavar="EXPR")
@option("--sample", "Number of starts of a fit whose law has more.", COUNT, _SAMPLE)
@option("--target", "A budget: how well the sweep would tell its best model and the losses.", BEST)
@option("--all every", "Make the study's fits that have no true value, too.", is_flag=True)
@partial(threads_option, default=_CORES, shown="up to 8")
def command(
    study_name: str,
    project: Project,
    law: str,
    options: SimulationOptions,
    rows: str,
    sample: int,
    target: float | None,
    every: bool,
    as_json: bool,
) -> None:
    """Tell how well STUDY's grid would determine the laws, and what it would cost.

    Nothing is trained. The study's law is simulated at each run of the grid, with noise, and the
    study's fits of this law are made of these losses. Their intervals are what to expect of such a
    sweep.
    """
    from moelaws.analysis.plan import fits_of, plan
    from moelaws.grids.sweep import expand_study
    from moelaws.tables.simulate import DEFAULT_MAPPING, simulation_entry

    study = load_study(study_name).at_tier(project.tier)
    if options.noise == 0:
        raise UserError("--noise is 0, but losses vary between trainings; say how far")
    entry = simulation_entry(study, law, noise=options.noise, seed=options.seed, rows=rows)
    sweep = expand_study(study, project)
    simulation, about = simulated(sweep, entry, options.repeats, options.params)
    costs = [*_costs(sweep, options.repeats, rows, project)]
    with tempfile.TemporaryDirectory() as root, reporting(lines=False) as show:
        folder = Results(Path(root)).tier(about["tier"], simulated=True)
        write(simulation, folder.table(study.study), about, code="")

        def progress(name: str) -> Any:
            return lambda _, done, total: show(name, done, total)

        possible = fits_of(study, entry, sample)
        fits = [*plan(possible, folder, about, progress, every)]
    runs, mapping = len(simulation.frame), DEFAULT_MAPPING | entry.mapping
    expected = _expected(simulation.frame, about, target, mapping) if target else {}
    if as_json:
        keys = ("study", "tier", "law", "params", "noise", "seed", "assumed", "repeats")
        data = {"rows": runs, "costs": [c.as_dict() for c in costs], "fits": [*map(_as_json, fits)]}
        print_json({key: about[key] for key in keys} | data | {"expected": expected})
        return
    what = f"{study.study}, {project.tier}: {about['law']} at {counted(runs, 'run')}"
    click.echo(f"{what}, noise {about['noise']:g} of ln L, simulated")
    if about["assumed"]:
        click.echo(f"assumed: {about['assumed']}")
    for fit in fits:
        click.echo()
        _print(fit)
    if others := len(possible.fits) - len(fits):
        click.echo(f"{counted(others, 'other fit')} of the study: --all")
    click.echo()
    for name, error in expected.items():
        click.echo(f"expected {name} at C={target:g}: {100 * error:.2g} % of the loss")
    for cost in costs:
        click.echo(cost.words())
        if cost.device.basis:
            click.echo(cost.device.basis)


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
    frame: pd.DataFrame, about: dict[str, Any], target: float, mapping: Mapping[str, str]
) -> dict[str, float]:
    """Returns what `moelaws next` would expect behind these runs, as parts of the loss."""
    from moelaws.cli.next import answer_to, question_of

    asks = {"laws": (about["law"],), "mapping": (), "cost": "C", "rows": "", "target": target}
    options, none = about | asks, frame["L"].isna().to_numpy()
    question = question_of(frame, none, options, lambda law: mapping)
    each = {"regret": question, "error": replace(question, is_budget=False)}
    return {name: answer_to(own, options, 0.0).error for name, own in each.items()}


def _as_json(fit: Planned) -> dict[str, Any]:
    groups = []
    for fitted in fit.report.parts if fit.report else ():
        own = [vars(c) for c in fit.coefficients if c.where == fitted.where]
        unnamed = [{k: c[k] for k in c if k not in ("where", "parameter")} for c in own]
        params = {c["parameter"]: values for c, values in zip(own, unnamed, strict=True)}
        known = {"where": fitted.where, "n": fitted.n, "converged": fitted.converged}
        groups.append(known | {"params": params, "r2": fitted.metrics["r2"]})
    entry = fit.entry
    return {"name": entry.name, "law": entry.law, "error": fit.reason or None, "parts": groups}


def _print(fit: Planned) -> None:
    report, coefficients = fit.report, fit.coefficients
    if report is None:
        click.echo(f"{fit.entry.name}, {fit.entry.law}: cannot be fitted: {fit.reason}")
        return
    runs, split = sum(fitted.n for fitted in report.parts), report.split_by
    divided = f" in {counted(len(report.parts), 'group')}" if split else ""
    open_ones = sum(not c.identified for c in coefficients)
    state = f"{open_ones} of {len(coefficients)} coefficients not identified"
    title = f"{fit.entry.name}, {report.law}: {counted(runs, 'row')}{divided}, "
    title += state if open_ones else "all identified"
    columns = (*([split] if split else ()), "", "true", "estimate", "low", "high", "width")
    rows = [(*([c.where[split]] if split else ()), *_cells(c)) for c in coefficients]
    print_table((*columns, "identified"), rows, title)
    if any(map(_of_another_law, coefficients)):
        click.echo("* as published, for another law than the one simulated")


def _cells(c: Coefficient) -> tuple[object, ...]:
    """Returns a coefficient's name, true value, estimate, interval and whether it is identified."""
    numbers = ("" if x is None else x for x in (c.reference, c.estimate, c.low, c.high))
    width = "" if c.relative_width is None else f"{100 * c.relative_width:.3g} %"
    mark = " *" if _of_another_law(c) else ""
    return c.parameter + mark, *numbers, width, "yes" if c.identified else "no"


def _of_another_law(coefficient: Coefficient) -> bool:
    return not coefficient.simulated and coefficient.reference is not None
