"""(g) One step by kernel: what the GPU's time goes to, at three widths."""

from __future__ import annotations

import gc
import time
from functools import partial
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from gpu.parts import Item, Setting
from moelaws.model.backends import BACKENDS
from speed.step import configuration, trainer_of

# Width -> layers and batch: as many tokens as runs of the tier node have.
SIZES = {128: (4, 72), 512: (8, 32), 1024: (8, 32)}
EXPERTS, CONTEXT, VOCABULARY, HEAD = 8, 1024, 16384, 64
SMALL = {"n_layers": 1, "context": 16, "vocab_size": 300}
WARM, TIMED, STEPS = 4, 10, 3  # steps before, steps that are timed, and that are profiled
# What a kernel's name says that it does, in the order in which it is asked.
KINDS = {
    "experts' products": ("GroupProblemShape", "grouped_mm"),
    "attention": ("flash", "fusion::", "fmha"),
    "other products": ("nvjet", "gemm", "splitK", "cublas"),
    "loss": ("logsumexp_scalar_tensor", "nll_loss", "log_softmax"),
    "optimizer": ("multi_tensor_apply", "LpNorm"),  # without the products of Muon
    "fused by torch.compile": ("triton_",),
    "sorting, gathering": ("sort", "gather", "scatter", "topk", "index"),
}


def items(setting: Setting) -> dict[str, Item]:
    """A measurement for each width by AdamW, and by Muon."""
    widths = [16] if setting.small else list(SIZES)
    return {f"d={D}{words}": partial(by_kernel, setting, D, kind)
            for kind, words in (("adamw", ""), ("muon", ", Muon")) for D in widths}  # fmt: skip


def by_kernel(setting: Setting, D: int, optimizer: str) -> dict[str, Any]:
    """Returns the milliseconds a step of each kind of kernel, and the kernels that take most.

    ``step_milliseconds`` are of a step as training makes it. For the kernels' names it is started
    without the recording.
    """
    layers, batch = SIZES.get(D, (1, 2))
    sizes = {"n_layers": layers, "context": CONTEXT, "vocab_size": VOCABULARY}
    model = {**(SMALL if setting.small else sizes), "d_model": D, "n_heads": max(1, D // HEAD)}
    ffn = {"kind": "moe", "n_experts": EXPERTS, "top_k": 2, "d_expert": D}
    config = configuration(ffn, model, batch, "bf16", optimizer)
    trainer = trainer_of(config, BACKENDS["torch"], setting.device)
    on_gpu = setting.device == "cuda"
    try:
        for _ in range(WARM):
            trainer.train_step()
        setting.synchronize()
        began = time.perf_counter()
        for _ in range(TIMED):
            trainer.train_step()
        setting.synchronize()
        spent = (time.perf_counter() - began) / TIMED
        trainer.recorder.forget()
        trainer.recorder.can_record = False
        trainer.train_step()
        setting.synchronize()
        with profile(
            activities=[ProfilerActivity.CPU, *([ProfilerActivity.CUDA] * on_gpu)]
        ) as profiled:
            for _ in range(STEPS):
                trainer.train_step()
            setting.synchronize()
    finally:
        del trainer
        gc.collect()
    kernels: dict[str, tuple[float, float]] = {}
    for event in profiled.key_averages():
        if (event.device_type == torch.autograd.DeviceType.CUDA) != on_gpu:
            continue
        total = event.self_device_time_total if on_gpu else event.self_cpu_time_total
        if total > 0 and not event.is_user_annotation:
            kernels[event.key] = total / 1e3 / STEPS, event.count / STEPS
    kinds = dict.fromkeys((*KINDS, "other"), 0.0)
    for name, (milliseconds, _) in kernels.items():
        kinds[_kind(name)] += milliseconds
    longest = sorted(kernels.items(), key=lambda item: -item[1][0])[:12]
    return {
        "n_layers": layers, "d_model": D, "batch": batch, "step_milliseconds": 1e3 * spent,
        "milliseconds": sum(spent for spent, _ in kernels.values()),
        "kernels_started": sum(count for _, count in kernels.values()),
        "kinds": kinds,
        "longest": [{"kernel": name[:120], "milliseconds": spent, "times": count}
                    for name, (spent, count) in longest],
    }  # fmt: skip


def _kind(kernel: str) -> str:
    return next((kind for kind, words in KINDS.items() if any(w in kernel for w in words)), "other")
