"""The back ends of the routed experts, and which of them a machine can use.

For given assignments and gates, every back end computes the same sum over a token's experts from
the same parameters. It changes speed and rounding, but never the model, and it never drops a token:
what is beyond a capacity reaches it with a gate of 0.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from moelaws.model.grouped import grouped_experts, grouped_gelu
from moelaws.model.megablocks.backend import megablocks_experts, megablocks_obstacle
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


BACKENDS = {
    backend.name: backend
    for backend in (
        Backend(
            "torch",
            {"swiglu": grouped_experts, "gelu": grouped_gelu},
            "sorted tokens, grouped matrix products",
        ),
        Backend(
            "megablocks",
            {"swiglu": megablocks_experts},
            "the MegaBlocks package's grouped layer",
        ),
    )
}
# From this capability on torch's grouped products are one kernel, and faster: docs/speed.md.
HOPPER = (9, 0)


def choose_backend(name: str, model: Model, device: str, precision: str) -> tuple[Backend, str]:
    """Returns a back end, by its name or (``auto``) the faster one, and a line that says why.

    Raises UserError, which says what is missing, if it is unknown or cannot be used.
    """
    if name != "auto" and name not in BACKENDS:
        raise UserError(f"back end {name!r} is unknown; there are auto, {', '.join(BACKENDS)}")
    if not isinstance(model.ffn, MoE):
        return BACKENDS["torch"], f"a dense model on {device}: no experts, no back end of theirs"
    first = name
    if name == "auto":  # it takes this one if it can be used; torch's always can
        older = device == "cuda" and torch.cuda.get_device_capability() < HOPPER
        first = "megablocks" if older else "torch"
    obstacle = megablocks_obstacle(model, device, precision) if first == "megablocks" else ""
    if obstacle and name != "auto":
        raise UserError(f"back end {name} cannot be used: {obstacle}")
    backend = BACKENDS["torch" if obstacle else first]
    passed_over = f"; not {first}: {obstacle}" if obstacle else ""
    why = f" (auto: {backend.about}{passed_over})" if name == "auto" else ", as chosen"
    return backend, f"back end {backend.name} on {device}{why}"
