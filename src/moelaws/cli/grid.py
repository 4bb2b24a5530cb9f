"""``moelaws grid``: what a sweep holds and costs, before anyone spends it."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from moelaws.cli.output import json_option, print_json, print_table
from moelaws.cli.project import project_options
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project

if TYPE_CHECKING:
    from moelaws.grids.sweep import Sweep

LONG = 150  # runs; a longer sweep is summed up by budget and sparsity unless --all is given


@click.command(name="grid")
@click.argument("study")
@project_options
@click.option("--all", "every", is_flag=True, help="A line for each run, however many.")
@click.option("--run", "wanted", help="The configuration of one run alone, for moelaws train.")
@json_option
def command(study: str, project: Project, every: bool, wanted: str | None, as_json: bool) -> None:
    """The runs that STUDY's grid expands to: sizes, FLOPs and estimated cost.

    --run takes a run_id, or the first digits of one.
    """
    from moelaws.accounting.cost import CPU, H100, estimate
    from moelaws.grids.sweep import expand_study, project_sources, too_long_for
    from moelaws.spec.project import load_study
    from moelaws.tables.describe import describe
    from moelaws.tables.kept_weights import kept_runs

    sweep = expand_study(load_study(study), project)
    if not sweep.runs:
        raise UserError(f"config/studies/{study}.yaml has no grids: the study has no runs")
    kept = set(kept_runs(sweep))
    if wanted is not None:
        click.echo(_configuration(sweep, wanted))
        return
    device = CPU if project.tier == "demo" else H100
    rows: list[dict[str, Any]] = []
    for run in sweep.runs:
        cost = estimate(run.config, device)
        rows.append(
            {
                **describe(run),
                "C": run.C,
                "device": device.name,
                "estimated_seconds": cost.seconds,
                "estimated_memory": cost.device_bytes or cost.host_bytes,
            }
        )
    if as_json:
        print_json(rows)
        return
    title = f"{study}, {project.tier}: {len(rows)} runs"
    if every or len(rows) <= LONG:
        columns = [
            "run_id", "C", "S", "E", "k", "n_layers", "d_model", "d_expert", "N_total", "N_active",
            "D", "steps", "lr", "seed", "C_sparsity",
        ]  # fmt: skip
        print_table(
            [*columns, "seconds"],
            [[*(r[c] for c in columns), r["estimated_seconds"]] for r in rows],
            title,
        )
    else:
        _print_summary(rows, title)
    flops = sum(r["C_sparsity"] for r in rows)
    hours = sum(r["estimated_seconds"] for r in rows) / 3600
    memory = max(r["estimated_memory"] for r in rows) / 1e9
    click.echo(
        f"total {flops:.3g} FLOPs (sparsity paper's Eq 9), about {hours:,.2g} {device.name} hours; "
        f"the largest run wants about {memory:.2g} GB"
    )
    if sweep.study.keep_weights.strip():
        size = 4e-9 * sum(r["N_total"] for r in rows if r["run_id"] in kept)
        click.echo(f"weights of {len(kept)} runs are kept, {size:.2g} GB")
    if device.own_memory and memory * 1e9 > device.own_memory:
        click.echo(
            f"moelaws: warning: a run wants more than one {device.name}'s "
            f"{device.own_memory / 1e9:.0f} GB: not even one balance group fits, or one sequence "
            "of a dense model; lower balance_group (batch, where it is not set), context or the "
            "model's size",
            err=True,
        )
    if problem := too_long_for(sweep.runs, project_sources(project)):
        click.echo(f"moelaws: warning: this sweep cannot be run as it is: {problem}", err=True)


def _configuration(sweep: Sweep, wanted: str) -> str:
    """Canonical JSON of the run whose id begins with ``wanted``."""
    found = [run for run in sweep.runs if run.run_id.startswith(wanted)]
    if len(found) != 1:
        raise UserError(
            f"--run {wanted!r}: {len(found)} runs of this sweep begin so; "
            "moelaws grid without --run lists them"
        )
    return found[0].config.canonical_json()


def _print_summary(rows: list[dict[str, Any]], title: str) -> None:
    """A line for each budget and sparsity: ranges over their runs."""
    order = sorted(rows, key=lambda r: (r["C"] or 0, r["S"]))
    lines = []
    for (budget, sparsity), group in groupby(order, key=lambda r: (r["C"], r["S"])):
        runs = list(group)

        def span(name: str, runs: list[dict[str, Any]] = runs) -> str:
            low, high = min(r[name] for r in runs), max(r[name] for r in runs)
            return f"{low:.3g}" if low == high else f"{low:.3g} .. {high:.3g}"

        lines.append(
            [budget, sparsity, len(runs), span("E"), span("d_model"), span("N_total"),
             span("N_active"), span("D"), sum(r["C_sparsity"] for r in runs),
             sum(r["estimated_seconds"] for r in runs) / 3600]
        )  # fmt: skip
    print_table(
        ["C", "S", "runs", "E", "d_model", "N_total", "N_active", "D", "FLOPs", "hours"],
        lines,
        f"{title}, summed up (--all for each)",
    )
