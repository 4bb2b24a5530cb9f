"""The answer in short: what to build, what loss to expect of it, and what it costs."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from moelaws.accounting.cost import GPUS, MFU, Device
from moelaws.analysis.advice.advise import Advice, Recommendation
from moelaws.analysis.advice.plans import NODE, TRAINING_BYTES, USED
from moelaws.spec.model import Model, MoE
from moelaws.spec.words import counted, short


def in_short(answer: Advice, both: Mapping[str, Advice]) -> Iterator[str]:
    """Yields what to build, for training alone and for serving, and what loss to expect of it."""
    yield from (build(other, name) for name, other in both.items())
    yield from (expected(other, name) for name, other in both.items() if other is answer)


def build(answer: Advice, name: str = "") -> str:
    """Returns what to build, with all that its counts of parameters follow from."""
    c = answer.configuration
    total, active = in_units(c.parameters.total), in_units(c.parameters.active)
    return (
        f"Build{f' ({name})' * bool(name)}: {shape_in_words(c.model)}. It has {total} parameters, "
        f"{active} of them active, and trains on {in_units(c.tokens)} tokens."
    )


def expected(answer: Advice, name: str = "") -> str:
    """Returns what loss to expect, and how far it is below that of the best dense model."""
    robust, laws = answer.robust, len(answer.minimax.counting)
    text = f"Loss{f' ({name})' * bool(name)}: {losses(answer)} nats a token by "
    text += (
        f"{laws} laws (their texts and tokenizers differ)" if laws > 1 else "the law that judges it"
    )
    if answer.dense and robust.plan.S > 0:
        pairs = [(dense, robust.regret[law]) for law, dense in answer.dense.items()]
        below = _above([dense.nats - own.nats for dense, own in pairs], 0.005)
        times = _above([dense.compute_factor / own.compute_factor for dense, own in pairs], 1.05)
        text += f"; that is {below} below the best dense model of this budget"
        if "nan" not in times:  # where even a ten-thousandth of the budget has a lower loss
            text += f", whose loss a mixture reaches with {times} times less compute"
    return f"{text}."


def losses(answer: Advice) -> str:
    """Returns the least and the largest loss of the robust plan by the laws that count."""
    counting = [law for law in answer.laws if law.name in answer.minimax.counting]
    return _span([float(law.loss(answer.robust.plan)) for law in counting], "{:.3g}")


def beside(both: Mapping[str, Advice], device: Device) -> list[Sequence[str]]:
    """Returns, a row each, what differs between the answers for training alone and for serving."""

    of: dict[str, Callable[[Advice], str]] = {
        "parameters": lambda answer: in_units(answer.configuration.parameters.total),
        "of them active": lambda answer: in_units(answer.configuration.parameters.active),
        "training tokens": lambda answer: in_units(answer.configuration.tokens),
        "served tokens": lambda answer: in_units(answer.limits.served_tokens),
        "loss by the laws": losses,
        "GPUs wait": lambda answer: f"{_percent(answer.configuration.waiting)} of the time",
        "MFU": lambda answer: _percent(mfu(answer, device)),
    }
    return [(title, *map(text, both.values())) for title, text in of.items()]


def mfu(answer: Advice, device: Device) -> float:
    """Returns the model FLOPs utilisation that is left of the assumed one where GPUs wait."""
    usual = GPUS.get(device.name.lower(), device).flops_per_second / MFU
    return device.flops_per_second / usual * (1 - answer.configuration.waiting)


def cost(answer: Advice, device: Device, price: float, days: float) -> str:
    """Returns what the budget costs at ``price`` an hour, and in how many days it is spent.

    These are at most ``days``, on as many GPUs as that asks for, unless the limits say how many.
    """
    limits = answer.limits
    hours = limits.compute / device.flops_per_second / 3600
    gpus = limits.gpus if limits.gpu_memory < math.inf else _gpus(answer, device, hours, days)
    return (
        f"Cost: {in_figures(hours)} {device.name} hours, ${in_figures(hours * price)} at {price:g} "
        f"an hour: {in_figures(hours / 24 / gpus)} days on {counted(gpus, 'GPU')}, waiting for "
        f"memory and network {_percent(answer.configuration.waiting)} of the time, which leaves an "
        f"MFU of {_percent(mfu(answer, device))}."
    )


def _percent(part: float) -> str:
    return f"{100 * part:.0f} %"


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


def in_figures(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def in_units(value: float) -> str:
    """Returns a number as people write it: 8.33B, 179K; small ones as they are."""
    return short(value).replace("k", "K")
