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
    from moelaws.analysis.advice import Advice, Recommendation, Regret
    from moelaws.analysis.advice.build import Configuration
    from moelaws.analysis.advice.speed import Speed
    from moelaws.analysis.advice.sweeps import Candidate


def print_advice(
    answer: Advice, sweeps: Sequence[Candidate], device: Device, speed: Speed | None
) -> None:
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
    else:
        click.echo(f"no configuration: {answer.not_built}")
    _print_setters(answer)
    _print_caveats(answer)
    if sweeps:
        _print_sweeps(answer, sweeps, device)


def _print_plans(answer: Advice, speed: Speed | None) -> None:
    columns = ["what each recommends", "N", "N_active", "S", "D", "D / N_active", "at the limit of"]
    rows: list[list[str]] = []
    for row in answer.rows:
        plan = row.plan.values()
        rows.append(
            [
                row.name,
                *(_count(plan[name]) for name in ("N", "N_active")),
                f"{plan['S']:.3g}",
                _count(plan["D"]),
                _count(plan["D"] / plan["N_active"]),
                ", ".join(row.at_limits),
            ]
        )
        if row.intervals:
            ends = {name: [_count(x) for x in pair] for name, pair in row.intervals.items()}
            sparsity = " to ".join(f"{x:.3g}" for x in row.intervals["S"])
            between = [" to ".join(ends[name]) for name in ("N", "N_active", "D")]
            rows.append(["  90 % by its draws", *between[:2], sparsity, between[2], "", ""])
    if speed:
        columns.insert(-1, "hours")
        told = {row.name: _number(speed.hours(row.plan)) for row in answer.rows}
        for cells in rows:
            cells.insert(-1, told.get(cells[0], ""))
    print_table(columns, rows)
    if speed:
        beyond = [row.name for row in answer.rows if speed.beyond(row.plan)]
        click.echo(
            f"hours are those of one {speed.device}, by the speed of {speed.runs} runs over size "
            "and sparsity"
        )
        if beyond:
            click.echo(f"beyond these runs their nearest speed counts: {', '.join(beyond)}")


def _print_regrets(answer: Advice) -> None:
    click.echo("regret in nats, and the factor of compute that the best plan would save, if the")
    click.echo("truth is the law of")
    names = [judge.name for judge in answer.judges]
    rows = [(row.name, *map(_cell, row.regrets), f"{row.worst:.3f}") for row in answer.rows]
    print_table(("plan", *names, "worst"), rows)


def _cell(regret: Regret) -> str:
    factor = regret.compute_factor
    text = f"{regret.nats:.3f} ({'> 1e6' if math.isnan(factor) else f'{factor:.3g}'}x)"
    if not math.isnan(regret.high):
        text += f" [{regret.low:.3f}, {regret.high:.3f}]"
    return text


def _print_configuration(c: Configuration, gpus: int, device: Device) -> None:
    model, counts, ffn = c.model, c.parameters, c.model.ffn
    click.echo("a configuration that can be built, near the robust plan:")
    if ffn.kind == "moe":
        experts = f"{ffn.n_experts} experts of width {ffn.d_expert}, {ffn.top_k} active"
        experts += f" and {ffn.n_shared} shared" if ffn.n_shared else ""
    else:
        experts = f"dense feed-forward layers of width {ffn.d_ffn}"
    click.echo(
        f"  {model.n_layers} layers of width {model.d_model}, {model.n_heads} heads "
        f"({model.n_kv} key-value), {experts}; vocabulary {model.vocab_size}"
    )
    click.echo(
        f"  {_count(counts.total)} parameters, {_count(counts.active)} active; "
        f"{_count(c.tokens)} tokens"
    )
    flops = ", ".join(f"{name} {value:.3g}" for name, value in c.flops.items())
    click.echo(f"  training FLOPs by convention: {flops}")
    where = f"each of {gpus} GPUs" if gpus > 1 else "one GPU"
    click.echo(
        f"  about {_hours(c.flops['all'], device)}; {c.gpu_bytes / 1e9:,.3g} GB on {where} to "
        f"train, {2 * counts.total / 1e9:,.4g} GB to serve from in bf16"
    )


