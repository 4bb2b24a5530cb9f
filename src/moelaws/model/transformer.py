"""The decoder-only transformer that a ``spec.model.Model`` describes.

Shapes: B sequences, N positions, T = B N tokens, D model width, V vocabulary, L layers, E experts,
G balance groups.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from moelaws.model.attention import Attention, RMSNorm, added_and_normed, rotary
from moelaws.model.backends import BACKENDS, Backend
from moelaws.model.casting import cast
from moelaws.model.experts import MoELayer
from moelaws.model.head import mean_loss
from moelaws.model.initial import random_weight
from moelaws.model.mlp import MLP, dense_shapes
from moelaws.model.parameterization import bias_rate, factors, multipliers
from moelaws.model.router import Noise, Routing
from moelaws.model.slices import SlicedBlock
from moelaws.spec.model import Model, MoE

Head = Callable[[Tensor, Tensor], Tensor]
PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16}


class Losses(NamedTuple):
    """The losses of one batch, three scalars, and the load of the experts."""

    cross_entropy: Tensor  # nats per token
    balance: Tensor  # mean over the layers with experts, and so is z
    z: Tensor
    counts_LE: Tensor | None  # int64: ``assignments``; None for dense models


class Block(nn.Module):
    """Pre-norm attention and feed-forward, each added to the residual stream."""

    def __init__(
        self, model: Model, layer: int, backend: Backend, generator: torch.Generator
    ) -> None:
        super().__init__()
        d, std, ffn = model.d_model, model.init_std, model.ffn
        self.attention_norm = RMSNorm(d)
        self.attention = Attention(model, generator)
        self.ffn_norm = RMSNorm(d)
        self.residual = multipliers(model).residual
        self.moe: MoELayer | None = None
        self.dense_ffn: nn.Module | None = None
        if isinstance(ffn, MoE) and layer >= ffn.n_dense_layers:
            self.moe = MoELayer(ffn, d, std, backend, generator, layer)
            self.moe.scale = multipliers(model).routed
        else:
            assert ffn.d_ffn is not None  # the configuration's checks refuse a model without it
            self.dense_ffn = MLP(dense_shapes(ffn.mlp, d, ffn.d_ffn), std, generator)

    def forward(
        self,
        x_BND: Tensor,
        rotation: Tensor,
        dtype: torch.dtype,
        groups: int,
        noise: Noise,
        tokens_BN: Tensor,
    ) -> tuple[Tensor, Routing | None]:
        y_BND = self.attention(self.attention_norm(x_BND, dtype), rotation)
        x_BND, h_BND = added_and_normed(x_BND, self._added(y_BND), self.ffn_norm.gain, dtype)
        routing = None
        if self.moe is not None:
            y_TD, routing = self.moe(h_BND, groups, noise, tokens_BN)
        else:
            assert self.dense_ffn is not None
            y_TD = self.dense_ffn(h_BND.flatten(0, 1))
        return x_BND + self._added(y_TD).view(x_BND.shape), routing

    def _added(self, y: Tensor) -> Tensor:
        return y if self.residual == 1 else y * self.residual


class Transformer(nn.Module):
    """A pre-norm decoder with a final norm.

    Matrices start as N(0, init_std^2), gains at 1 and biases at 0. A parameterization that is not
    the standard one multiplies the matrices of blocks. Weights depend on the seed alone, not on
    device or back end. Parameters and the residual stream are in fp32. With ``precision``
    bf16, matrix products and attention are computed in bf16 from weights that are cast at use,
    while router, norms, rotation and losses stay in fp32.
    """

    def __init__(
        self,
        model: Model,
        seed: int,
        backend: Backend = BACKENDS["torch"],
        precision: str = "fp32",
        place: Callable[[nn.Module], None] = lambda module: None,
    ) -> None:
        """Calls ``place`` to move or shard each layer as soon as it is made, and the model last."""
        super().__init__()
        generator, std = torch.Generator().manual_seed(seed), model.init_std
        self.dtype = PRECISIONS[precision]
        self.embedding = random_weight(std, generator, model.vocab_size, model.d_model)
        self.layers = nn.ModuleList()
        for layer in range(model.n_layers):
            block: Block | SlicedBlock
            if model.is_sliced(layer):
                block = SlicedBlock(model, generator)
            else:
                block = Block(model, layer, backend, generator)
            start_by_rule(block, model, f"layers.{layer}.")
            place(block)
            self.layers.append(block)
        self.final_norm = RMSNorm(model.d_model)
        self.final_norm.scale = multipliers(model).logits
        self.unembedding: nn.Parameter | None = None
        if not model.tied_embeddings:
            self.unembedding = random_weight(std, generator, model.vocab_size, model.d_model)
        self.config = model
        self.set_context(model.context)
        place(self)

    def set_context(self, context: int) -> None:
        """Takes sequences of up to ``context`` positions from now on; no weight depends on it."""
        widths = {"rotation": self.config.width_of_head}
        if self.config.slices:
            widths["slice_rotation"] = self.config.slice_head_width
        for name, width in widths.items():
            rotation = rotary(context, width, self.config.rope_theta).to(self.embedding.device)
            self.register_buffer(name, rotation, persistent=False)
        for layer in self.layers:
            if isinstance(layer, SlicedBlock):
                layer.view.context = context
            elif isinstance(layer, Block) and layer.moe is not None:
                layer.moe.capacity = layer.moe.settings.capacity(context)

    def biases(self) -> dict[str, Tensor]:
        """Returns the routers' biases by name, one (E,) for each layer with experts, if any."""
        return {n: bias_E for n, bias_E in self.named_buffers() if n.endswith(".bias")}

    def trained(self) -> dict[str, Tensor]:
        """Returns all that training changes by name: the parameters, and the routers' biases."""
        return {**dict(self.named_parameters()), **self.biases()}

    @torch.no_grad()
    def move_biases(self, counts_LE: Tensor) -> None:
        """Adds rate * sign(mean load - load) to the routers' biases, if any.

        ``counts_LE`` are the ``assignments`` of a whole step. Loads are compared as whole numbers,
        so that its micro-batches and processes do not matter. Source: Wang et al., 2024, Alg 1.
        """
        if biases := list(self.biases().values()):
            assert isinstance(self.config.ffn, MoE)
            E = self.config.ffn.n_experts
            # The last column counts dropped assignments, and they move no bias.
            counts_LE = counts_LE[:, :E]
            signs_LE = (counts_LE.sum(1, keepdim=True) - E * counts_LE).sign()
            moves = (bias_rate(self.config) * signs_LE).unbind()
            torch._foreach_add_(biases, list(moves))

    def forward(
        self, tokens_BN: Tensor, groups: int = 1, noise: Noise = (), head: Head = F.linear
    ) -> tuple[Tensor, list[Routing]]:
        """Returns what ``head`` makes and the routings of layers with experts.

        ``head`` takes the last hidden states (T, D) and the unembedding (V, D) in the computing
        type. By default it returns logits (T, V). It is called here, because a model that is shared
        between devices has its whole unembedding only within this call.
        """
        x_BND = F.embedding(tokens_BN, self.embedding)
        routings = []
        for layer in self.layers:
            if isinstance(layer, SlicedBlock):
                x_BND = layer(x_BND, self.slice_rotation, self.dtype)
                continue
            x_BND, routing = layer(x_BND, self.rotation, self.dtype, groups, noise, tokens_BN)
            if routing is not None:
                routings.append(routing)
        head_VD = self.embedding if self.unembedding is None else self.unembedding
        h_TD = self.final_norm(x_BND, self.dtype).flatten(0, 1)
        return head(h_TD, cast(head_VD, self.dtype)), routings

    def losses(self, tokens: Tensor, groups: int = 1, noise: Noise = ()) -> Losses:
        """Returns the losses of ``tokens`` int64 (B, N + 1): each position predicts the next one.

        ``groups`` is the number of equal runs of sequences that are each balanced by themselves,
        and ``noise`` has a generator of jitter for each of them.
        """
        of_targets = partial(mean_loss, target_T=tokens[:, 1:].reshape(-1))
        cross_entropy, routings = self(tokens[:, :-1], groups, noise, of_targets)
        if not routings:
            zero = torch.zeros((), device=tokens.device)
            return Losses(cross_entropy, zero, zero, None)
        balance = torch.stack([r.balance for r in routings]).mean()
        z = torch.stack([r.z for r in routings]).mean()
        return Losses(cross_entropy, balance, z, assignments(routings))


@torch.no_grad()
def start_by_rule(block: nn.Module, model: Model, prefix: str) -> None:
    """Multiplies the initial weights of a block by the factors of the parameterization."""
    if model.base is not None:
        for name, weight in block.named_parameters():
            weight.mul_(factors(model, prefix + name).std)


def assignments(routings: list[Routing]) -> Tensor:
    """Returns the assignments by layer and expert, int64 (L, E); (L, E + 1) with a capacity.

    The last column then counts those that were dropped, which the others count, too.
    """
    counts_LE = torch.stack([r.counts_GE for r in routings]).sum(1)
    dropped = [r.dropped for r in routings if r.dropped is not None]
    return torch.cat((counts_LE, torch.stack(dropped)[:, None]), 1) if dropped else counts_LE
