"""Time and memory of a run, estimated before anyone spends them.

Rough on purpose: for scheduling and planning. The numbers behind the estimates are below, each with
where it comes from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from moelaws.accounting.flops import train_flops_per_token
from moelaws.accounting.parameters import count_parameters
from moelaws.spec.model import Model, MoE
from moelaws.spec.run import RunConfig


@dataclass(frozen=True)
class Device:
    """What a device gives to such trainings."""

    name: str
    flops_per_second: float  # sustained by large models
    seconds_per_layer_step: float  # overhead a layer and optimizer step, which small models feel
    startup_seconds: float
    base_memory: float  # bytes that the process takes of the host before the model
    own_memory: float  # bytes of the device's own memory; 0 where it uses the host's


# One core, fp32: least squares over the demo's runs on an AMD EPYC (Zen 4) core.
CPU = Device("CPU core", 1.0e11, 5e-3, 2.5, 3.5e8, 0.0)
# 989 TFLOP/s dense bf16 and 80 GB by NVIDIA's data sheet, at an assumed 35 % model FLOPs
# utilisation; not measured.
H100 = Device("H100", 0.35 * 9.89e14, 3e-3, 30.0, 4e9, 8e10)
DEVICES = {"cpu": CPU, "cuda": H100}


@dataclass(frozen=True)
class Cost:
    """Estimates for one run on one device."""

    flops: float  # training FLOPs, by the sparsity paper's convention
    seconds: float
    host_bytes: float
    device_bytes: float  # 0 where the device uses the host's memory


def estimate(config: RunConfig, device: Device = CPU) -> Cost:
    """Estimates seconds and bytes for training ``config`` on ``device``.

    A batch that the device's own memory does not hold goes through it in micro-batches, halved
    until they fit: ``device_bytes`` is at the largest that does, or at the smallest that there is
    where even that is too much. Where the host's memory is used, batches are whole.
    """
    model = config.model
    # fp32 weights, gradients and two moments; bf16 casts of the weights live through a step.
    bytes_per_parameter = 16.0 + (2.0 if config.precision == "bf16" else 0.0)
    states = bytes_per_parameter * count_parameters(model).total
    group = config.smallest_micro_batch
    bytes_per_group = group * model.context * activation_bytes(model, config.precision)
    groups = at_once = config.batch // group
    while (
        device.own_memory and at_once > 1 and states + at_once * bytes_per_group > device.own_memory
    ):
        at_once = math.ceil(at_once / 2)
    training = states + at_once * bytes_per_group

    per_token = train_flops_per_token(model, "sparsity")
    evaluated = config.evaluation.sequences * model.context / 3  # forward alone
    passes = config.steps * math.ceil(groups / at_once)
    overhead = device.seconds_per_layer_step * model.n_layers * passes
    # A GPU's checkpoint passes through the host.
    held = states if device.own_memory else training
    return Cost(
        flops=per_token * config.tokens,
        seconds=device.startup_seconds
        + overhead
        + per_token * (config.tokens + evaluated) / device.flops_per_second,
        host_bytes=device.base_memory + held,
        device_bytes=training if device.own_memory else 0.0,
    )


def activation_bytes(model: Model, precision: Literal["fp32", "bf16"]) -> float:
    """Estimates the bytes a token that wait for the backward pass, with the logits' gradient.

    By what the built models keep: 16 d a layer of residual stream, norms and attention, the input,
    output and two hidden rows of each routed expert, four hidden rows of an MLP for all tokens.
    """
    d, ffn = model.d_model, model.ffn
    values = 16 * d * model.n_layers
    if isinstance(ffn, MoE):
        routed = 2 * ffn.top_k * (d + ffn.d_expert)
        shared = 4 * ffn.n_shared * ffn.d_expert
        values += model.n_moe_layers * (routed + shared + 2 * ffn.n_experts)
    values += (model.n_layers - model.n_moe_layers) * 4 * (ffn.d_ffn or 0)
    # In bf16 the residual stream, the norms and the router stay fp32.
    width = 4.0 if precision == "fp32" else 2.8
    return width * values + 3 * 4.0 * model.vocab_size