def _print_setters(answer: Advice) -> None:
    c = answer.configuration
    told = {
        "lr": "peak learning rate {:.3g}",
        "B": "{:.3g} tokens a step",
        "G": "the largest leverage at granularity {:.3g}",
        "r_star": "the best r {:.3g}" + (f" (here {c.r:.3g})" if c else ""),
    }
    said = [told.get(name, f"{name} {{:.3g}}").format(x) for name, x in answer.set.items()]
    if said:
        click.echo(f"laws of one variable say: {'; '.join(said)}")


def _print_caveats(answer: Advice) -> None:
    built = answer.configuration
    if built and answer.as_configured and answer.as_configured.worst > answer.robust.worst + 0.01:
        click.echo(
            "note: the configuration costs more than the robust plan because a plan takes all "
            "parameters to be experts, counts 6 N_active FLOPs a token, and N as N_active / (1 - "
            f"S); in the configuration {100 * built.routed_share:.0f} % of the active ones are "
            f"routed experts, and a token costs {built.flops_over_plan:.2g} times as much"
        )
    for judge in answer.judges:
        if distances := answer.robust.beyond.get(judge.name):
            far = ", ".join(f"{name} by {x:.2g} decades" for name, x in distances.items())
            click.echo(f"note: {judge.name} extrapolates to the robust plan: {far}")
    for judge in answer.judges:
        if judge.warnings:
            undetermined = [text for text in judge.warnings if "do not identify" in text]
            text = (undetermined or list(judge.warnings))[0]
            click.echo(f"note: {judge.name}: {text} ({len(judge.warnings)} warnings in its report)")
    if any(judge.coefficients == "published" for judge in answer.judges):
        click.echo("note: published coefficients have no intervals, so neither have their regrets")
    for name, reason in answer.left_out.items():
        click.echo(f"note: {name} takes no part: {reason}")


def _print_sweeps(answer: Advice, sweeps: Sequence[Candidate], device: Device) -> None:
    click.echo()
    if answer.all_extrapolate:
        click.echo("every law extrapolates here; a small sweep of your own would tell more.")
    click.echo(
        "what the plan of a law refitted to it costs at most in 95 of 100 times, in nats, if"
    )
    click.echo("the truth is that law:")
    names = [judge.name for judge in answer.judges]
    rows = [
        (
            sweep.name,
            sweep.runs,
            f"{sweep.flops:.2g}",
            _hours(sweep.flops, device),
            *(f"{sweep.regret[name]:.3f}" for name in names),
        )
        for sweep in sweeps
    ]
    print_table(("sweep: budgets, share", "runs", "FLOPs", "at least", *names), rows)


def _hours(flops: float, device: Device) -> str:
    return f"{_number(flops / device.flops_per_second / 3600)} {device.name} hours"


def _number(hours: float) -> str:
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.3g}"


def _count(value: float) -> str:
    """Returns a number as people write it: 8.33B, 1.2T; small ones as they are."""
    for unit, scale in (("T", 1e12), ("B", 1e9), ("M", 1e6), ("K", 1e3)):
        if value >= 0.9995 * scale:
            return f"{value / scale:.3g}{unit}" if value < 9995 * scale else f"{value:.3g}"
    return f"{value:.3g}"


def advice_json(
    answer: Advice, sweeps: Sequence[Candidate], device: Device, speed: Speed | None
) -> dict[str, Any]:
    limits, c = answer.limits, answer.configuration
    hours = device.flops_per_second * 3600
    data: dict[str, Any] = {
        "compute": limits.compute,
        "gpu_hours": {device.name: limits.compute / hours},
        "limits": {name: value for name, value in asdict(limits).items() if name != "compute"},
        "judges": [
            {
                "name": judge.name,
                "law": judge.law.ref,
                "coefficients": judge.coefficients,
                "source": judge.source,
                "fitted_on": judge.fitted_on,
                "warnings": judge.warnings,
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
