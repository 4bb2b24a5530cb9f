"""The answer in short: what to build, its loss and its costs, and what others have trained."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import numpy as np

from moelaws.accounting.cost import GPUS, MFU, Device
from moelaws.analysis.advice.advise import Advice, Recommendation
from moelaws.analysis.advice.plans import NODE, TRAINING_BYTES, USED, ideal
from moelaws.analysis.advice.regret import CandidateLaw
from moelaws.spec.advice import KnownModel
from moelaws.spec.hyperparameters import Transferred
from moelaws.spec.model import Model, MoE
from moelaws.spec.words import counted, joined, short

EPOCHS = 4  # passes over a text, up to which repeated text costs little against new text
LARGEST_DENSE = 10.0  # the largest dense model that a mixture is compared with, over its size


def quantities(answer: Advice) -> dict[str, str]:
    """Returns the model's sizes, its loss, and how far that is below the best dense model's."""
    c, robust = answer.configuration, answer.robust
    counting = [law for law in answer.laws if law.name in answer.minimax.counting]
    rows = {
        "parameters": in_units(c.parameters.total),
        "of them active": in_units(c.parameters.active),
        "training tokens": in_units(c.tokens),
        "served tokens": in_units(answer.limits.served_tokens),
        "loss by the laws": _span([float(law.loss(robust.plan)) for law in counting], "{:.3g}"),
    }
    if answer.dense and robust.plan.S > 0:
        pairs = [(dense, robust.regret[law]) for law, dense in answer.dense.items()]
        below = [dense.nats - own.nats for dense, own in pairs]
        rows["below the best dense model"] = _above(below, 0.005)
        times = _above([dense.compute_factor / own.compute_factor for dense, own in pairs], 1.05)
        if "nan" not in times:  # where even a ten-thousandth of the budget has a lower loss
            rows["times less compute for its loss"] = times
        equal = [_qs(answer, law) for law in counting if law.knows_sparsity]
        if equal:
            parts = _span(equal, "{:.2g}").replace("inf", f"over {LARGEST_DENSE:g}")
            rows["dense model of its loss (q s)"] = f"{parts} of its size"
    return rows


def _qs(answer: Advice, law: CandidateLaw) -> float:
    """Returns q s: the size of the dense model that has the plan's loss, over the plan's own N.

    Both train on as many tokens. It is infinite where no dense model is as good. Source: the qs
    inequality (arXiv 2603.08960), with q the dense model's size over N_active and s = N_active / N.
    """
    plan = answer.robust.plan
    ratios = np.geomspace(plan.N_active / plan.N, LARGEST_DENSE, 1000)
    dense = ideal(ratios * plan.N, 0.0, plan.D, answer.limits)
    as_good = law.loss(dense) <= law.loss(plan)
    return float(ratios[np.argmax(as_good)]) if as_good.any() else math.inf


def costs(answer: Advice, device: Device, price: float, days: float) -> dict[str, str]:
    """Returns what the budget costs at ``price`` an hour, and in how many days it is spent.

    These are at most ``days``, on as many GPUs as that asks for, unless the limits say how many.
    """
    limits = answer.limits
    hours = limits.compute / device.flops_per_second / 3600
    gpus = limits.gpus if limits.gpu_memory < math.inf else _gpus(answer, device, hours, days)
    return {
        "GPUs wait": f"{100 * answer.configuration.waiting:.0f} % of the time",
        "MFU": f"{100 * mfu(answer, device):.0f} %",
        f"{device.name} hours": in_figures(hours),
        f"dollars, {price:g} an hour": in_figures(hours * price),
        "days": f"{in_figures(hours / 24 / gpus)} on {counted(gpus, 'GPU')}",
    }


def beside(columns: Mapping[str, Mapping[str, str]]) -> list[Sequence[str]]:
    """Returns a row for each quantity that some of the named columns have."""
    titles = dict.fromkeys(chain(*columns.values()))
    return [(title, *(own.get(title, "-") for own in columns.values())) for title in titles]


def mfu(answer: Advice, device: Device) -> float:
    """Returns the model FLOPs utilisation that is left of the assumed one where GPUs wait."""
    usual = GPUS.get(device.name.lower(), device).flops_per_second / MFU
    return device.flops_per_second / usual * (1 - answer.configuration.waiting)


def _gpus(answer: Advice, device: Device, hours: float, days: float) -> int:
    """Returns the fewest GPUs, in whole nodes, that hold the model and end within the days."""
    bytes_held = TRAINING_BYTES * answer.configuration.parameters.total
    fewest = max(hours / 24 / days, bytes_held / (USED * device.own_memory))
    return math.ceil(fewest) if fewest <= 4 else NODE * math.ceil(fewest / NODE)


def _above(values: Sequence[float], none: float) -> str:
    """Returns the least and the largest gain; the largest alone if the other is below ``none``."""
    return f"up to {max(values):.2g}" if min(values) < none else _span(values, "{:.2g}")


def _span(values: Sequence[float], form: str) -> str:
    """Returns the least and the largest value in words; one of them where they read alike."""
    ends = [form.format(x) for x in (min(values), max(values))]
    return " to ".join(dict.fromkeys(ends))


def of_repeats(answer: Advice) -> Iterator[str]:
    """Yields how often the model passes over the text, unless that costs little."""
    text = answer.limits.text_tokens
    if (epochs := answer.configuration.tokens / text) > EPOCHS:
        yield (
            f"- The model passes {epochs:.2g} times over the text. Mixtures were hurt from some "
            f"{EPOCHS} passes on, where a dense model tolerated eight (arXiv 2609.11917): "
            f"--max-tokens {in_units(EPOCHS * text)} keeps to that."
        )


def of_compared(answer: Advice, own: Recommendation, serves: float | None) -> str:
    """Returns how the user's own plan differs; ``serves`` is ``advise.served_for``."""
    plan, robust, compute = own.plan, answer.robust.plan, answer.limits.compute
    ratio, usual = (in_units(float(x.D / x.N_active)) for x in (plan, robust))
    text = f"Your plan trains {ratio} tokens an active parameter, and the model above {usual}."
    if own.spent > compute * (1 + 1e-3):
        text += (
            f" It costs {own.plan.values()['C']:.3g} FLOPs by 6 N_active D, but {own.spent:.3g} "
            "with all products and the time in which GPUs wait, which is what this budget of "
            f"{compute:.3g} counts. It is compared anyway."
        )
    if serves:
        text += (
            " So small a model is the best one where the budget also serves about "
            f"{in_units(serves)} tokens (--inference-tokens)."
        )
    return text


