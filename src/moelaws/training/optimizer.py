"""AdamW with decoupled decay (Loshchilov & Hutter, 2019), its scale-free form, and Muon."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from moelaws.model.parameterization import Factors, factors
from moelaws.spec.model import Model
from moelaws.spec.run import AdamW, Muon
from moelaws.training.checkpoint import held, take
from moelaws.training.ranks import ALONE, Ranks, own, place_of

# Jordan et al. (2024): an odd polynomial that draws singular values from (0, 1] to between .7 and
# 1.2 when it is applied five times.
NEWTON_SCHULZ, ROUNDS = (3.4445, -4.7750, 2.0315), 5


class Optimizer:
    """AdamW by torch's fused kernel, which also clips gradients; moments are in fp32.

    With ``Muon`` it is that of embeddings, unembeddings, routers, gains and biases; matrices of
    layers follow ``_step_matrix``, which takes stacked experts at once. ``torch.optim.Muon``, equal
    in a test up to its rounding to bf16, takes no stacks, only matrices one by one.

    The kernel is called without ``torch.optim``, whose constructors import torch's compiler: that
    takes a second, and a run may last three. Only matrices decay (embeddings and experts among
    them); gains of norms and biases do not. The scale-free form divides the decay by the peak rate,
    so that a step at the peak shrinks weights by ``weight_decay`` itself.
    """

    def __init__(
        self,
        parameters: Iterable[tuple[str, Tensor]],
        settings: AdamW,
        ranks: Ranks = ALONE,
        model: Model | None = None,
    ) -> None:
        """Takes a module's named ``parameters``; each of the ``ranks`` updates what it holds.

        The parameterization of ``model`` multiplies rates and epsilons; None multiplies nothing.
        """
        named = dict(parameters)
        self.factors = [
            factors(model, name, weight.shape) if model else Factors()
            for name, weight in named.items()
        ]
        self.whole = list(named.values())
        self.parameters = [own(parameter.detach()) for parameter in self.whole]
        self.settings, self.ranks = settings, ranks
        leaves = [name.rpartition(".")[2] for name in named]
        layers = [leaf.startswith("w_") for leaf in leaves] if isinstance(settings, Muon) else []
        # The one row that a router starts with is no matrix.
        self.matrices = [i for i, of in enumerate(layers) if of and self.whole[i].shape[-2] > 1]
        self.first = [torch.zeros_like(p) for p in self.parameters]
        # The momentum of a matrix is its first moment, and it has no second one.
        self.adaptive = sorted(set(range(len(leaves))) - set(self.matrices))
        self.second = [torch.zeros_like(self.parameters[i]) for i in self.adaptive]
        self.count = torch.zeros((), device=self.parameters[0].device)
        self.decay = settings.weight_decay / (settings.lr if settings.scale_free else 1.0)
        # Names decide, not shapes, because the stacked biases of experts have two dimensions.
        spared = {i for i, leaf in enumerate(leaves) if leaf.startswith(("gain", "b_"))}
        # (rate, decay, epsilon) -> places (among second moments, among all). A step shrinks weights
        # by rate times decay, which no factor changes.
        self.groups = defaultdict[tuple[float, float, float], list[tuple[int, int]]](list)
        for place in enumerate(self.adaptive):
            by = self.factors[place[1]]
            decay = 0.0 if place[1] in spared else self.decay / by.rate
            self.groups[by.rate, decay, settings.eps * by.eps].append(place)

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
        for (rate, decay, eps), members in self.groups.items():
            torch._fused_adamw_(
                [self.parameters[i] for _, i in members],
                [gradients[i] for _, i in members],
                [self.first[i] for _, i in members],
                [self.second[j] for j, _ in members],
                [],
                [self.count] * len(members),
                lr=lr * rate,
                beta1=self.settings.beta1,
                beta2=self.settings.beta2,
                weight_decay=decay,
                eps=eps,
                amsgrad=False,
                maximize=False,
                grad_scale=divisor,
            )
        for i in self.matrices:
            gradient = gradients[i] if divisor is None else gradients[i] / divisor
            self._step_matrix(i, gradient, lr)
        self.drop_gradients()
        return norm

    def _step_matrix(self, i: int, gradient: Tensor, lr: float) -> None:
        """Moves one matrix, or a stack of them, against its momentum made orthogonal."""
        assert isinstance(self.settings, Muon)
        own_rows, whole = self.parameters[i], self.whole[i]
        momentum = self.first[i].lerp_(gradient, 1 - self.settings.momentum)
        ahead = gradient.lerp(momentum, self.settings.momentum)
        place = place_of(whole, self.ranks)
        if place is None or whole.dim() > 2:
            direction = orthogonalized(ahead)
        else:  # each process has some rows of the matrix, and computes all of them
            from moelaws.training.sharding import all_rows

            direction = orthogonalized(all_rows(ahead, whole))[place[0] : place[0] + len(own_rows)]
        size = 0.2 * max(whole.shape[-2:]) ** 0.5 * self.factors[i].muon
        own_rows.mul_(1 - lr * self.decay).sub_(direction, alpha=lr * size)

    def drop_gradients(self) -> None:
        """Frees the accumulated gradients."""
        for parameter in self.whole:
            parameter.grad = None

    def state(self) -> dict[str, object]:
        """Returns the moments and the step count for a checkpoint."""
        moments = {
            name: [held(parameter, moment, self.ranks) for parameter, moment in pairs]
            for name, pairs in self._moments().items()
        }
        return {"count": self.count, **moments}

    @torch.no_grad()
    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes over a stored state of the same parameters."""
        self.count.copy_(state["count"].whole())
        for name, pairs in self._moments().items():
            for (parameter, moment), stored in zip(pairs, state[name], strict=True):
                take(parameter, moment, stored, self.ranks)

    def _moments(self) -> dict[str, list[tuple[Tensor, Tensor]]]:
        """Returns the first and the second moments, each with its parameter."""
        adaptive = [self.whole[i] for i in self.adaptive]
        return {
            "first": list(zip(self.whole, self.first, strict=True)),
            "second": list(zip(adaptive, self.second, strict=True)),
        }


def orthogonalized(g_EAB: Tensor) -> Tensor:
    """Returns U V^T of each matrix's singular value decomposition U S V^T, as Newton-Schulz has it.

    Singular values come out between 0.7 and 1.2. ``g_EAB`` is a matrix or a stack of them. It
    computes in bf16 on a GPU.
    """
    x = g_EAB.to(torch.bfloat16) if g_EAB.is_cuda else g_EAB
    wide = x.shape[-2] <= x.shape[-1]
    x = x if wide else x.mT  # the products below then have the shorter side
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7)
    a, b, c = NEWTON_SCHULZ
    for _ in range(ROUNDS):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    direction: Tensor = x if wide else x.mT
    return direction.to(g_EAB.dtype)
