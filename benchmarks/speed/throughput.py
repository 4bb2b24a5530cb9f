"""Tokens per second and model FLOPs utilisation of every back end, with MegaBlocks' own layer as
the yardstick: what a GPU makes of the model.

Shapes: T tokens, K experts a token, D model width, E experts, F expert width.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from moelaws.accounting.flops import train_flops_per_token
from moelaws.model.backends import BACKENDS, choose_backend
from moelaws.model.experts import MoELayer
from moelaws.model.megablocks.backend import megablocks_obstacle
from moelaws.model.megablocks.package import load
from moelaws.model.transformer import PRECISIONS
from moelaws.spec.errors import UserError
from moelaws.spec.model import MoE
from moelaws.spec.run import RunConfig
from moelaws.training.device import lacks_memory
from speed.clock import Call, take_turns
from speed.step import configuration, trainer_of

HEAD = 64  # width of an attention head
COMPARED = ("torch", "megablocks")
OWN = "megablocks dMoE"  # the package's layer as it comes: its router, its weights in bf16

# Dense bf16 tensor-core FLOP/s without sparsity, from the makers' data sheets; the first that
# occurs in a device's name.
PEAKS = {"H100 PCIe": 756e12, "H100": 989e12, "H200": 989e12, "A100": 312e12}


def peak_flops(device_name: str) -> float | None:
    """FLOP/s that utilisation is a share of, or None for a device that is not in the list."""
    return next((peak for name, peak in PEAKS.items() if name in device_name), None)


@dataclass(frozen=True)
class Accelerator:
    """What is measured: a torch device, its peak FLOP/s in the precision of the models."""

    device: str
    peak: float
    precision: str = "bf16"


def measure_throughput(
    accelerator: Accelerator,
    widths: Sequence[int],
    experts: Sequence[int],
    model: dict[str, int],
    batch: int,
    seconds: float,
) -> list[dict[str, Any]]:
    """A row for each D and E, with d_expert = D.

    ``step``: whole training steps of a model of top-2 experts, tokens/s and model FLOPs
    (6 N_active) as a share of the peak; ``layer``: one layer of experts with its router, forward
    and backward, on as many tokens. What cannot be measured says why.
    """
    rows = []
    device, peak = accelerator.device, accelerator.peak
    for D in widths:
        for E in experts:
            ffn = {"kind": "moe", "n_experts": E, "top_k": 2, "d_expert": D}
            sizes = {**model, "d_model": D, "n_heads": max(1, D // HEAD)}
            config = configuration(ffn, sizes, batch, accelerator.precision)
            rows.append(
                {
                    "d_model": D,
                    "n_experts": E,
                    "d_expert": D,
                    "step": {n: _step(config, n, device, peak, seconds) for n in COMPARED},
                    "layer": {n: _layer(config, n, device, seconds) for n in (*COMPARED, OWN)},
                }
            )
    return rows


def _step(config: RunConfig, name: str, device: str, peak: float, seconds: float) -> dict[str, Any]:
    tokens = config.batch * config.model.context

    def call() -> Call:
        backend, _ = choose_backend(name, config.model, device, config.precision)
        return trainer_of(config, backend, device)._step

    timing = _timed(call, device, seconds)
    if isinstance(timing, str):
        return {"not_measured": timing}
    flops = train_flops_per_token(config.model, "six_n") * tokens
    return {
        "seconds": timing,
        "tokens_per_second": tokens / timing,
        "utilisation": flops / timing / peak,
    }


def _layer(config: RunConfig, name: str, device: str, seconds: float) -> dict[str, Any]:
    moe, D = config.model.ffn, config.model.d_model
    assert isinstance(moe, MoE)
    tokens = config.batch * config.model.context
    dtype = PRECISIONS[config.precision]

    def call() -> Call:
        layer: nn.Module
        if name == OWN:
            layer = _own_layer(config, device)
        else:
            choose_backend(name, config.model, device, config.precision)
            generator = torch.Generator().manual_seed(0)
            layer = MoELayer(moe, D, 0.02, BACKENDS[name], generator).to(device)
        shape = (tokens, 1, D) if name == OWN else (tokens, D)
        x = torch.randn(shape, device=device, dtype=dtype).requires_grad_()
        dy = torch.randn_like(x)

        def forward_backward() -> None:
            y = layer(x) if name == OWN else layer(x, 1)[0]
            torch.autograd.backward(y, dy)
            layer.zero_grad()
            x.grad = None

        return forward_backward

    timing = _timed(call, device, seconds)
    if isinstance(timing, str):
        return {"not_measured": timing}
    return {"seconds": timing, "tokens_per_second": tokens / timing}


def _own_layer(config: RunConfig, device: str) -> nn.Module:
    moe, D = config.model.ffn, config.model.d_model
    assert isinstance(moe, MoE)
    obstacle = megablocks_obstacle(config.model, device, config.precision)
    if obstacle:
        raise UserError(obstacle)
    load()
    settings = import_module("megablocks.layers.arguments").Arguments(
        hidden_size=D,
        ffn_hidden_size=moe.d_expert,
        moe_num_experts=moe.n_experts,
        moe_top_k=moe.top_k,
        moe_normalize_expert_weights=1,
        moe_loss_weight=0,
        mlp_type="glu",
        mlp_impl="grouped",
        activation_fn=F.silu,
        bias=False,
        return_bias=False,
        fp16=False,
        bf16=config.precision == "bf16",
        device=device,
    )
    layer: nn.Module = import_module("megablocks").dMoE(settings)
    return layer


def _timed(make: Call, device: str, seconds: float) -> float | str:
    """Least seconds of the call that ``make`` returns, or why there is none."""
    synchronize = torch.cuda.synchronize if device == "cuda" else lambda: None
    try:
        call = make()
        assert callable(call)
        return min(take_turns({"it": call}, seconds, synchronize)["it"])
    except UserError as error:
        return str(error)
    except RuntimeError as error:
        if not lacks_memory(error):
            raise
        return "out of memory"
    finally:
        gc.collect()  # the model goes before the next comes
        if device == "cuda":
            torch.cuda.empty_cache()
