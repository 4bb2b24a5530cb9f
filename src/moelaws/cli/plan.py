"""``moelaws plan``: how well a grid would determine the laws, and what it would cost."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moelaws.cli.output import json_option, print_json, print_table
from moelaws.cli.project import project_options
from moelaws.records.progress import reporting
from moelaws.spec.project import Project

if TYPE_CHECKING:
    from moelaws.analysis.plan import Planned
    from moelaws.analysis.recovery import Recovered
    from moelaws.grids.budget import Budget

_SAMPLE = 1000


@click.command(name="plan")
@click.argument("study")
@project_options
@click.option("--law", default="", help="The law to simulate; the study's own by default.")
@click.option(
    "--noise",
    type=click.FloatRange(min=0),
    help="Standard deviation of ln L between seeds; the study's own, or 0.003, by default.",
)
@click.option("--seed", type=click.IntRange(min=0), help="Of the noise; 1 by default.")
@click.option("--repeats", type=click.IntRange(min=1), default=1, help="Seeds of each run.")
@click.option(
    "--rows", metavar="EXPR", default="", help="Runs to plan, such as 'C >= 1e11'; all by default."
)
@click.option(
    "--params",
    default="published",
    show_default=True,
    metavar="published|FIT.json",
    help="Coefficients to simulate with: the paper's or a fit's.",
)
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    default=_SAMPLE,
    show_default=True,
    help="Starts of a fit whose law's grid has more.",
)
@click.option("--all", "every", is_flag=True, help="Also coefficients that have no true value.")
@json_option
def command(
    study: str,
    project: Project,
    law: str,
    noise: float | None,
    seed: int | None,
    repeats: int,
    rows: str,
    params: str,
    sample: int,
    every: bool,
    as_json: bool,
) -> None:
    """What STUDY's grid would find and cost, before anything is trained.

    The study's law is simulated at each run of the grid, with noise, and the study's fits are made
    of that: the intervals that they get are those to expect of a sweep that follows the law.
    """
    from moelaws.analysis.plan import fits_of, fitted_table, plan
    from moelaws.analysis.recovery import recovered
    from moelaws.cli.simulate import simulated, write
    from moelaws.grids.sweep import expand_study
    from moelaws.records.layout import Results
    from moelaws.spec.project import load_study
    from moelaws.tables.simulate import simulation_entry

    entry = load_study(study)
    asked = simulation_entry(entry, law, noise=noise, seed=seed, rows=rows)
    sweep = expand_study(entry, project)
    made, about = simulated(sweep, asked, repeats, params)
    costs = _costs(sweep, repeats, rows)
    with tempfile.TemporaryDirectory() as folder, reporting(lines=False) as show:
        results = Results(Path(folder))
        write(made, results.table(project.tier, study, simulated=True), about)
        planned = fits_of(entry, asked, sample)
        found, compared = [], {}
        for one in plan(
            planned,
            project.tier,
            results,
            lambda name: lambda stage, done, total: show(name, done, total),
        ):
            found.append(one)
            if one.report is not None:
                table, units = fitted_table(planned, project.tier, planned.fit(one.name), results)
                compared[one.name] = recovered(one.report, about, table, units)
    if as_json:
        print_json(
            {
                **{key: about[key] for key in ("study", "tier", "law", "params", "noise", "seed")},
                "assumed": about["assumed"],
                "repeats": repeats,
                "rows": len(made.frame),
                "costs": [cost.as_dict() for cost in costs],
                "fits": [_as_json(one, compared.get(one.name, [])) for one in found],
            }
        )
        return
    click.echo(
        f"{study}, {project.tier}: {about['law']} at {len(made.frame)} runs, noise "
        f"{about['noise']:g} of ln L, simulated"
        + (f"\nassumed: {about['assumed']}" if about["assumed"] else "")
    )
    for one in found:
        click.echo()
        _print(one, compared.get(one.name, []), every)
    click.echo()
    for cost in costs:
        _print_cost(cost)


def _costs(sweep: Any, repeats: int, rows: str) -> list[Budget]:
    """What the sweep takes on each device; its whole grid unless ``rows`` chooses runs."""
    from moelaws.accounting.cost import DEVICES
    from moelaws.grids.budget import budget
    from moelaws.tables.kept_weights import kept_runs
    from moelaws.tables.simulate import design

    runs = sweep.runs
    if rows:
        chosen = set(design(sweep, rows)["run_id"])
        runs = [run for run in runs if run.run_id in chosen]
    kept = kept_runs(sweep)
    probed = kept if any(d.hidden for d in sweep.study.derived) else ()
    return [budget([*runs] * repeats, device, kept, probed) for device in DEVICES.values()]


def _as_json(one: Planned, compared: list[Recovered]) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    for p in one.report.parts if one.report else ():
        own = {r.parameter: r.as_dict() for r in compared if r.where == p.where}
        parts.append(
            {
                "where": p.where,
                "n": p.n,
                "converged": p.converged,
                "params": own,
                "r2": p.metrics["r2"],
            }
        )
    return {"name": one.name, "law": one.law, "error": one.reason or None, "parts": parts}


def _print(one: Planned, compared: list[Recovered], every: bool) -> None:
    if one.report is None:
        click.echo(f"{one.name}, {one.law}: cannot be fitted: {one.reason}")
        return
    runs = sum(part.n for part in one.report.parts)
    parts = f" in {len(one.report.parts)} parts" if one.report.split_by else ""
    held = sum(not r.identified for r in compared)
    title = f"{one.name}, {one.report.law}: {runs} rows{parts}, " + (
        f"{held} of {len(compared)} coefficients not identified" if held else "all identified"
    )
    shown = [r for r in compared if every or r.reference is not None]
    if not shown:
        click.echo(f"{title}; none has a true value to compare with (--all shows them)")
        return
    split = one.report.split_by
    print_table(
        (*([split] if split else []), "", "true", "estimate", "low", "high", "width", "identified"),
        [
            (
                *([r.where[split]] if split else []),
                r.parameter + ("" if r.simulated or r.reference is None else " *"),
                "" if r.reference is None else r.reference,
                r.estimate,
                "" if r.low is None else r.low,
                "" if r.high is None else r.high,
                "" if r.relative_width is None else f"{100 * r.relative_width:.3g} %",
                "yes" if r.identified else "no",
            )
            for r in shown
        ],
        title,
    )
    if any(not r.simulated and r.reference is not None for r in shown):
        click.echo("* as published, for another law than the one simulated")


def _print_cost(cost: Budget) -> None:
    disk = ", ".join(f"{name} {b / 1e9:.2g}" for name, b in cost.disk.items() if b >= 5e6)
    click.echo(
        f"{cost.runs:,} runs of {cost.tokens:.3g} tokens in all, {cost.flops:.3g} FLOPs: about "
        f"{cost.hours:,.3g} {cost.device.name} hours, {cost.disk_bytes / 1e9:,.3g} GB of disk"
        + (f" ({disk})" if disk else "")
    )
