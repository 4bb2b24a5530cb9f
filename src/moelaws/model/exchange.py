"""Experts spread over processes: tokens go to the processes that hold their experts, and back.

Each of R processes holds some consecutive ones of the E experts. No token is dropped: the processes
first tell each other how many rows they send. This is the only time that a step waits for a device.

Shapes: T tokens, K experts a token, X = T K assignments, D model width, R processes, E experts,
H experts here.
"""

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from moelaws.model.backends import ExpertsFunction
from moelaws.model.fused import mapped
from moelaws.model.grouped import sort_by_expert


class Exchange:
    """The routed experts' function if this process holds only some of the experts."""

    def __init__(self, function: ExpertsFunction, held: Sequence[int]) -> None:
        """Takes the back end's function for the experts here, and how many each process holds."""
        self.function, self.held = function, list(held)

    def __call__(
        self, x_TD: Tensor, experts_TK: Tensor, gates_TK: Tensor, *weights: Tensor
    ) -> Tensor:
        """Returns the sum over each token's experts (T, D), wherever they are."""
        R, H = len(self.held), len(weights[0])
        order = sort_by_expert(experts_TK, sum(self.held))
        counts_E = torch.diff(order.ends_E, prepend=order.ends_E.new_zeros(1))
        received_RH = counts_E.new_empty(R, H)
        dist.all_to_all_single(received_RH.view(-1), counts_E, [H] * R, self.held)
        to_R = torch.stack([counts.sum() for counts in torch.split(counts_E, self.held)])
        sent, received = torch.stack((to_R, received_RH.sum(1))).tolist()
        rows_XD = moved(x_TD[order.tokens_X], sent, received)
        kinds = torch.arange(H, device=x_TD.device).repeat(R)
        experts_X = kinds.repeat_interleave(received_RH.view(-1), output_size=len(rows_XD))
        if len(rows_XD):
            ones_X1 = gates_TK.new_ones(len(rows_XD), 1)
            rows_XD = self.function(rows_XD, experts_X[:, None], ones_X1, *weights)
        else:  # every weight needs a gradient, even if it is zero
            rows_XD = rows_XD + torch.stack([w.sum() for w in weights]).sum() * 0
        back_XD = moved(rows_XD, received, sent)
        y_TKD = back_XD[order.places_TK]
        y_TD: Tensor = (y_TKD * gates_TK.to(y_TKD.dtype)[..., None]).sum(1)
        return y_TD


def moved(rows_XD: Tensor, sent: list[int], received: list[int]) -> Tensor:
    """Exchanges rows and returns those received.

    ``sent`` and ``received`` hold how many rows go to, and come from, each process.
    """
    return mapped(
        rows_XD,
        lambda rows_XD: _exchanged(rows_XD, sent, received),
        lambda gradient_XD: _exchanged(gradient_XD, received, sent),  # the other way
    )


def _exchanged(rows_XD: Tensor, sent: list[int], received: list[int]) -> Tensor:
    out_XD = rows_XD.new_empty(sum(received), rows_XD.shape[1])
    dist.all_to_all_single(out_XD, rows_XD.contiguous(), received, sent)
    return out_XD
