"""What a model's initial weights, rates and outputs are multiplied by, from its base's sizes.

The rate and the initial deviation of a configuration are those of its base shape. Under ``mup``
they serve models that are wider and have more experts at the same share of active ones, and under
``completep`` deeper ones, too. The rules are those by which a model whose units are all copied
trains to the same losses: each matrix's deviation falls as the root of the growth of its inputs,
AdamW's rate as that growth, and its epsilon as the growth of the outputs. Sources: Tensor Programs
V (Yang et al., 2022); CompleteP (Dey et al., 2025), depth; Jiang et al. (2026), mixtures.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from moelaws.spec.errors import UserError
from moelaws.spec.from_toml import table_beside
from moelaws.spec.model import Model, MoE

_FANS = table_beside(__file__)  # weight -> the sizes of its inputs and of its outputs


class Factors(NamedTuple):
    """What the settings of one parameter are multiplied by."""

    std: float = 1.0  # of its initial weights
    rate: float = 1.0  # AdamW's; decay is divided by it, so that a step shrinks weights as before
    eps: float = 1.0
    muon: float = 1.0  # the rate of Muon, if the parameter is a matrix of a layer


class Multipliers(NamedTuple):
    """What parts of the forward pass are multiplied by."""

    logits: float = 1.0
    residual: float = 1.0  # what a block adds to the stream, both halves
    scores: float = 1.0  # of attention, beside W^-1/2
    routed: float = 1.0  # the sum of the routed experts


def factors(model: Model, name: str, shape: Sequence[int] = ()) -> Factors:
    """Returns the factors of the parameter ``name``; Muon's depend on its ``shape``.

    Raises a UserError if no rule is known for the parameter.
    """
    if model.base is None:
        return Factors()
    key = re.sub(r"^layers\.\d+\.", "layers.", name)
    if key not in _FANS:
        raise UserError(
            f"no rule of parameterization: {model.parameterization} is known for {name}; choose "
            "standard"
        )
    ratios = _ratios(model)
    fan_in, fan_out = (ratios[size] for size in _FANS[key])
    # An expert sees a share of the tokens, and a block is one of many: gradients are smaller.
    copies = ratios["E"] if "routed_experts" in key else 1.0
    copies *= ratios["L"] if key.startswith("layers.") else 1.0
    # A router's logits are outputs: they start smaller the wider the model, as the model's do.
    std = 1 / fan_in if key.endswith("router.weight") else fan_in**-0.5
    muon = 1.0
    if len(shape) > 1:
        # Stacked experts have their inputs first.
        inputs, outputs = shape[-2:] if "routed_experts" in key else shape[:-3:-1]
        muon = _spectral(outputs, inputs) / _spectral(outputs / fan_out, inputs / fan_in)
    return Factors(std, 1 / fan_in, 1 / (fan_out * copies), muon)


def _spectral(outputs: float, inputs: float) -> float:
    """Returns the spectral norm that a step of Muon should have, over the one that it has.

    Outputs change alike at all widths by steps of norm (outputs / inputs)^1/2. Ours are an
    orthogonal matrix times max(outputs, inputs)^1/2, so that their entries are as large as AdamW's.
    """
    return float((outputs / inputs / max(outputs, inputs)) ** 0.5)


def multipliers(model: Model) -> Multipliers:
    """Returns what the forward pass is multiplied by; all are 1 in a standard model."""
    if model.base is None:
        return Multipliers()
    ratios, ffn, routed = _ratios(model), model.ffn, 1.0
    if isinstance(ffn, MoE) and ffn.gate == "sigmoid" and not ffn.normalize_top_k:
        assert model.base.top_k is not None  # the configuration's checks refuse a base without it
        routed = model.base.top_k / ffn.top_k  # a mean over active experts, as softmaxes give it
    return Multipliers(1 / ratios["d"], 1 / ratios["L"], ratios["W"] ** -0.5, routed)


def bias_rate(model: Model) -> float:
    """Returns how far a step moves a router's bias; biases of softmaxes are on 1/E's scale."""
    assert isinstance(model.ffn, MoE)
    if model.base is None or model.ffn.gate == "sigmoid":
        return model.ffn.bias_rate
    return model.ffn.bias_rate / _ratios(model)["E"]


def _ratios(model: Model) -> dict[str, float]:
    """Returns the model's sizes over its base's; what the model lacks is 1."""
    base, ffn = model.base, model.ffn
    assert base is not None
    ratios = {
        "": 1.0,
        "d": model.d_model / base.d_model,
        "W": model.width_of_head / base.width_of_head,
        "a": model.d_attention / (base.n_heads * base.width_of_head),
        "L": model.n_layers / base.n_layers if model.parameterization == "completep" else 1.0,
        "E": 1.0,
    }
    if base.d_ffn:
        assert ffn.d_ffn is not None
        ratios["dense_ffn"] = ffn.d_ffn / base.d_ffn
    if isinstance(ffn, MoE):
        assert base.n_experts
        assert base.d_expert
        width = ffn.d_expert / base.d_expert
        ratios |= {"E": ffn.n_experts / base.n_experts, "moe.routed_experts": width}
        if base.n_shared:
            ratios["moe.shared_experts"] = ffn.n_shared / base.n_shared * width
    return ratios
