"""Which architecture of transformers computes exactly what a run's model computes."""

from collections.abc import Iterator
from typing import Any

from moelaws.model.attention import EPSILON
from moelaws.spec.base import Frozen
from moelaws.spec.errors import UserError
from moelaws.spec.from_toml import table_beside
from moelaws.spec.model import Model, MoE

FITS = (
    "What fits has mlp: swiglu. Dense models fit with and without qk_norm; models with experts fit "
    "with gate: sigmoid, with qk_norm: true and n_shared: 0, or with qk_norm: false and "
    "normalize_top_k: true"
)
# Transformers prefers grouped matrix products for experts. Their rows must have a multiple of 16
# bytes, which are this many numbers in bf16.
GROUPED = 8


class Architecture(Frozen):
    """A model of transformers.

    Each of them has RMSNorm before attention and feed-forward, SwiGLU, and no biases in its
    products. They differ in these fields, and in what makes the scores of experts.
    """

    name: str  # of the class, as config.json has it
    model_type: str
    # RoPE turns neighbouring entries of a head together, as moelaws does; otherwise it turns the
    # first half of the head with the second.
    turns_neighbours: bool = False
    router_bias: str = ""  # a layer's tensor that is added to scores to choose experts, if any
    bias_shape: list[int] = [-1]  # (E,), or (1, E)
    has_shared: bool = False  # always; those of a model without shared experts have the width 0
    # What config.json has beside what all have: keys -> our names of quantities, and constants.
    names: dict[str, str] = {}
    constants: dict[str, Any] = {}


_TABLE = table_beside(__file__)
COMMON = _TABLE.pop("common")
ARCHITECTURES = {kind: Architecture(**fields) for kind, fields in _TABLE.items()}


def architecture_of(model: Model) -> Architecture:
    """Returns the architecture that gives the logits of ``model``.

    Raises UserError where none of those above does, with each reason and with what would fit.
    """
    if reasons := list(_obstacles(model)):
        raise UserError(
            "no architecture of transformers that moelaws knows computes what this model does: "
            f"{'; '.join(reasons)}. {FITS}"
        )
    kind: str = model.ffn.gate if isinstance(model.ffn, MoE) else "dense"
    if model.qk_norm and kind != "sigmoid":
        kind += "_with_qk_norm"
    return ARCHITECTURES[kind]


def _obstacles(model: Model) -> Iterator[str]:
    ffn = model.ffn
    if ffn.mlp != "swiglu":
        yield f"mlp is {ffn.mlp}, and all of them have swiglu"
    if model.slices:
        yield "its blocks are split into slices, and none of them has such blocks"
    if isinstance(ffn, MoE):
        if ffn.route_by != "token":
            yield f"route_by is {ffn.route_by}, and all of them decide for each token"
        if ffn.capacity_factor is not None:
            yield f"capacity_factor is {ffn.capacity_factor}, and none of them drops tokens"
        if ffn.gate == "sigmoid":
            if ffn.n_experts == 1:
                yield "n_experts is 1, and Glm4Moe, which has sigmoid gates, wants two or more"
            return
        if ffn.route_scale != 1:
            yield f"route_scale is {ffn.route_scale}, and only gates of gate: sigmoid have one"
        if model.qk_norm and ffn.n_shared:
            yield f"n_shared is {ffn.n_shared}, and Qwen3Moe, which has QK-norm, has none"
        if model.qk_norm and ffn.balance == "bias":
            yield "balance is bias, and Qwen3Moe, which has QK-norm and a softmax, has no bias"
        if not model.qk_norm and not ffn.normalize_top_k:
            yield (
                "normalize_top_k is false, and Ernie4_5_Moe, which has no QK-norm, divides the "
                "gates by their sum"
            )
    elif not model.qk_norm and model.d_model % model.n_heads:
        yield (
            f"d_model is {model.d_model} with n_heads = {model.n_heads}, and Llama, which has no "
            "QK-norm, wants n_heads to divide d_model"
        )


def config(model: Model) -> dict[str, Any]:
    """Returns the content of config.json, or refuses the model as ``architecture_of`` does."""
    architecture, ffn = architecture_of(model), model.ffn
    quantities = {
        **dict(model),
        **dict(ffn),
        "width_of_head": model.width_of_head,
        "last_layer": model.n_layers - 1,
        "end_of_document": model.vocab_size - 1,
    }
    constants = {**COMMON["constants"], **architecture.constants}
    if isinstance(ffn, MoE):
        quantities["dense_layers"] = list(range(ffn.n_dense_layers))
        # Transformers needs a number here, even if no layer is dense and nothing has this width.
        quantities["d_ffn"] = ffn.d_ffn or ffn.d_expert
        if model.d_model % GROUPED or ffn.d_expert % GROUPED:
            constants["experts_implementation"] = "eager"  # a loop over the experts
    names = {**COMMON["names"], **architecture.names}
    return {
        "architectures": [architecture.name],
        "model_type": architecture.model_type,
        "rms_norm_eps": EPSILON,
        "rope_parameters": {"rope_type": "default", "rope_theta": model.rope_theta},
        **constants,
        **{key: quantities[name] for key, name in names.items()},
    }
