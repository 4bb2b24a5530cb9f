"""Which architecture of transformers computes exactly what a run's model computes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from moelaws.model.attention import EPSILON
from moelaws.spec.errors import UserError
from moelaws.spec.model import DenseFFN, Model, MoE

FITS = (
    "What fits has mlp: swiglu. Dense models fit with and without qk_norm; models with experts fit "
    "with gate: sigmoid, with qk_norm: true and n_shared: 0, or with qk_norm: false and "
    "normalize_top_k: true"
)
# Transformers prefers grouped matrix products for experts. Their rows must have a multiple of 16
# bytes, which are this many numbers in bf16.
GROUPED = 8


@dataclass(frozen=True)
class Architecture:
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
    bias_is_row: bool = False  # (1, E) instead of (E,)
    has_shared: bool = False  # always; those of a model without shared experts have the width 0


QWEN3 = Architecture("Qwen3ForCausalLM", "qwen3")
LLAMA = Architecture("LlamaForCausalLM", "llama")
QWEN3_MOE = Architecture("Qwen3MoeForCausalLM", "qwen3_moe")
ERNIE_MOE = Architecture(
    "Ernie4_5_MoeForCausalLM", "ernie4_5_moe", turns_neighbours=True,
    router_bias="mlp.moe_statics.e_score_correction_bias", bias_is_row=True,
)  # fmt: skip
# The router of DeepSeek-V3 with ordinary attention; DeepSeek-V3 itself has latent attention.
GLM4_MOE = Architecture(
    "Glm4MoeForCausalLM", "glm4_moe",
    router_bias="mlp.gate.e_score_correction_bias", has_shared=True,
)  # fmt: skip


def architecture_of(model: Model) -> Architecture:
    """Returns the architecture that gives the logits of ``model``.

    Raises UserError where none of those above does, with each reason and with what would fit.
    """
    if reasons := list(_obstacles(model)):
        raise UserError(
            "no architecture of transformers that moelaws knows computes what this model does: "
            f"{'; '.join(reasons)}. {FITS}"
        )
    if isinstance(model.ffn, MoE):
        if model.ffn.gate == "sigmoid":
            return GLM4_MOE
        return QWEN3_MOE if model.qk_norm else ERNIE_MOE
    return QWEN3 if model.qk_norm else LLAMA


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
    architecture = architecture_of(model)
    end_of_document = model.vocab_size - 1
    return {
        "architectures": [architecture.name],
        "model_type": architecture.model_type,
        "dtype": "float32",
        "vocab_size": model.vocab_size,
        "hidden_size": model.d_model,
        "num_hidden_layers": model.n_layers,
        "num_attention_heads": model.n_heads,
        "num_key_value_heads": model.n_kv,
        "head_dim": model.width_of_head,
        "hidden_act": "silu",
        "rms_norm_eps": EPSILON,
        "rope_parameters": {"rope_type": "default", "rope_theta": model.rope_theta},
        "rope_theta": model.rope_theta,  # transformers before version 5 reads it here
        "max_position_embeddings": model.context,
        "tie_word_embeddings": model.tied_embeddings,
        "bos_token_id": end_of_document,  # it stands before each document, too
        "eos_token_id": end_of_document,
        **_feed_forward(model),
    }


def _feed_forward(model: Model) -> dict[str, Any]:
    ffn = model.ffn
    if isinstance(ffn, DenseFFN):
        return {"intermediate_size": ffn.d_ffn}
    widths: dict[str, Any] = {
        # Transformers needs a number here, even if no layer is dense and nothing has this width.
        "intermediate_size": ffn.d_ffn or ffn.d_expert,
        "moe_intermediate_size": ffn.d_expert,
    }
    if model.d_model % GROUPED or ffn.d_expert % GROUPED:
        widths["experts_implementation"] = "eager"  # a loop over the experts
    if ffn.gate == "sigmoid":
        return {
            **widths,
            "n_routed_experts": ffn.n_experts,
            "num_experts_per_tok": ffn.top_k,
            "n_shared_experts": ffn.n_shared,
            "norm_topk_prob": ffn.normalize_top_k,
            "routed_scaling_factor": ffn.route_scale,
            "first_k_dense_replace": ffn.n_dense_layers,
            "n_group": 1,
            "topk_group": 1,
            "use_qk_norm": model.qk_norm,
            "partial_rotary_factor": 1.0,
            "num_nextn_predict_layers": 0,
        }
    if model.qk_norm:
        return {
            **widths,
            "num_experts": ffn.n_experts,
            "num_experts_per_tok": ffn.top_k,
            "norm_topk_prob": ffn.normalize_top_k,
            "decoder_sparse_step": 1,
            "mlp_only_layers": list(range(ffn.n_dense_layers)),
        }
    return {
        **widths,
        "moe_num_experts": ffn.n_experts,
        "moe_k": ffn.top_k,
        "moe_num_shared_experts": ffn.n_shared,
        "moe_layer_start_index": ffn.n_dense_layers,
        "moe_layer_end_index": model.n_layers - 1,
        "moe_layer_interval": 1,
        "use_bias": False,
    }