def shape_in_words(model: Model) -> str:
    """Returns all that the parameters of a model follow from, in words."""
    ffn = model.ffn
    if isinstance(ffn, MoE):
        experts = f"{ffn.n_experts} experts of width {ffn.d_expert}, {ffn.top_k} active"
        experts += f" and {ffn.n_shared} shared" if ffn.n_shared else ""
        if ffn.n_dense_layers:
            experts += f" ({counted(ffn.n_dense_layers, 'dense layer')} of width {ffn.d_ffn} first)"
    else:
        experts = f"dense feed-forward layers of width {ffn.d_ffn}"
    tied = "tied" if model.tied_embeddings else "untied"
    return (
        f"{model.n_layers} layers of width {model.d_model}, {model.n_heads} heads "
        f"({model.n_kv} key-value), {experts}; vocabulary {model.vocab_size}, {tied}"
    )


def recipe(answer: Advice, law: str, bases: Transferred | None) -> str:
    """Returns the rate, batch and parameterization to train with; ``law`` is that of the setters.

    A pinned base takes its place if it has the model's share of experts, context and vocabulary.
    """
    model, known = answer.configuration.model, answer.set
    ffn = model.ffn
    k, E = (ffn.top_k, ffn.n_experts) if isinstance(ffn, MoE) else (None, None)
    base = bases.of(k, E, "adamw") if bases else None
    if bases and base and (base.context, base.vocab_size) == (model.context, model.vocab_size):
        lr = base.lr * (answer.configuration.tokens / base.D) ** bases.exponent
        return (
            f"Train it with parameterization: {base.parameterization} from the base of width "
            f"{base.base.d_model} and {base.base.n_layers} layers, at a peak learning rate of "
            f"{lr:.3g} and {base.batch} sequences a step (best rate {base.lr:.3g} by the study "
            f"transfer; over tokens {bases.exponent_from})."
        )
    if not known.keys() >= {"lr", "B"}:
        return ""
    return (
        f"Train it with parameterization: standard, at a peak learning rate of {known['lr']:.3g} "
        f"and {in_units(known['B'])} tokens a step (by {law}; no base of its share of experts, "
        "context and vocabulary is pinned)."
    )


def in_figures(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def in_units(value: float) -> str:
    """Returns a number as people write it: 8.33B, 179K; small ones as they are."""
    return short(value).replace("k", "K")


def nearby(known: Mapping[str, KnownModel], compute: float) -> dict[str, float]:
    """Returns the three known models whose training cost nearest to ``compute``, and what it cost.

    It is counted as 6 N_active D, so models whose tokens are not published are left out.
    """
    costs = {name: 6 * own.N_active * own.D for name, own in known.items() if own.D}
    nearest = sorted(costs, key=lambda name: abs(math.log(costs[name] / compute)))[:3]
    return {name: costs[name] for name in nearest}


def of_known(known: Mapping[str, KnownModel], compute: float) -> str:
    """Returns the known models of about this budget, in words."""
    each = []
    for name, cost in nearby(known, compute).items():
        own = known[name]
        size = f"{in_units(own.N)}, {in_units(own.N_active)} active, {own.k} of {own.E} experts"
        shape = f", {own.n_layers} layers of width {own.d_model}" if own.n_layers else ""
        each.append(f"{name} ({size}{shape}; {in_units(own.D or 0)} tokens, {cost:.2g} FLOPs)")
    return f"- People trained, nearest to this budget by 6 N_active D: {joined(each)}."
