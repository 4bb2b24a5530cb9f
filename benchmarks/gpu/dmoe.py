"""MegaBlocks' own dropless layer, as the package makes it."""

from __future__ import annotations

from importlib import import_module

import torch.nn.functional as F
from torch import nn

from moelaws.model.megablocks.backend import load, megablocks_obstacle
from moelaws.spec.errors import UserError
from moelaws.spec.model import MoE
from moelaws.spec.run import RunConfig


def own_layer(config: RunConfig, device: str) -> nn.Module:
    """Returns the package's dropless layer with its own router and weights.

    Raises:
        UserError: where it cannot be used.
    """
    moe = config.model.ffn
    assert isinstance(moe, MoE)
    if obstacle := megablocks_obstacle(config.model, device, config.precision):
        raise UserError(obstacle)
    load()
    settings = import_module("megablocks.layers.arguments").Arguments(
        hidden_size=config.model.d_model, ffn_hidden_size=moe.d_expert,
        moe_num_experts=moe.n_experts, moe_top_k=moe.top_k, moe_normalize_expert_weights=1,
        moe_loss_weight=0, mlp_type="glu", mlp_impl="grouped", activation_fn=F.silu,
        bias=False, return_bias=False, fp16=False, bf16=config.precision == "bf16", device=device,
    )  # fmt: skip
    own: nn.Module = import_module("megablocks").dMoE(settings)
    return own
