"""MegaBlocks' dropless layer of experts, on weights, assignments and gates of ours.

The package's Python and Triton code is used unchanged. If its compiled CUDA extensions are not
built, operations of torch stand in for them. On a CPU, Triton's interpreter runs the kernels.

Shapes: T tokens, K experts a token, D model width, E experts, F expert width, M = 2 F.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from moelaws.model.megablocks import stand_ins
from moelaws.spec.from_toml import table_beside
from moelaws.spec.model import Model, MoE

INSTALL = "pip install --no-deps --no-build-isolation -r envs/megablocks.txt (docs/megablocks.md)"
# Extension -> the names in it that MegaBlocks' grouped layer uses
EXTENSIONS: dict[str, dict[str, Any]] = {
    "megablocks_ops": {
        "sort": stand_ins.sort,
        "histogram": stand_ins.histogram,
        "inclusive_cumsum": stand_ins.inclusive_cumsum,
    },
    "grouped_gemm": {"ops": stand_ins, "backend": None},
}


def megablocks_experts(
    x_TD: Tensor, experts_TK: Tensor, gates_TK: Tensor, w_gate_up_EDM: Tensor, w_down_EFD: Tensor
) -> Tensor:
    """Returns (T, D) of SwiGLU experts; ``w_gate_up_EDM`` has the gate's F columns first.

    This is the grouped path of ``megablocks.layers.dmoe`` (Gale et al., 2023) on the caller's
    weights, so that masters and checkpoints are those of every back end. MegaBlocks rounds the
    gates' gradient to the computing type. Raises MemoryError, which makes the micro-batch smaller,
    if its 32-bit offsets would not reach all T K rows of width D.
    """
    E, width, D = w_down_EFD.shape
    if experts_TK.numel() * D >= 2**31:
        raise MemoryError(
            f"back end megablocks: {experts_TK.numel()} rows of width {D} are beyond its 32-bit "
            "offsets (2^31 elements); fewer sequences at a time fit, and so does back end torch"
        )
    gate_EFD, up_EFD = w_gate_up_EDM.transpose(1, 2).chunk(2, dim=1)
    names = ("mlp.w1", "mlp.v1", "mlp.w2")
    weights = (w.reshape(E * width, D) for w in (gate_EFD, up_EFD, w_down_EFD))
    # The kernels read memory by address, so inputs must be contiguous.
    inputs = (x_TD.contiguous(), None, gates_TK, experts_TK)
    layer = _layer(E, experts_TK.shape[1], D)
    y_TD: Tensor = torch.func.functional_call(layer, dict(zip(names, weights, strict=True)), inputs)
    return y_TD


@cache
def _layer(n_experts: int, top_k: int, d_model: int) -> nn.Module:
    """Returns MegaBlocks' layer of experts, without its router and without memory for weights."""
    load()
    settings = import_module("megablocks.layers.arguments").Arguments(
        hidden_size=d_model,
        moe_num_experts=n_experts,
        moe_top_k=top_k,
        activation_fn=F.silu,
        **table_beside(__file__),
    )
    layer: nn.Module = import_module("megablocks.layers.dmoe").ParallelDroplessMLP(settings)
    return layer


def megablocks_obstacle(model: Model, device: str, precision: str) -> str:
    """Returns why MegaBlocks cannot train ``model`` on ``device`` and what to do, or ""."""
    if isinstance(model.ffn, MoE) and model.ffn.mlp != "swiglu":
        return f"its experts have no biases, and ffn.mlp is {model.ffn.mlp}; use back end torch"
    missing = [name for name in ("megablocks", "stk", "triton") if not installed(name)]
    if missing:
        return f"{', '.join(missing)} not installed; {INSTALL}"
    compiled = [name for name in EXTENSIONS if installed(name)]
    if device != "cuda" and (compiled or not interpreted()):
        return "its kernels want a GPU; use --device cuda, or back end torch"
    if "grouped_gemm" in compiled and precision != "bf16":
        return f"the installed grouped_gemm knows bf16 alone, and precision is {precision}"
    return ""


def installed(module: str) -> bool:
    """Returns whether a module can be imported; a mere folder of its name does not count."""
    spec = find_spec(module)
    return spec is not None and spec.origin is not None


def interpreted() -> bool:
    """Returns whether Triton's interpreter runs kernels; Triton reads this when it is imported."""
    return os.environ.get("TRITON_INTERPRET") == "1"


@cache
def load() -> None:
    """Imports the package, after which its modules ``megablocks.*`` can be imported."""
    with _extensions():
        import_module("megablocks")
    if interpreted():  # each kernel keeps its first configuration, for tuning times them on a GPU
        tuner = import_module("triton.runtime").Autotuner
        for kernel in vars(import_module("megablocks.backend.kernels")).values():
            if isinstance(kernel, tuner):
                kernel.configs = kernel.configs[:1]


@contextmanager
def _extensions() -> Iterator[None]:
    """Puts stand-ins in place of missing extensions while MegaBlocks imports them.

    They are removed after that, so that other code finds these modules missing.
    """
    absent = [name for name in EXTENSIONS if not installed(name)]
    for name in absent:
        module = ModuleType(name)
        vars(module).update(EXTENSIONS[name])
        if name == "megablocks_ops" and "grouped_gemm" in absent:
            vars(module)["histogram"] = stand_ins.histogram_on_device
        sys.modules[name] = module
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]
