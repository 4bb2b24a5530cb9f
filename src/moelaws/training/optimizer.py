"""AdamW with decoupled decay (Loshchilov & Hutter, 2019) and its scale-free form."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from moelaws.spec.run import AdamW


class Optimizer:
    """AdamW by torch's fused kernel, gradient clipping included; moments are fp32.

    The kernel is called without ``torch.optim``, whose constructors import torch's compiler: a
    second of a run that may last three. Only matrices decay (embeddings and experts among them);
    the gains of norms and the biases do not. The scale-free form divides the decay by the peak
    rate, so that a step at the peak shrinks weights by ``weight_decay`` itself.
    """

    def __init__(self, parameters: Iterable[tuple[str, Tensor]], settings: AdamW) -> None:
        """Takes the ``parameters`` of a module with their names."""
        named = dict(parameters)
        self.parameters = list(named.values())
        self.settings = settings
        self.first = [torch.zeros_like(p) for p in self.parameters]
        self.second = [torch.zeros_like(p) for p in self.parameters]
        self.count = torch.zeros((), device=self.parameters[0].device)
        decay = settings.weight_decay / (settings.lr if settings.scale_free else 1.0)
        # The stacked biases of experts are two-dimensional: their name tells, not their shape.
        bare = [name.rpartition(".")[2].startswith(("gain", "b_")) for name in named]
        self.groups = [
            ([i for i, spared in enumerate(bare) if not spared], decay),
            ([i for i, spared in enumerate(bare) if spared], 0.0),
        ]

    @torch.no_grad()
    def step(self, lr: float) -> Tensor:
        """Updates by the gradients at hand, drop them, and return their global norm (a scalar).

        With ``clip`` above 0 gradients are divided by max(1, norm / clip).
        """
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        assert len(gradients) == len(self.parameters)
        norm: Tensor = torch.stack(torch._foreach_norm(gradients)).norm()
        clip = self.settings.clip
        divisor = (norm / clip).clamp(min=1.0) if clip else None
        self.count += 1
        for members, decay in self.groups:
            torch._fused_adamw_(
                [self.parameters[i] for i in members],
                [gradients[i] for i in members],
                [self.first[i] for i in members],
                [self.second[i] for i in members],
                [],
                [self.count] * len(members),
                lr=lr,
                beta1=self.settings.beta1,
                beta2=self.settings.beta2,
                weight_decay=decay,
                eps=self.settings.eps,
                amsgrad=False,
                maximize=False,
                grad_scale=divisor,
            )
        self.drop_gradients()
        return norm

    def drop_gradients(self) -> None:
        """Forgets what was accumulated."""
        for parameter in self.parameters:
            parameter.grad = None

    def state(self) -> dict[str, object]:
        """Returns moments and step count, for a checkpoint."""
        return {"first": self.first, "second": self.second, "count": self.count}

    @torch.no_grad()
    def restore(self, state: dict[str, list[Tensor]]) -> None:
        """Takes over a state of the same parameters."""
        for mine, theirs in (
            (self.first, state["first"]),
            (self.second, state["second"]),
            ([self.count], [state["count"]]),
        ):
            for to, value in zip(mine, theirs, strict=True):
                assert isinstance(value, Tensor)
                to.copy_(value)
