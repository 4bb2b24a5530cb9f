"""The answer in short: what to build, what loss to expect of it, and what it costs."""

import math
from collections.abc import Iterator, Sequence

from moelaws.accounting.cost import Device
from moelaws.analysis.advice.advise import Advice, Recommendation
from moelaws.analysis.advice.plans import NODE, TRAINING_BYTES, USED
from moelaws.spec.model import Model, MoE
from moelaws.spec.words import counted, short


def in_short(answer: Advice) -> Iterator[str]:
    """Yields what to build, and what loss to expect of it."""
    c, robust = answer.configuration, answer.robust
    total, active = in_units(c.parameters.total), in_units(c.parameters.active)
    yield (
        f"Build: {shape_in_words(c.model)}. It has {total} parameters, {active} of them active, "
        f"and trains on {in_units(c.tokens)} tokens."
    )
    counting = [law for law in answer.laws if law.name in answer.minimax.counting]
    losses = [float(law.loss(robust.plan)) for law in counting]
    among = "the one law that judges it" if len(losses) == 1 else f"{len(losses)} laws"
    text = f"Loss: {_span(losses, '{:.3g}')} nats a token by {among}"
    text += " (their texts and tokenizers differ)" * (len(losses) > 1)
    if answer.dense and robust.plan.S > 0:
        pairs = [(dense, robust.regret[name]) for name, dense in answer.dense.items()]
        below = _above([dense.nats - own.nats for dense, own in pairs], 0.005)
        times = _above([dense.compute_factor / own.compute_factor for dense, own in pairs], 1.05)
        text += (
            f"; that is {below} below the best dense model of this budget, whose loss a mixture "
            f"reaches with {times} times less compute"
        )
    yield f"{text}."


def cost(answer: Advice, device: Device, price: float, days: float) -> str:
    """Returns what the budget costs at ``price`` an hour, and in how many days it is spent.

    These are at most ``days``, on as many GPUs as that asks for, unless the limits say how many.
    """
    limits = answer.limits
    hours = limits.compute / device.flops_per_second / 3600
    gpus = limits.gpus if limits.gpu_memory < math.inf else _gpus(answer, device, hours, days)
    return (
        f"Cost: {in_figures(hours)} {device.name} hours, ${in_figures(hours * price)} at {price:g} "
        f"an hour: {in_figures(hours / 24 / gpus)} days on {counted(gpus, 'GPU')}."
    )


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


def of_compared(answer: Advice, own: Recommendation, serves: float | None) -> str:
    """Returns how the user's own plan differs; ``serves`` is ``advise.served_for``."""
    plan, robust = own.plan, answer.robust.plan
    ratio, usual = (in_units(float(x.D / x.N_active)) for x in (plan, robust))
    text = f"Your plan trains {ratio} tokens an active parameter, and the model above {usual}."
    if serves:
        text += (
            " So small a model is the best one where the budget also serves about "
            f"{in_units(serves)} tokens (--inference-tokens)."
        )
    return text


def shape_in_words(model: Model) -> str:
    ffn = model.ffn
    if isinstance(ffn, MoE):
        experts = f"{ffn.n_experts} experts of width {ffn.d_expert}, {ffn.top_k} active"
        experts += f" and {ffn.n_shared} shared" if ffn.n_shared else ""
        if ffn.n_dense_layers:
            experts += f" ({counted(ffn.n_dense_layers, 'dense layer')} first)"
    else:
        experts = f"dense feed-forward layers of width {ffn.d_ffn}"
    return (
        f"{model.n_layers} layers of width {model.d_model}, {model.n_heads} heads "
        f"({model.n_kv} key-value), {experts}; vocabulary {model.vocab_size}"
    )


def in_figures(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def in_units(value: float) -> str:
    """Returns a number as people write it: 8.33B, 179K; small ones as they are."""
    return short(value).replace("k", "K")
