"""(b) Both back ends against the float64 loop over tokens, output and gradients."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from gpu.parts import Item, Setting
from moelaws.model.backends import BACKENDS, choose_backend
from moelaws.model.transformer import PRECISIONS
from moelaws.spec.errors import UserError
from speed.step import configuration

TOLERANCE = {"fp32": 1e-5, "bf16": 2e-2}  # of the norm of each tensor's error over its own norm
NAMES = ("output", "tokens", "gates", "w_gate_up", "w_down")
# Each expert may get tokens; only half of them; all tokens on the last two.
ROUTINGS = ("random", "half of the experts", "all on the same")


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
            drawn = draw(T, D, E, F, routing, PRECISIONS[precision])
            expected = gradients("reference", drawn, "cpu", torch.float64)
            got = gradients(backend, drawn, setting.device, PRECISIONS[precision])
            for name, a, b in zip(NAMES, got, expected, strict=True):
                error = float((a.cpu().double() - b).norm() / b.norm())
                worst[name] = max(worst[name], error)
    tolerance = TOLERANCE[precision]
    if not all(error <= tolerance for error in worst.values()):
        raise RuntimeError(f"an error is above {tolerance:g}: {worst}")
    return {"errors": worst, "tolerance": tolerance, "sizes_TDEF": sizes, "routings": ROUTINGS}


def draw(T: int, D: int, E: int, F: int, routing: str, dtype: torch.dtype) -> list[Tensor]:
    """Returns tokens, experts, gates and weights, rounded to ``dtype`` for all who compute."""
    g = torch.Generator().manual_seed(0)
    among = {"random": E, "half of the experts": E // 2, "all on the same": 2}[routing]
    experts_TK = E - 1 - torch.rand(T, among, generator=g).topk(2).indices
    shapes = ((T, D), (T, 2), (E, D, 2 * F), (E, F, D))
    x, gates, up, down = (torch.randn(shape, generator=g) for shape in shapes)
    weights = [w.div(w.shape[1] ** 0.5).to(dtype) for w in (up, down)]
    return [x.to(dtype), experts_TK, gates.sigmoid(), *weights]


def gradients(name: str, drawn: list[Tensor], device: str, dtype: torch.dtype) -> list[Tensor]:
    """Returns the output and the gradients by tokens, gates and both weights."""
    x, experts, gates, *weights = (tensor.to(device) for tensor in drawn)
    gates = gates.to(torch.float64 if dtype == torch.float64 else torch.float32)
    leaves = [
        t.detach().requires_grad_() for t in (x.to(dtype), gates, *(w.to(dtype) for w in weights))
    ]
    y = BACKENDS[name].functions["swiglu"](leaves[0], experts, *leaves[1:])
    pulled = torch.linspace(-1, 1, y.numel(), dtype=dtype, device=device).view(y.shape)
    return [y.detach(), *torch.autograd.grad(y, leaves, pulled)]
