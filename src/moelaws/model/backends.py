"""The back ends of the routed experts, and which of them a machine can use.

For given assignments and gates, every back end computes the same sum over a token's experts from
the same parameters. It changes speed and rounding, but never the model, and it never drops a token:
what is beyond a capacity reaches it with a gate of 0.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from moelaws.model.grouped import grouped_experts, grouped_gelu
from moelaws.model.megablocks.backend import megablocks_experts, megablocks_obstacle
from moelaws.model.mlp import feed_forward
from moelaws.spec.errors import UserError
from moelaws.spec.model import Mlp, Model, MoE

# (x_TD, experts_TK, gates_TK, *weights) -> y_TD, for T tokens, K experts a token, D model width.
# The weights are those of ``mlp.weight_shapes``, in the type of x; the gates are in fp32.
ExpertsFunction = Callable[..., Tensor]


@dataclass(frozen=True)
class Backend:
    """One way to compute the routed experts of each kind."""

    name: str
    functions: Mapping[Mlp, ExpertsFunction]
    about: str
    # (model, device, precision) -> why it cannot be used and what to do; empty if it can be used
    obstacle: Callable[[Model, str, str], str]


def token_loop(x_TD: Tensor, experts_TK: Tensor, gates_TK: Tensor, *weights: Tensor) -> Tensor:
    """Computes y_t = sum_k gate_tk * expert_{e_tk}(x_t) in float64, one token after another."""

    def product(x: Tensor, w: Tensor, b: Tensor | float = 0.0) -> Tensor:
        return x @ w + b

    doubles = [weight.double() for weight in weights]
    rows = []
    for x_D, chosen, gates_K in zip(
        x_TD.double(), experts_TK.tolist(), gates_TK.double(), strict=True
    ):
        y_D = torch.zeros_like(x_D)
        for e, gate in zip(chosen, gates_K, strict=True):
            y_D = y_D + gate * feed_forward(x_D, [weight[e] for weight in doubles], product)
        rows.append(y_D)
    return torch.stack(rows).to(x_TD.dtype)


def _torch_obstacle(model: Model, device: str, precision: str) -> str:
    if hasattr(F, "grouped_mm"):
        return ""
    return f"torch {torch.__version__} has no grouped_mm; install torch 2.10 or later"


def _reference_obstacle(model: Model, device: str, precision: str) -> str:
    return "" if device == "cpu" else "it computes on the CPU alone; use --device cpu"


BACKENDS: dict[str, Backend] = {
    backend.name: backend
    for backend in (
        Backend(
            "torch",
            {"swiglu": grouped_experts, "gelu": grouped_gelu},
            "sorted tokens, grouped matrix products",
            _torch_obstacle,
        ),
        Backend(
            "megablocks",
            {"swiglu": megablocks_experts},
            "the MegaBlocks package's grouped layer",
            megablocks_obstacle,
        ),
        Backend(
            "reference",
            {"swiglu": token_loop, "gelu": token_loop},
            "a float64 loop over tokens",
            _reference_obstacle,
        ),
    )
}
HOPPER = (9, 0)  # from here on torch's grouped products are one kernel, and faster: docs/speed.md


def preferred(device: str) -> tuple[str, ...]:
    """Returns the back ends that ``auto`` tries, in order of preference."""
    if device == "cpu":
        return ("torch",)
    if torch.cuda.is_available() and torch.cuda.get_device_capability() >= HOPPER:
        return ("torch", "megablocks")
    return ("megablocks", "torch")


def choose_backend(name: str, model: Model, device: str, precision: str) -> tuple[Backend, str]:
    """Returns a back end, by its name or (``auto``) the first usable one, and a line that says why.

    Raises UserError, which says what is missing, if it is unknown or cannot be used.
    """
    if name != "auto" and name not in BACKENDS:
        raise UserError(f"back end {name!r} is unknown; there are auto, {', '.join(BACKENDS)}")
    if not isinstance(model.ffn, MoE):
        return BACKENDS["torch"], f"a dense model on {device}: no experts, no back end of theirs"
    if name != "auto":
        obstacle = BACKENDS[name].obstacle(model, device, precision)
        if obstacle:
            raise UserError(f"back end {name} cannot be used: {obstacle}")
        return BACKENDS[name], f"back end {name} on {device}, as chosen"
    passed_over = ""
    for candidate in preferred(device):
        backend = BACKENDS[candidate]
        obstacle = backend.obstacle(model, device, precision)
        if not obstacle:
            return backend, f"back end {candidate} on {device} (auto: {backend.about}{passed_over})"
        passed_over += f"; not {candidate}: {obstacle}"
    raise UserError(f"no back end can be used{passed_over}")
