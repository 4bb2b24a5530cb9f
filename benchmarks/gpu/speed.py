"""(d) Speed of layers and whole steps by size, beside MegaBlocks' own layer and a dense model.

Shapes: T tokens, K experts a token, D model width, E experts.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from gpu.dmoe import own_layer
from gpu.parts import Item, Setting
from moelaws.accounting.flops import train_flops_per_token
from moelaws.model.backends import BACKENDS, choose_backend
from moelaws.model.experts import MoELayer
from moelaws.model.transformer import PRECISIONS
from moelaws.spec.errors import UserError
from moelaws.spec.model import MoE
from moelaws.spec.run import RunConfig
from moelaws.training.device import lacks_memory
from speed.clock import Call, take_turns
from speed.step import configuration, trainer_of

WIDTHS, EXPERTS = (128, 512, 1024), (8, 64)
MODEL, BATCH = {"n_layers": 4, "context": 1024, "vocab_size": 16384}, 32
SMALL, SMALL_BATCH = {"n_layers": 1, "context": 16, "vocab_size": 300}, 2
HEAD = 64  # width of an attention head
AT_A_TIME = 10  # calls between two waits for the device: as in training, the host runs ahead
COMPARED = ("torch", "megablocks")
OWN = "megablocks dMoE"  # the package's layer as it comes: its router, its weights in bf16
DENSE = "dense"  # layers as wide as the K experts of a token together: the same FLOPs, no router


def items(setting: Setting) -> dict[str, Item]:
    """A measurement for each width and number of experts, the widest models last."""
    sizes = [(D, E) for D in WIDTHS for E in EXPERTS]
    if setting.small:
        sizes = [(16, 16)]  # MegaBlocks wants E D of at least 256
    return {f"d={D} E={E}": partial(measure_size, setting, D, E) for D, E in sizes}


def measure_size(setting: Setting, D: int, E: int) -> dict[str, Any]:
    """Returns tokens/s of steps of a model of top-2 experts with d_expert = D, and of one layer
    with its router, forward and backward; of steps also model FLOPs (6 N_active) over the peak."""
    ffn = {"kind": "moe", "n_experts": E, "top_k": 2, "d_expert": D}
    sizes = {**(SMALL if setting.small else MODEL), "d_model": D, "n_heads": max(1, D // HEAD)}
    batch = SMALL_BATCH if setting.small else BATCH
    config = configuration(ffn, sizes, batch, "bf16")
    dense = configuration({"kind": "dense", "d_ffn": 2 * D}, sizes, batch, "bf16")
    usable: list[str] = []
    steps, layers = {}, {}
    for name in COMPARED:
        try:
            choose_backend(name, config.model, setting.device, "bf16")
            usable.append(name)
        except UserError as error:
            steps[name] = layers[name] = {"not_measured": str(error)}
    for name in usable:
        steps[name] = _timed(partial(_step, setting, config, name), setting, config)
    steps[DENSE] = _timed(partial(_step, setting, dense, "torch"), setting, dense)
    for name in (*usable, OWN):
        layers[name] = _timed(partial(_layer, setting, config, name), setting)
    tokens = config.batch * config.model.context
    for row in (*steps.values(), *layers.values()):
        if "seconds" in row:
            row["tokens_per_second"] = tokens / row["seconds"]
    return {"d_model": D, "n_experts": E, "tokens": tokens, "step": steps, "layer": layers}


def _step(setting: Setting, config: RunConfig, name: str) -> Call:
    return trainer_of(config, BACKENDS[name], setting.device).train_step


def _layer(setting: Setting, config: RunConfig, name: str) -> Call:
    moe, D = config.model.ffn, config.model.d_model
    assert isinstance(moe, MoE)
    layer: nn.Module
    if name == OWN:
        layer = own_layer(config, setting.device)
    else:
        generator = torch.Generator().manual_seed(0)
        layer = MoELayer(moe, D, 0.02, BACKENDS[name], generator).to(setting.device)
        # As the package's own layer has them; the router stays in fp32.
        layer.routed_experts.to(PRECISIONS[config.precision])
    tokens = config.batch * config.model.context
    shape = (tokens, 1, D) if name == OWN else (tokens, D)
    x = torch.randn(shape, device=setting.device, dtype=PRECISIONS[config.precision])
    x.requires_grad_()
    dy = torch.randn_like(x)

    def forward_backward() -> None:
        y = layer(x) if name == OWN else layer(x, 1)[0]
        torch.autograd.backward(y, dy)
        layer.zero_grad()
        x.grad = None

    return forward_backward


def _timed(
    make: Callable[[], Call], setting: Setting, config: RunConfig | None = None
) -> dict[str, Any]:
    """Returns the seconds of the call that ``make`` returns, or why there are none."""
    try:
        if setting.device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        call, seconds = make(), 0.0 if setting.small else setting.seconds
        at_a_time = 1 if setting.small else AT_A_TIME
        repeated = {"it": lambda: [call() for _ in range(at_a_time)]}
        times = take_turns(repeated, seconds, setting.synchronize)["it"]
    except UserError as error:
        return {"not_measured": str(error)}
    except RuntimeError as error:
        if not lacks_memory(error):
            raise
        return {"not_measured": "out of memory"}
    finally:
        gc.collect()  # the model goes before the next comes
        if setting.device == "cuda":
            torch.cuda.empty_cache()
    row: dict[str, Any] = {
        "seconds": min(times) / at_a_time,
        "median_seconds": statistics.median(times) / at_a_time,
    }
    if setting.device == "cuda":
        row["peak_bytes"] = torch.cuda.max_memory_allocated()
    if config and setting.peak:
        flops = train_flops_per_token(config.model, "six_n") * config.batch * config.model.context
        row["utilisation"] = flops / row["seconds"] / setting.peak
    return row
