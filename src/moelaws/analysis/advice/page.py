"""An answer as tables, sentences and JSON: what `moelaws advise` prints, and an outlook."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from moelaws.accounting.cost import Device
from moelaws.analysis.advice.advise import Advice, Recommendation
from moelaws.analysis.advice.blocks import Block, Table
from moelaws.analysis.advice.plans import USUAL_CEILING, USUAL_G
from moelaws.analysis.advice.regret import LEVEL, CandidateLaw
from moelaws.analysis.advice.short import (
    EPOCHS,
    beside,
    in_figures,
    in_units,
    mfu,
    of_repeats,
    quantities,
    shape_in_words,
)
from moelaws.analysis.advice.sweeps import SmallSweep, three_runs
from moelaws.fitting.prediction import OF_THE_LAW_ALONE
from moelaws.spec.model import MoE
from moelaws.spec.words import counted, joined

_EMBEDDED = 0.5  # fraction of embeddings in the active parameters above which a note says so
_ALIKE = 1.25  # ratio of sizes up to which laws want the same


def outlook(
    answers: Mapping[str, Advice], tier: str, left_out: Mapping[str, str]
) -> Iterator[Block]:
    """Yields the answers under their titles, and why fits take no part."""
    yield f"# What these runs advise ({tier} tier)"
    yield (
        "Each law of the loss is taken as the truth in turn: the published ones, and those that "
        "were fitted to the runs of this tier. The robust plan is the model of the least "
        "worst-case regret, among all that can be built. "
        "`moelaws advise` answers for any other budget and for constraints."
    )
    limits = next(iter(answers.values())).limits
    if limits.max_tokens < math.inf:
        yield (
            f"A plan trains on at most {limits.max_tokens:.3g} tokens: the text of these runs, "
            f"{EPOCHS} times over, which costs little against new text (Muennighoff et al. 2023)."
        )
    yield from (f"`{name}` takes no part: {reason}." for name, reason in left_out.items())
    for title, answer in answers.items():
        yield f"## {title}"
        yield f"Build {shape_in_words(answer.configuration.model)}."
        yield Table(("", "robust"), beside({"": quantities(answer)}))
        yield from summary(answer)
        yield from details(answer)


def heading(answer: Advice, device: Device) -> Iterator[str]:
    """Yields the budget and the limits, as they were understood."""
    limits = answer.limits
    yield (
        f"Budget: {limits.compute:.3g} FLOPs, the products of "
        f"{_hours(limits.compute, device)} at an assumed {device.flops_per_second:.3g} FLOP/s."
    )
    for name, ceiling in limits.max_parameters.items():
        yield f"Limit: {name} holds {in_units(ceiling)} parameters."
    if limits.served_tokens:
        served = 2 * float(answer.robust.plan.N_active) * limits.served_tokens / limits.compute
        yield (
            f"The budget also serves {in_units(limits.served_tokens)} tokens (2 N_active FLOPs "
            f"each), which takes {100 * served:.0f} % of it."
        )
    if limits.max_tokens < math.inf:
        yield f"Limit: at most {in_units(limits.max_tokens)} training tokens."


def details(answer: Advice) -> Iterator[Block]:
    """Yields all regrets, what the model takes, and what limits the trust in laws and plans."""
    yield ""
    yield (
        "What each plan costs if the law above a column is right: nats above the best model by\n"
        "that law, and how many times the compute that the best one needs for the same loss."
    )
    if any(len(law.draws) for law in answer.laws):
        yield "In brackets: the 90 % interval over a fit's draws, whose upper end counts."
    names = answer.minimax.counting
    rows = [
        (row.name, *(str(row.regret[name]) for name in names), _nats(row.worst))
        for row in _counting_rows(answer)
    ]
    yield Table(("plan", *names, "worst"), rows)
    yield ""
    yield from _configuration(answer)
    if settings := _settings(answer):
        yield f"- Laws of one variable say: {settings}."
    yield from notes(answer)


def _plans(answer: Advice) -> Table:
    columns = ("plan", "N", "N_active", "E / k", "D", "D / N_active", "worst", "waste")
    rows = []
    for row in _counting_rows(answer):
        plan = row.plan.values()
        N, N_active, D = (in_units(plan[name]) for name in ("N", "N_active", "D"))
        sizes = (N, N_active, f"{plan['expansion']:.3g}", D, in_units(plan["D"] / plan["N_active"]))
        factors = [row.regret[name].compute_factor for name in answer.minimax.counting]
        waste = "> 1e4x" if any(map(math.isnan, factors)) else f"{max(factors):.3g}x"
        rows.append((row.name, *sizes, _nats(row.worst), "-" if math.isnan(row.worst) else waste))
        if row.intervals:
            ends = {name: " to ".join(map(in_units, pair)) for name, pair in row.intervals.items()}
            expansion = " to ".join(f"{1 / (1 - S):.3g}" for S in row.intervals["S"])
            within = (ends["N"], ends["N_active"], expansion, ends["D"])
            rows.append(("  90 % by its draws", *within, "", "", ""))
    return Table(columns, rows)


def _not_counting(answer: Advice) -> list[str]:
    return [law.name for law in answer.laws if law.name not in answer.minimax.counting]


def _counting_rows(answer: Advice) -> list[Recommendation]:
    """Returns the plans without those of laws that do not count."""
    return [row for row in answer.rows if row.name not in _not_counting(answer)]


def _nats(worst: float) -> str:
    return "-" if math.isnan(worst) else f"{worst:.3f}"


def of_ceilings(answers: Mapping[float, Advice]) -> Iterator[Block]:
    """Yields how the answer moves with the ceiling on sparsity, the last of which is none."""
    free = [*answers.values()][-1]
    yield ""
    yield (
        "The answer by other ceilings on sparsity. Worst is what a plan loses against the best\n"
        "model of any sparsity, by the law that is worst for it."
    )
    rows = []
    for ceiling, answer in answers.items():
        plan = answer.robust.plan.values()
        sizes = [in_units(plan[name]) for name in ("N", "N_active", "D")]
        worst = float(free.minimax.worst(answer.robust.plan))
        name = "none" if answer is free else f"{ceiling:g}"
        rows.append((name, *sizes, f"{plan['expansion']:.3g}", _nats(worst)))
    yield Table(("S at most", "N", "N_active", "D", "E / k", "worst"), rows)


def summary(answer: Advice) -> Iterator[Block]:
    """Yields the plans, what the laws disagree on, which did not judge, and what none sets."""
    robust, names = answer.robust, answer.minimax.counting
    yield _plans(answer)
    yield ""
    if answer.held:
        yield (
            "- No law that knows of sparsity judges this budget, so the sparsity is the one that "
            f"they advise at {answer.held:.2g} FLOPs."
        )
    if len(names) == 1:
        yield f"- {names[0]} alone judges this budget: nothing says what it costs if it is wrong."
    else:
        yield (
            f"- By none of {joined(names)} does this model lose more than {robust.worst:.3f} nats "
            "against the best one, which does not make one of them right."
        )
        yield from _disagreement(answer)
    if far := [name for name in names if robust.beyond.get(name)]:
        most = max(max(robust.beyond[name].values()) for name in far)
        yield f"- The model lies beyond the runs of {joined(far)}, by up to {_decades(most)}."
    yield from of_repeats(answer)
    if robust.at_limits:
        yield f"- The model is near these limits: {joined(robust.at_limits)}."
    if names := _not_counting(answer):
        yield (
            f"- {counted(len(names), 'law is', 'laws are')} left out of the tables, for a fit that "
            f"did not converge or has a coefficient at its bound: {joined(names)}."
        )
    if out := answer.left_out:
        named = [name for name in out if not name.endswith(".json")]
        fits = [counted(len(out) - len(named), "fit")] if len(out) > len(named) else []
        yield f"- These take no part: {joined([*named, *fits])} (--details says why)."
    yield f"- Defaults, which no law here sets: {', '.join(_defaults(answer))}."


def _disagreement(answer: Advice) -> Iterator[str]:
    """Yields how far apart the models are that laws want, and which runs would tell."""
    rows = [row for row in answer.recommendations if row.name in answer.minimax.counting]
    apart = []
    for words, name in (("active parameters", "N_active"), ("E / k", "expansion"), ("tokens", "D")):
        values = {row.name: row.plan.values()[name] for row in rows}
        low, high = (end(values, key=lambda law: values[law]) for end in (min, max))
        if values[high] > _ALIKE * values[low]:
            ends = " to ".join(f"{in_units(values[law])} by {law}" for law in (low, high))
            apart.append(f"{words} ({ends})")
    if not apart:
        yield "- They agree on the model, too."
        return
    yield f"- They disagree on which model is best: on its {joined(apart)}."
    if runs := three_runs(answer.minimax):
        C, plans, nats = runs
        each = [
            f"{in_units(p['N'])} ({in_units(p['N_active'])} active) on {in_units(p['D'])} tokens"
            for p in plans
        ]
        yield (
            f"- Three runs of {C:.2g} FLOPs would settle most of that: {joined(each)}. Any two of "
            f"these laws disagree on how their losses differ, by {nats:.2g} nats or more."
        )


def _configuration(answer: Advice) -> Iterator[str]:
    c, gpus = answer.configuration, answer.limits.gpus
    routed = (c.parameters.routed_experts - c.parameters.inactive_experts) / c.parameters.active
    yield (
        f"- {100 * routed:.0f} % of the active parameters are routed experts; a token costs "
        f"{c.flops['all'] / (6 * c.parameters.active * c.tokens):.2f} times 6 N_active FLOPs."
    )
    where = f"on each of {gpus} GPUs" if gpus > 1 else "in all"
    yield (
        f"- It takes {in_figures(c.gpu_bytes / 1e9)} GB {where} to train in, and "
        f"{in_figures(c.served_bytes / 1e9)} GB to serve from, of which the KV cache of "
        f"{answer.limits.serve_sequences} sequences is {in_figures(c.cache_bytes / 1e9)} GB."
    )


def _settings(answer: Advice) -> str:
    """Returns the values that laws of one variable set, in words; empty if there are none."""
    c = answer.configuration
    words = {
        "lr": "peak learning rate {:.3g}",
        "B": "{:.3g} tokens a step",
        "G": "the largest leverage at granularity {:.3g}",
        "r_star": f"r* = {{:.3g}} (here {c.ratio:.3g})",
    }
    each = answer.set.items()
    return "; ".join(words.get(name, f"{name} {{:.3g}}").format(value) for name, value in each)


def notes(answer: Advice) -> Iterator[str]:
    """Yields what limits the trust in configuration, laws and plans, and what was left out."""
    robust, uncalibrated = answer.robust, False
    embedded = float(robust.plan.embeddings / robust.plan.N_active)
    if embedded > _EMBEDDED:
        yield (
            f"- Embeddings are {100 * embedded:.0f} % of the model's active parameters, more than "
            "the laws' models have; set vocab_size and tied_embeddings of shape in "
            "config/advice.yaml as your tokenizer and models have them."
        )
    for law in answer.laws:
        yield from _of_law(law)
        if distances := robust.beyond.get(law.name):
            yield f"- {law.name} extrapolates to the robust plan: {_far(distances)}."
        own, run = law.calibration, law.expected(robust.plan)
        if not (own and own.has_rounds):
            uncalibrated |= bool(distances)
        elif not math.isnan(run["low"]):
            yield (
                f"- By {law.name} a run of the robust plan ends at {run['loss']:.3f} "
                f"[{run['low']:.3f}, {run['high']:.3f}] nats: the interval is calibrated on its "
                f"fits to the cheaper runs, which erred by {100 * own.per_decade:.2g} % a decade."
            )
    if uncalibrated:
        yield f"- {OF_THE_LAW_ALONE[0].upper()}{OF_THE_LAW_ALONE[1:]}."
    if answer.far:
        each = "; ".join(f"{name} ({_far(distances)})" for name, distances in answer.far.items())
        yield f"- Of the laws that are no candidates, these extrapolate: {each}."
    if any(law.coefficients == "published" for law in answer.laws):
        yield "- Published coefficients have no intervals, so neither have their regrets."
    for name, reason in answer.left_out.items():
        yield f"- {name} takes no part: {reason}."


def _of_law(law: CandidateLaw) -> Iterator[str]:
    if law.renamed:
        columns = ", ".join(f"{own} as {column}" for own, column in law.renamed.items())
        yield f"- {law.name} takes columns of its fitted table by their variables: {columns}."
    if not law.fitted_on:
        yield (
            f"- The range of the runs behind {law.name} is not known, so neither is how far it "
            "extrapolates."
        )
    if law.warnings:
        undetermined = [text for text in law.warnings if "do not identify" in text]
        first, more = (undetermined or law.warnings)[0], len(law.warnings) - 1
        others = f" (its report has {more} more warning{'s' * (more > 1)})" if more else ""
        yield f"- {law.name}: {first}{others}."


def _defaults(answer: Advice) -> Iterator[str]:
    """Yields the values in plans and configuration that no law sets."""
    for i, row in enumerate(answer.recommendations):  # of the laws, and then of the advisers
        if i >= len(answer.laws) or answer.laws[i].S is not None:
            yield f"S = {float(row.plan.S):.3g} for {row.name}"
    for law in answer.laws:
        yield from (f"{name} = {value:g} for {law.name}" for name, value in law.held.items())
    if answer.limits.max_sparsity == USUAL_CEILING:
        yield f"S at most {USUAL_CEILING:g} (--max-sparsity)"
    model = answer.configuration.model
    if isinstance(model.ffn, MoE):
        if answer.limits.G is None and "G" not in answer.set:
            yield f"granularity {USUAL_G:g}"
        yield f"shared experts {model.ffn.n_shared}"
    yield f"context {model.context}"
    yield f"vocabulary {model.vocab_size}"


def of_sweeps(answer: Advice, sweeps: Sequence[SmallSweep], device: Device) -> Iterator[Block]:
    """Yields the small sweeps, and how far each would narrow the regret."""
    now, then = answer.robust.worst, sweeps[0].worst
    if answer.all_extrapolate:
        yield "Every law extrapolates here."
    if then < now:
        yield (
            "The first of these small sweeps would at best narrow the worst regret from "
            f"{now:.3f} to {then:.3f} nats."
        )
    else:
        yield (
            "If one of these laws is right, no small sweep would narrow the regret: they nearly "
            "agree on the robust plan. A sweep tells whether they hold for your data."
        )
    yield (
        "By each law, if it is right: what the plan of a refit to the sweep's runs costs at\n"
        "most in 95 of 100 times, in nats, and what the robust plan above costs without it."
    )
    names = answer.minimax.counting
    today = [f"{answer.robust.regret[name].worst:.3f}" for name in names]
    rows = [("none: today's robust plan", 0, "0", "0", *today)]
    for sweep in sweeps:
        cost = (sweep.runs, f"{sweep.flops:.2g}", _hours(sweep.flops, device))
        rows.append((sweep.name, *cost, *(f"{sweep.regret[name]:.3f}" for name in names)))
    yield Table(("budgets of a sweep", "runs", "FLOPs", "at least", *names), rows)


def as_json(
    answer: Advice, sweeps: Sequence[SmallSweep], device: Device, both: Mapping[str, Advice] = {}
) -> dict[str, Any]:
    limits, per_hour = asdict(answer.limits), device.flops_per_second * 3600
    telling = three_runs(answer.minimax) if len(answer.minimax.counting) > 1 else None
    of_law = ("coefficients", "source", "fitted_on", "warnings")
    of_row = ("intervals", "worst", "beyond", "at_limits", "spent")
    return {
        "compute": limits["compute"],
        "gpu_hours": {device.name: limits["compute"] / per_hour},
        "limits": {k: x for k, x in limits.items() if k not in ("compute", "device")},
        "level": LEVEL,
        "judges": [
            {
                "name": law.name,
                "law": law.law.ref,
                **{name: getattr(law, name) for name in of_law},
                "counts": law.determined,
                "at_robust": law.expected(answer.robust.plan),
            }
            for law in answer.laws
        ],
        "plans": [
            {
                "name": row.name,
                **row.plan.values(),
                "regret": {name: asdict(regret) for name, regret in row.regret.items()},
                **{name: getattr(row, name) for name in of_row},
            }
            for row in answer.rows
        ],
        "configuration": _built(answer, device),
        "side_by_side": {name: _built(own, device) for name, own in both.items()},
        "three_runs": telling and dict(zip(("compute", "plans", "nats"), telling, strict=True)),
        "dense": {name: asdict(regret) for name, regret in answer.dense.items()},
        **{name: getattr(answer, name) for name in ("held", "set", "left_out", "all_extrapolate")},
        "sweeps": [asdict(sweep) for sweep in sweeps],
    }


def _built(answer: Advice, device: Device) -> dict[str, Any]:
    c = answer.configuration
    return {
        **vars(c),
        "model": c.model.model_dump(mode="json"),
        "parameters": {"total": c.parameters.total, "active": c.parameters.active},
        "r": c.ratio,
        "flops": c.flops,
        "mfu": mfu(answer, device),
        "served_tokens": answer.limits.served_tokens,
    }


def _far(distances: Mapping[str, float]) -> str:
    return ", ".join(f"{name} by {_decades(x)}" for name, x in distances.items())


def _decades(distance: float) -> str:
    return f"{distance:.0f} decades" if distance >= 9.95 else f"{distance:#.2g} decades"


def _hours(flops: float, device: Device) -> str:
    return f"{in_figures(flops / device.flops_per_second / 3600)} {device.name} hours"
