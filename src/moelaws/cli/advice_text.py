"""How advice is printed: tables of plans and of regrets for people, one JSON object for scripts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from moelaws.cli.output import print_table

if TYPE_CHECKING:
    from moelaws.accounting.cost import Device
    from moelaws.analysis.advice import Advice, Recommendation
    from moelaws.analysis.advice.build import Configuration
    from moelaws.analysis.advice.speed import Speed
    from moelaws.analysis.advice.sweeps import Candidate


def print_advice(
    answer: Advice, sweeps: Sequence[Candidate], device: Device, speed: Speed | None
) -> None:
    from moelaws.analysis.advice.notes import notes, settings_in_words

    limits = answer.limits
    click.echo(
        f"budget: {limits.compute:.3g} FLOPs (6 N_active D), about "
        f"{_hours(limits.compute, device)} at an assumed {device.flops_per_second:.3g} FLOP/s"
    )
    for name, most in limits.max_parameters.items():
        click.echo(f"{name} holds {_count(most)} parameters")
    if limits.served_tokens:
        served = 2 * float(answer.robust.plan.N_active) * limits.served_tokens / limits.compute
        click.echo(
            f"the budget also serves {_count(limits.served_tokens)} tokens (2 N_active FLOPs "
            f"each), which takes {100 * served:.0f} % of it in the robust plan"
        )
    if limits.max_tokens < math.inf:
        click.echo(f"at most {_count(limits.max_tokens)} training tokens")
    click.echo()
    _print_plans(answer, speed)
    click.echo()
    _print_regrets(answer)
    click.echo()
    if answer.configuration:
        _print_configuration(answer.configuration, limits.gpus, device)
    if said := settings_in_words(answer):
        click.echo(f"laws of one variable say: {said}")
    for note in notes(answer):
        click.echo(f"note: {note}")
    if sweeps:
        _print_sweeps(answer, sweeps, device)


def _print_plans(answer: Advice, speed: Speed | None) -> None:
    columns = ["plan", "N", "N_active", "S", "E / k", "D", "D / N_active", "extrapolated", "limit"]
    rows: list[list[str]] = []
    for row in answer.rows:
        plan = row.plan.values()
        rows.append(
            [
                row.name,
                *(_count(plan[name]) for name in ("N", "N_active")),
                f"{plan['S']:.3g}",
                f"{plan['expansion']:.3g}",
                _count(plan["D"]),
                _count(plan["D"] / plan["N_active"]),
                _extrapolated(answer, row),
                ", ".join(row.at_limits),
            ]
        )
        if row.intervals:
            ends = {name: [_count(x) for x in pair] for name, pair in row.intervals.items()}
            sparsity = " to ".join(f"{x:.3g}" for x in row.intervals["S"])
            between = [" to ".join(ends[name]) for name in ("N", "N_active", "D")]
            rows.append(["  90 % by its draws", *between[:2], sparsity, "", between[2], "", "", ""])
    if speed:
        columns.insert(-1, "hours")
        told = {row.name: _number(speed.hours(row.plan)) for row in answer.rows}
        for cells in rows:
            cells.insert(-1, told.get(cells[0], ""))
    print_table(columns, rows)
    if speed:
        beyond = [row.name for row in answer.rows if speed.beyond(row.plan)]
        click.echo(
            f"hours are those of {speed.device}, by the speed of {speed.runs} runs over size "
            "and sparsity"
        )
        if beyond:
            click.echo(f"beyond these runs their nearest speed counts: {', '.join(beyond)}")


def _extrapolated(answer: Advice, row: Recommendation) -> str:
    """Returns how far a law's own plan lies beyond the runs behind the law, in the farthest way."""
    from moelaws.analysis.advice.notes import decades

    distances = row.beyond.get(row.name) or answer.far.get(row.name) or {}
    name = max(distances, key=distances.__getitem__, default="")
    return f"{decades(distances[name])} of {name}" if name else ""


def _print_regrets(answer: Advice) -> None:
    click.echo(
        "What each plan costs if the law above a column is right: nats above the best plan by"
    )
    click.echo(
        "that law, and how many times the compute that the best plan needs for the same loss."
    )
    if any(len(judge.draws) for judge in answer.judges):
        click.echo("In brackets: the 90 % interval over a fit's draws, whose upper end counts.")
    counting = answer.court.counting
    names = [
        judge.name + ("" if i in counting else " (does not count)")
        for i, judge in enumerate(answer.judges)
    ]
    rows = [(row.name, *map(str, row.regrets), f"{row.worst:.3f}") for row in answer.rows]
    print_table(("plan", *names, "worst"), rows)


