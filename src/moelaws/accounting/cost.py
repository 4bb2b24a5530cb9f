"""Time and memory of a run, estimated before anyone spends them.

Rough on purpose: for scheduling and planning. The numbers behind the estimates are below, each with
where it comes from.
"""

from __future__ import annotations

from dataclasses import dataclass

from moelaws.accounting.flops import train_flops_per_token
from moelaws.accounting.parameters import count_parameters
from moelaws.spec.model import MoE
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
    """Seconds and bytes for training ``config`` on ``device``, a whole batch at a time."""
    model = config.model
    per_token = train_flops_per_token(model, "sparsity")
    evaluated = config.evaluation.sequences * model.context / 3  # forward alone
    work = per_token * (config.tokens + evaluated)
    overhead = device.seconds_per_layer_step * model.n_layers * config.steps
    # fp32 weights, gradients and two moments.
    states = 16.0 * count_parameters(model).total
    width = model.ffn.d_expert * model.ffn.top_k if isinstance(model.ffn, MoE) else model.ffn.d_ffn
    # Saved for the backward pass, a token: residual branches, expert hidden layers, logits thrice.
    saved = model.n_layers * (16 * model.d_model + 6 * width) + 3 * model.vocab_size
    training = states + 4.0 * config.batch * model.context * saved
    # A GPU's checkpoint passes through the host.
    held = states if device.own_memory else training
    return Cost(
        flops=per_token * config.tokens,
        seconds=device.startup_seconds + overhead + work / device.flops_per_second,
        host_bytes=device.base_memory + held,
        device_bytes=training if device.own_memory else 0.0,
    )
