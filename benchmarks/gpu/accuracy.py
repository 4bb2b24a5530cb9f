"""(b) Both back ends against the float64 loop over tokens, output and gradients."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import torch

from gpu.parts import REPOSITORY, Item, Setting
from moelaws.model.backends import choose_backend
from moelaws.model.transformer import PRECISIONS
from moelaws.spec.errors import UserError
from speed.step import configuration

sys.path.append(str(REPOSITORY / "tests"))  # their loop and their inputs are measured by here too
from expert_inputs import ROUTINGS, draw, value_and_gradients

TOLERANCE = {"fp32": 1e-5, "bf16": 2e-2}  # of the norm of each tensor's error over its own norm
NAMES = ("output", "tokens", "gates", "w_gate_up", "w_down")


def items(setting: Setting) -> dict[str, Item]:
    """A measurement for each back end and precision."""
    return {
        f"{backend} {precision}": partial(errors, setting, backend, precision)
        for backend in ("torch", "megablocks")
        for precision in TOLERANCE
    }


def errors(setting: Setting, backend: str, precision: str) -> dict[str, Any]:
    """Returns the relative error of each tensor, the largest over widths and routings."""
    sizes = [(16, 16, 8, 12)] if setting.small else [(256, 128, 8, 128), (256, 96, 64, 40)]
    worst = dict.fromkeys(NAMES, 0.0)
    for T, D, E, F in sizes:
        ffn = {"kind": "moe", "n_experts": E, "top_k": 2, "d_expert": F}
        model = {"d_model": D, "n_layers": 1, "n_heads": 1, "context": 8, "vocab_size": 260}
        config = configuration(ffn, model, 1, precision)
        try:
            choose_backend(backend, config.model, setting.device, precision)
        except UserError as error:
            return {"not_measured": str(error)}
        for routing in ROUTINGS:
            x, experts, gates, *weights = draw(T, (D, E, 2, F), routing)
            # Rounded before either computes: it is the arithmetic that is measured.
            x, *weights = (t.to(PRECISIONS[precision]) for t in (x, *weights))
            drawn = (x, experts, gates, *weights)
            expected = value_and_gradients("loop", drawn, torch.float64)
            there = [tensor.to(setting.device) for tensor in drawn]
            got = value_and_gradients(backend, there, PRECISIONS[precision])
            for name, a, b in zip(NAMES, got, expected, strict=True):
                error = float((a.detach().cpu().double() - b.detach()).norm() / b.norm())
                worst[name] = max(worst[name], error)
    tolerance = TOLERANCE[precision]
    if not all(error <= tolerance for error in worst.values()):
        raise RuntimeError(f"an error is above {tolerance:g}: {worst}")
    return {"errors": worst, "tolerance": tolerance, "sizes_TDEF": sizes, "routings": ROUTINGS}
