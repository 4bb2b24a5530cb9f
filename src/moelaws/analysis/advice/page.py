"""An answer as tables and sentences: what `moelaws advise` prints, and the page of an outlook."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from moelaws.accounting.cost import Device
from moelaws.analysis.advice.advise import Advice, Recommendation
from moelaws.analysis.advice.build import Configuration
from moelaws.analysis.advice.plans import USUAL_G
from moelaws.analysis.advice.regret import LEVEL, CandidateLaw
from moelaws.analysis.advice.sweeps import SmallSweep
from moelaws.files.atomic import finite
from moelaws.fitting.prediction import OF_THE_LAW_ALONE
from moelaws.spec.model import Model, MoE
from moelaws.spec.words import short, without_tags

_EMBEDDED = 0.5  # fraction of embeddings in the active parameters above which a note says so


@dataclass(frozen=True)
class Table:
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True)
class Items:
    """Sentences in a list: after a ``mark`` in a terminal, after a dash on a page."""

    mark: str
    sentences: Sequence[str]


Block = str | Table | Items


def heading(answer: Advice, device: Device) -> Iterator[str]:
    limits = answer.limits
    yield (
        f"budget: {limits.compute:.3g} FLOPs (6 N_active D), about "
        f"{_hours(limits.compute, device)} at an assumed {device.flops_per_second:.3g} FLOP/s"
    )
    for name, ceiling in limits.max_parameters.items():
        yield f"{name} holds {_count(ceiling)} parameters"
    if limits.served_tokens:
        served = 2 * float(answer.robust.plan.N_active) * limits.served_tokens / limits.compute
        yield (
            f"the budget also serves {_count(limits.served_tokens)} tokens (2 N_active FLOPs "
            f"each), which takes {100 * served:.0f} % of it in the robust plan"
        )
    if limits.max_tokens < math.inf:
        yield f"at most {_count(limits.max_tokens)} training tokens"


def blocks(answer: Advice, device: Device | None = None) -> Iterator[Block]:
    """Yields plans, regrets, the configuration with hours on ``device``, and limits of trust."""
    yield _plans(answer)
    yield ""
    yield (
        "What each plan costs if the law above a column is right: nats above the best plan by\n"
        "that law, and how many times the compute that the best plan needs for the same loss."
    )
    if any(len(law.draws) for law in answer.laws):
        yield "In brackets: the 90 % interval over a fit's draws, whose upper end counts."
    names = [
        law.name + ("" if law.name in answer.minimax.counting else " (does not count)")
        for law in answer.laws
    ]
    rows = [(row.name, *map(str, row.regret.values()), f"{row.worst:.3f}") for row in answer.rows]
    yield Table(("plan", *names, "worst"), rows)
    yield ""
    if answer.configuration:
        yield "A configuration that can be built, near the robust plan:"
        yield Items("  ", [*_configuration(answer.configuration, answer.limits.gpus, device)])
    if settings := _settings(answer):
        yield f"Laws of one variable say: {settings}."
    yield Items("note: ", [*notes(answer)])


def _plans(answer: Advice) -> Table:
    columns = ["plan", "N", "N_active", "S", "E / k", "D", "D / N_active", "extrapolated", "limit"]
    rows = []
    for row in answer.rows:
        plan = row.plan.values()
        N, N_active, D = (_count(plan[name]) for name in ("N", "N_active", "D"))
        sparsity, ratio = f"{plan['S']:.3g}", _count(plan["D"] / plan["N_active"])
        sizes = (N, N_active, sparsity, f"{plan['expansion']:.3g}", D, ratio)
        limits = ", ".join(row.at_limits)
        rows.append([row.name, *sizes, _extrapolated(answer, row), limits])
        if row.intervals:
            ends = {name: " to ".join(map(_count, pair)) for name, pair in row.intervals.items()}
            ends["S"] = " to ".join(f"{x:.3g}" for x in row.intervals["S"])
            within = (ends["N"], ends["N_active"], ends["S"], "", ends["D"])
            rows.append(["  90 % by its draws", *within, "", "", ""])
    return Table(columns, rows)


def _extrapolated(answer: Advice, row: Recommendation) -> str:
    """Returns how far a law's own plan lies beyond the law's runs, in the farthest column."""
    distances = row.beyond.get(row.name) or answer.far.get(row.name) or {}
    name = max(distances, key=distances.__getitem__, default="")
    return f"{_decades(distances[name])} of {name}" if name else ""


def _configuration(c: Configuration, gpus: int, device: Device | None) -> Iterator[str]:
    total, active = _count(c.parameters.total), _count(c.parameters.active)
    yield shape_in_words(c.model)
    yield f"{total} parameters, {active} active; {_count(c.tokens)} tokens"
    flops = ", ".join(f"{name} {value:.3g}" for name, value in c.flops.items())
    yield f"training FLOPs by convention: {flops}"
    hours = f"about {_hours(c.flops['all'], device)}; " if device else ""
    where = f"on each of {gpus} GPUs" if gpus > 1 else "in all"
    yield (
        f"{hours}{_number(c.gpu_bytes / 1e9)} GB {where} to train in, "
        f"{2 * c.parameters.total / 1e9:,.4g} GB to serve from in bf16"
    )


def shape_in_words(model: Model) -> str:
    ffn = model.ffn
    if isinstance(ffn, MoE):
        experts = f"{ffn.n_experts} experts of width {ffn.d_expert}, {ffn.top_k} active"
        experts += f" and {ffn.n_shared} shared" if ffn.n_shared else ""
    else:
        experts = f"dense feed-forward layers of width {ffn.d_ffn}"
    return (
        f"{model.n_layers} layers of width {model.d_model}, {model.n_heads} heads "
        f"({model.n_kv} key-value), {experts}; vocabulary {model.vocab_size}"
    )


def _settings(answer: Advice) -> str:
    """Returns the values that laws of one variable set, in words; empty if there are none."""
    c = answer.configuration
    words = {
        "lr": "peak learning rate {:.3g}",
        "B": "{:.3g} tokens a step",
        "G": "the largest leverage at granularity {:.3g}",
        "r_star": "r* = {:.3g}" + (f" (here {c.r:.3g})" if c else ""),
    }
    each = answer.set.items()
    return "; ".join(words.get(name, f"{name} {{:.3g}}").format(value) for name, value in each)


def notes(answer: Advice) -> Iterator[str]:
    """Yields what limits the trust in configuration, laws and plans, and what was left out."""
    robust, own = answer.robust, answer.as_configured
    if not (answer.configuration and own):
        yield f"There is no configuration: {answer.not_built}."
    else:
        if own.worst > robust.worst + 0.01:
            c, p = answer.configuration, answer.configuration.parameters
            routed = (p.routed_experts - p.inactive_experts) / p.active
            yield (
                "The configuration costs more than the robust plan. A plan takes all parameters to "
                "be experts, N to be N_active / (1 - S), and 6 N_active FLOPs a token; in the "
                f"configuration {100 * routed:.0f} % of the active parameters are routed experts, "
                f"and a token costs {c.flops['all'] / (6 * p.active * c.tokens):.2f} times that."
            )
        embedded = float(own.plan.embeddings / own.plan.N_active)
        if embedded > _EMBEDDED:
            yield (
                f"Embeddings are {100 * embedded:.0f} % of the configuration's active parameters, "
                "more than the laws' models have; set vocab_size and tied_embeddings of shape in "
                "config/advice.yaml as your tokenizer and models have them."
            )
    for law in answer.laws:
        yield from _of_law(law)
        if distances := robust.beyond.get(law.name):
            yield f"{law.name} extrapolates to the robust plan: {_far(distances)}."
        if law.calibration and not math.isnan((run := law.expected(robust.plan))["low"]):
            yield (
                f"By {law.name} a run of the robust plan ends at {run['loss']:.3f} "
                f"[{run['low']:.3f}, {run['high']:.3f}] nats: the interval is calibrated on its "
                f"fits to the cheaper runs, which erred by {100 * law.calibration.per_decade:.2g} "
                "% a decade."
            )
    if any(law.name in robust.beyond and not law.calibration for law in answer.laws):
        yield f"{OF_THE_LAW_ALONE[0].upper()}{OF_THE_LAW_ALONE[1:]}."
    if answer.far:
        each = "; ".join(f"{name} ({_far(distances)})" for name, distances in answer.far.items())
        yield f"Of the laws that are no candidates, these extrapolate: {each}."
    yield f"Defaults, which no law here sets: {', '.join(_defaults(answer))}."
    for row in answer.recommendations:
        if any(limit.startswith("the search") for limit in row.at_limits):
            yield f"{row.name} has no best size at this budget: its plan is where the search ends."
    if len(answer.minimax.counting) == 1:
        (name,) = answer.minimax.counting
        yield f"Only {name} counts for the worst case, so the robust plan is its own."
    if any(law.coefficients == "published" for law in answer.laws):
        yield "Published coefficients have no intervals, so neither have their regrets."
    for name, reason in answer.left_out.items():
        yield f"{name} takes no part: {reason}."


def _of_law(law: CandidateLaw) -> Iterator[str]:
    if law.renamed:
        columns = ", ".join(f"{own} as {column}" for own, column in law.renamed.items())
        yield f"{law.name} takes columns of its fitted table by their variables: {columns}."
    if not law.fitted_on:
        yield (
            f"The range of the runs behind {law.name} is not known, so neither is how far it "
            "extrapolates."
        )
    if not law.determined:
        yield (
            f"{law.name} does not count for the worst case: its fit did not converge, or a "
            "coefficient is at its bound."
        )
    if law.warnings:
        undetermined = [text for text in law.warnings if "do not identify" in text]
        first, more = (undetermined or law.warnings)[0], len(law.warnings) - 1
        others = f" (its report has {more} more warning{'s' * (more > 1)})" if more else ""
        yield f"{law.name}: {first}{others}."


def _defaults(answer: Advice) -> Iterator[str]:
    """Yields the values in plans and configuration that no law sets."""
    without = [law.name for law in answer.laws if law.S is not None]
    without += [row.name for row in answer.recommendations[len(answer.laws) :]]
    for row in answer.recommendations:
        if row.name in without:
            yield f"S = {float(row.plan.S):.3g} for {row.name}"
    for law in answer.laws:
        yield from (f"{name} = {value:g} for {law.name}" for name, value in law.held.items())
    if not answer.configuration:
        yield "the shape in config/advice.yaml"
        return
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
    names = [law.name for law in answer.laws]
    today = [f"{regret.worst:.3f}" for regret in answer.robust.regret.values()]
    rows: list[Sequence[object]] = [("none: today's robust plan", 0, "0", "0", *today)]
    for sweep in sweeps:
        cost = (sweep.runs, f"{sweep.flops:.2g}", _hours(sweep.flops, device))
        rows.append((sweep.name, *cost, *(f"{sweep.regret[name]:.3f}" for name in names)))
    yield Table(("budgets of a sweep", "runs", "FLOPs", "at least", *names), rows)


def markdown(page: Iterable[Block]) -> str:
    texts = []
    for block in page:
        if isinstance(block, Table):
            lines = [block.columns, ["-", *["-:"] * (len(block.columns) - 1)], *block.rows]
            texts.append("\n".join(f"| {' | '.join(map(str, line))} |" for line in lines))
        elif isinstance(block, Items):
            texts.append("\n".join(f"- {sentence}" for sentence in block.sentences))
        elif block:
            texts.append(block)
    return without_tags("\n\n".join(texts) + "\n")


def as_json(answer: Advice, sweeps: Sequence[SmallSweep], device: Device) -> dict[str, Any]:
    limits, c, per_hour = answer.limits, answer.configuration, device.flops_per_second * 3600
    of_law = ("coefficients", "source", "fitted_on", "warnings")
    of_row = ("intervals", "worst", "beyond", "at_limits")
    return {
        "compute": limits.compute,
        "gpu_hours": {device.name: limits.compute / per_hour},
        "limits": {name: value for name, value in asdict(limits).items() if name != "compute"},
        "level": LEVEL,
        "judges": [
            {
                "name": law.name,
                "law": law.law.ref,
                **{name: getattr(law, name) for name in of_law},
                "counts": law.determined,
                "at_robust": finite(law.expected(answer.robust.plan)),
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
        "configuration": c
        and {
            "model": c.model.model_dump(mode="json"),
            "parameters": {"total": c.parameters.total, "active": c.parameters.active},
            "tokens": c.tokens,
            "flops": c.flops,
            "r": c.r,
            "gpu_hours": {device.name: c.flops["all"] / per_hour},
            "gpu_bytes": c.gpu_bytes,
        },
        "not_built": answer.not_built or None,
        "set": answer.set,
        "left_out": answer.left_out,
        "all_extrapolate": answer.all_extrapolate,
        "sweeps": [asdict(sweep) for sweep in sweeps],
    }


def _far(distances: Mapping[str, float]) -> str:
    return ", ".join(f"{name} by {_decades(x)}" for name, x in distances.items())


def _decades(distance: float) -> str:
    return f"{distance:.0f} decades" if distance >= 9.95 else f"{distance:#.2g} decades"


def _hours(flops: float, device: Device) -> str:
    return f"{_number(flops / device.flops_per_second / 3600)} {device.name} hours"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _count(value: float) -> str:
    """Returns a number as people write it: 8.33B, 179K; small ones as they are."""
    return short(value).replace("k", "K")
