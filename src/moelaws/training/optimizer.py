"""AdamW with decoupled decay (Loshchilov & Hutter, 2019) and its scale-free form."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from moelaws.spec.run import AdamW
from moelaws.training.checkpoint import held, take
from moelaws.training.ranks import ALONE, Ranks, own


class Optimizer:
    """AdamW by torch's fused kernel, which also clips gradients; moments are in fp32.

    The kernel is called without ``torch.optim``, whose constructors import torch's compiler: that
    takes a second, and a run may last three. Only matrices decay (embeddings and experts among
    them); gains of norms and biases do not. The scale-free form divides the decay by the peak rate,
    so that a step at the peak shrinks weights by ``weight_decay`` itself.
    """

    def __init__(
        self, parameters: Iterable[tuple[str, Tensor]], settings: AdamW, ranks: Ranks = ALONE
    ) -> None:
        """Takes a module's named ``parameters``; each of the ``ranks`` updates what it holds."""
        named = dict(parameters)
        self.whole = list(named.values())
        self.parameters = [own(parameter.detach()) for parameter in self.whole]
        self.settings, self.ranks = settings, ranks
        self.first = [torch.zeros_like(p) for p in self.parameters]
        self.second = [torch.zeros_like(p) for p in self.parameters]
        self.count = torch.zeros((), device=self.parameters[0].device)
        decay = settings.weight_decay / (settings.lr if settings.scale_free else 1.0)
        # Names decide, not shapes, because the stacked biases of experts have two dimensions.
        bare = [name.rpartition(".")[2].startswith(("gain", "b_")) for name in named]
        self.groups = [
            ([i for i, spared in enumerate(bare) if not spared], decay),
            ([i for i, spared in enumerate(bare) if spared], 0.0),
        ]

    @torch.no_grad()
    def step(self, lr: float) -> Tensor:
        """Applies the gradients, frees them, and returns their global norm (a scalar).

        If ``clip`` is above 0, gradients are divided by max(1, norm / clip).
        """
        gradients = [own(p.grad) for p in self.whole if p.grad is not None]
        assert len(gradients) == len(self.parameters)
        norm: Tensor = torch.stack(torch._foreach_norm(gradients)).norm()
        if self.ranks.size > 1:
            norm = self.ranks.total(norm.square()).sqrt()
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
        """Frees the accumulated gradients."""
        for parameter in self.whole:
            parameter.grad = None

    def state(self) -> dict[str, object]:
        """Returns the moments and the step count for a checkpoint."""

        def rows(moments: list[Tensor]) -> list[object]:
            return [held(p, m, self.ranks) for p, m in zip(self.whole, moments, strict=True)]

        return {"count": self.count, "first": rows(self.first), "second": rows(self.second)}

    @torch.no_grad()
    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes over a stored state of the same parameters."""
        self.count.copy_(state["count"].whole())
        for mine, stored in ((self.first, state["first"]), (self.second, state["second"])):
            for parameter, values, theirs in zip(self.whole, mine, stored, strict=True):
                take(parameter, values, theirs, self.ranks)