def _print_configuration(c: Configuration, gpus: int, device: Device) -> None:
    from moelaws.analysis.advice.notes import shape_in_words

    counts = c.parameters
    click.echo("a configuration that can be built, near the robust plan:")
    click.echo(f"  {shape_in_words(c.model)}")
    click.echo(
        f"  {_count(counts.total)} parameters, {_count(counts.active)} active; "
        f"{_count(c.tokens)} tokens"
    )
    flops = ", ".join(f"{name} {value:.3g}" for name, value in c.flops.items())
    click.echo(f"  training FLOPs by convention: {flops}")
    where = f"on each of {gpus} GPUs" if gpus > 1 else "in all"
    click.echo(
        f"  about {_hours(c.flops['all'], device)}; {_number(c.gpu_bytes / 1e9)} GB {where} to "
        f"train in, {2 * counts.total / 1e9:,.4g} GB to serve from in bf16"
    )


def _print_sweeps(answer: Advice, sweeps: Sequence[Candidate], device: Device) -> None:
    click.echo()
    now, then = answer.robust.worst, sweeps[0].worst
    if answer.all_extrapolate:
        click.echo("Every law extrapolates here.")
    if then < now:
        click.echo(
            "The first of these small sweeps would at best narrow the worst regret from "
            f"{now:.3f} to {then:.3f} nats."
        )
    else:
        click.echo(
            "If one of these laws is right, no small sweep would narrow the regret: they nearly "
            "agree on the robust plan. A sweep tells whether they hold for your data."
        )
    click.echo("By each law, if it is right: what the plan of a refit to the sweep's runs costs at")
    click.echo("most in 95 of 100 times, in nats, and what the robust plan above costs without it.")
    names = [judge.name for judge in answer.judges]
    today = [f"{regret.worst:.3f}" for regret in answer.robust.regrets]
    rows: list[tuple[Any, ...]] = [("none: today's robust plan", 0, "0", "0", *today)]
    rows += [
        (
            sweep.name,
            sweep.runs,
            f"{sweep.flops:.2g}",
            _hours(sweep.flops, device),
            *(f"{sweep.regret[name]:.3f}" for name in names),
        )
        for sweep in sweeps
    ]
    print_table(("budgets of a sweep", "runs", "FLOPs", "at least", *names), rows)


def _hours(flops: float, device: Device) -> str:
    return f"{_number(flops / device.flops_per_second / 3600)} {device.name} hours"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _count(value: float) -> str:
    """Returns a number as people write it: 8.33B, 1.2T; small ones as they are."""
    for unit, scale in (("T", 1e12), ("B", 1e9), ("M", 1e6), ("K", 1e3)):
        if value >= 0.9995 * scale:
            return f"{value / scale:.3g}{unit}" if value < 999.5 * scale else f"{value:.3g}"
    return f"{value:.3g}"


def advice_json(
    answer: Advice, sweeps: Sequence[Candidate], device: Device, speed: Speed | None
) -> dict[str, Any]:
    from moelaws.analysis.advice.regret import LEVEL

    limits, c = answer.limits, answer.configuration
    hours = device.flops_per_second * 3600
    data: dict[str, Any] = {
        "compute": limits.compute,
        "gpu_hours": {device.name: limits.compute / hours},
        "limits": {name: value for name, value in asdict(limits).items() if name != "compute"},
        "level": LEVEL,
        "judges": [
            {
                "name": judge.name,
                "law": judge.law.ref,
                "coefficients": judge.coefficients,
                "source": judge.source,
                "fitted_on": judge.fitted_on,
                "warnings": judge.warnings,
                "counts": judge.determined,
            }
            for judge in answer.judges
        ],
        "plans": [_row_as_json(row, answer) for row in answer.rows],
        "hours": speed
        and {
            "device": speed.device,
            "runs": speed.runs,
            "plans": {row.name: speed.hours(row.plan) for row in answer.rows},
        },
        "configuration": None,
        "not_built": answer.not_built or None,
        "set": answer.set,
        "left_out": answer.left_out,
        "all_extrapolate": answer.all_extrapolate,
        "sweeps": [asdict(sweep) for sweep in sweeps],
    }
    if c:
        data["configuration"] = {
            "model": c.model.model_dump(mode="json"),
            "parameters": {"total": c.parameters.total, "active": c.parameters.active},
            "tokens": c.tokens,
            "flops": c.flops,
            "r": c.r,
            "gpu_hours": {device.name: c.flops["all"] / hours},
            "gpu_bytes": c.gpu_bytes,
        }
    return data


def _row_as_json(row: Recommendation, answer: Advice) -> dict[str, Any]:
    names: Sequence[str] = [judge.name for judge in answer.judges]
    regrets: Mapping[str, Any] = dict(zip(names, map(asdict, row.regrets), strict=True))
    return {
        "name": row.name,
        **row.plan.values(),
        "intervals": row.intervals,
        "regret": regrets,
        "worst": row.worst,
        "beyond": row.beyond,
        "at_limits": row.at_limits,
    }
