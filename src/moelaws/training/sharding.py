"""Spreads a model's parameters over the processes of its run.

Each process gets some consecutive experts (``model.exchange``). Of every other parameter it holds a
part of the rows; these are gathered for a layer when it computes (torch's ``fully_shard``). If
there are fewer experts than processes, experts are sharded like the rest.
"""

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor

from moelaws.model.exchange import Exchange
from moelaws.model.experts import RoutedExperts
from moelaws.model.transformer import Transformer
from moelaws.training.ranks import Ranks


class Sharding:
    """Keeps only this process' part of each layer as soon as the layer is made.

    So a model may be larger than the memory of a device and of its host. Gradients are then means
    over the processes.
    """

    def __init__(self, ranks: Ranks, device: str) -> None:
        self.ranks, self.device = ranks, device
        self.mesh = init_device_mesh(device, (ranks.size,))
        self.dealt: set[nn.Parameter] = set()

    def __call__(self, module: nn.Module) -> None:
        """Spreads a layer, or the model around its layers."""
        for inner in module.modules():
            if isinstance(inner, RoutedExperts) and not isinstance(inner.function, Exchange):
                self._deal(inner)
        # The model around its layers frees what it gathered, too: all is sharded between steps.
        sharded = fully_shard(
            module, mesh=self.mesh, reshard_after_forward=True, ignored_params=self.dealt
        )
        assert isinstance(sharded, FSDPModule)
        sharded.set_force_sum_reduction_for_comms(True)  # gloo has no mean

    def _deal(self, module: RoutedExperts) -> None:
        """Keeps only this process' experts, if there is at least one for each process."""
        weights = [getattr(module, name) for name in module.names]
        experts = self.ranks.split(len(weights[0]))
        if not min(map(len, experts)):
            return
        mine = experts[self.ranks.rank]
        module.function = Exchange(module.function, list(map(len, experts)))
        for name, whole in zip(module.names, weights, strict=True):
            local = nn.Parameter(whole.detach()[mine.start : mine.stop].to(self.device, copy=True))
            # The tokens of all processes add to this gradient; a mean over processes is needed.
            local.register_hook(lambda gradient: gradient / self.ranks.size)  # type: ignore[no-untyped-call]
            local.dealt = mine.start, len(whole)  # type: ignore[attr-defined]
            module.register_parameter(name, local)
            self.dealt.add(local)


def gathered(model: Transformer, ranks: Ranks) -> dict[str, Tensor]:
    """Returns all weights on the host of the first process, and nothing on the others.

    All must call it. A device holds one whole parameter, or one process' experts, at a time.
    """
    weights = {}
    for name, parameter in model.named_parameters():
        whole = parameter.detach()
        if place := getattr(parameter, "dealt", None):
            whole = _joined(whole, place[1], ranks)
        elif ranks.size > 1:
            whole = whole.full_tensor()  # type: ignore[attr-defined]
        if ranks.is_first:
            weights[name] = whole.cpu().contiguous()
    return weights


def all_rows(mine: Tensor, sharded: Tensor) -> Tensor:
    """Returns, on every process, all rows of what is divided as the parameter ``sharded`` is."""
    assert isinstance(sharded, DTensor)
    mesh, placements = sharded.device_mesh, sharded.placements
    shape, stride = sharded.shape, sharded.stride()
    return DTensor.from_local(mine, mesh, placements, shape=shape, stride=stride).full_tensor()


def _joined(mine: Tensor, total: int, ranks: Ranks) -> Tensor:
    """Returns all ``total`` rows, of which each process has a part, on the first process' host."""
    rows = [mine.new_empty(0, *mine.shape[1:], device="cpu")]
    for rank, held in enumerate(ranks.split(total)):
        shard = mine if rank == ranks.rank else mine.new_empty(len(held), *mine.shape[1:])
        dist.broadcast(shard, rank)
        if ranks.is_first:
            rows.append(shard.cpu())
    return torch.cat(rows)
