"""Models of other sizes than their base, and a few steps of their training."""

import torch

from architectures import CONTEXT, routed, small
from moelaws.model.transformer import Transformer
from moelaws.spec.base import parse
from moelaws.spec.model import DenseFFN, Model
from moelaws.spec.run import AdamW, Muon
from moelaws.training.optimizer import Optimizer

SIZES = ("d_ffn", "n_experts", "top_k", "d_expert", "n_shared")


def base_of(model):
    """The base shape that the model itself has."""
    shape = {n: getattr(model, n) for n in ("d_model", "n_layers", "n_heads", "n_kv", "head_width")}
    return shape | {name: getattr(model.ffn, name, None) or None for name in SIZES}


def scaled(model, of="mup", base=None, ffn=(), **changes):
    """The model with other sizes, whose base is ``base`` or it."""
    data = model.model_dump(mode="json", exclude_none=True)
    data["ffn"] |= dict(ffn)
    data |= {"parameterization": of, "base": base_of(base or model)} | changes
    return parse(Model, data, "the test")


# Small models of each kind for which rules are known
BASE = {
    "mixture": routed({"n_layers": 2, "qk_norm": True, "tied_embeddings": True}, router_z=0),
    "shared and dense": routed(
        {"n_layers": 2, "n_heads": 4, "n_kv": 2, "head_width": 4},
        router_z=0, n_shared=1, n_dense_layers=1, d_ffn=20, gate="sigmoid", normalize_top_k=False,
    ),
    "GELU": routed({"n_layers": 2, "qk_norm": True}, router_z=0, mlp="gelu"),
    "dense GELU": small(DenseFFN(kind="dense", d_ffn=20, mlp="gelu"), n_layers=2),
}  # fmt: skip
ADAMW = AdamW(lr=0.01, weight_decay=0.1, eps=1e-2, clip=0)
MUON = Muon(kind="muon", lr=0.01, weight_decay=0.1, eps=1e-2, clip=0)


def trained(model, weights, settings, steps=4):
    """The losses of some steps from these weights, and the weights after them."""
    net = Transformer(model, 0)
    if weights:
        net.load_state_dict(weights, strict=False)
    optimizer = Optimizer(net.named_parameters(), settings, model=model)
    generator = torch.Generator().manual_seed(1)
    losses = []
    for _ in range(steps):
        tokens = torch.randint(model.vocab_size, (4, CONTEXT + 1), generator=generator)
        loss = net.losses(tokens)
        balance = getattr(model.ffn, "balance_loss", 0.0)
        (loss.cross_entropy + balance * loss.balance).backward()
        optimizer.step(settings.lr)
        losses.append(loss.cross_entropy.item())
    return losses, {name: weight.detach() for name, weight in net.named_parameters()}
