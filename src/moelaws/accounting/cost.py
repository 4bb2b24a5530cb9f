"""Time and memory of a run, estimated before anyone spends them.

Rough on purpose: for scheduling and planning. The numbers behind the estimates are below, each with
where it comes from.
"""

from __future__ import annotations

from dataclasses import dataclass

from moelaws.accounting.flops import train_flops_per_token
from moelaws.accounting.parameters import count_parameters
from moelaws.spec.run import MoE, RunConfig


@dataclass(frozen=True)
class Device:
    """What a device gives to such trainings."""

    name: str
    flops_per_second: float  # sustained by large models
    seconds_per_layer_step: float  # overhead a layer and optimizer step, which small models feel
    startup_seconds: float
    base_memory: float  # bytes of the process before the model
    micro_batch: int  # tokens that go through the model at once


# One core, fp32, measured with benchmarks/ on an AMD EPYC (Zen 4) core.
CPU = Device("CPU core", 4.0e10, 1.5e-3, 3.0, 4.5e8, 1 << 30)
# 989 TFLOP/s dense bf16 by NVIDIA's data sheet, at an assumed 35 % model FLOPs utilisation.
H100 = Device("H100", 0.35 * 9.89e14, 3e-3, 30.0, 3e9, 1 << 16)
DEVICES = {"cpu": CPU, "cuda": H100}


@dataclass(frozen=True)
class Cost:
    """Estimates for one run on one device."""

    flops: float  # training FLOPs, by the sparsity paper's convention
    seconds: float
    memory_bytes: float


def estimate(config: RunConfig, device: Device = CPU) -> Cost:
    """Seconds and bytes for training ``config`` on ``device``."""
    model = config.model
    per_token = train_flops_per_token(model, "sparsity")
    evaluated = config.evaluation.sequences * model.context / 3  # forward alone
    work = per_token * (config.tokens + evaluated)
    overhead = device.seconds_per_layer_step * model.n_layers * config.steps
    # fp32 weights, gradients and two moments.
    states = 16.0 * count_parameters(model).total
    width = model.ffn.d_expert * model.ffn.top_k if isinstance(model.ffn, MoE) else model.ffn.d_ffn
    # Saved for the backward pass, a token: residual branches, expert hidden layers, logits twice.
    saved = model.n_layers * (16 * model.d_model + 6 * width) + 3 * model.vocab_size
    activations = 4.0 * min(config.batch * model.context, device.micro_batch) * saved
    return Cost(
        flops=per_token * config.tokens,
        seconds=device.startup_seconds + overhead + work / device.flops_per_second,
        memory_bytes=device.base_memory + states + activations,
    )
