"""The coordinate check: whether first steps change models of all sizes alike.

Under the right rules the entries of what a model computes change by the same amount in the first
steps, whatever its width or depth. By other rules they change more the larger it is, so that no
rate suits all sizes (Yang et al., 2022). The control shows that the check can tell.

Of a model's and a router's logits counts the part that the update of their own matrix makes,
(W_t - W_0) h_t. The rest, W_0 (h_t - h_0), comes of random starts and falls as width^-1/2, which
would hide it at these sizes. Tokens are drawn by Zipf's law.

Shapes: T tokens, D model width, E experts, F expert width.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor

from moelaws.model.mlp import swiglu
from moelaws.model.transformer import Block, Transformer
from moelaws.records.progress import Report
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.from_toml import table_beside
from moelaws.spec.model import Model
from moelaws.spec.run import AdamW, Muon
from moelaws.training.optimizer import Optimizer

_TABLE = table_beside(__file__)
BASE = _TABLE["base"]  # name -> size
HEAD = BASE["d_model"] // BASE["n_heads"]  # the width of a head, in all models
SIZES: dict[str, list[int]] = _TABLE["sizes"]  # by ladder
STEPS = (1, 3, 10)
RATE = 2e-3
SEQUENCES = 4


class Arm(NamedTuple):
    """Models of several sizes under one rule."""

    ladder: str  # width or depth
    parameterization: str
    optimizer: str

    def model(self, size: int) -> Model:
        """Returns the model with ``size`` columns or layers."""
        d = size if self.ladder == "width" else BASE["d_model"]
        if d % HEAD:
            raise UserError(f"a width is {d}; it must be a multiple of {HEAD}, the width of a head")
        data = {
            **_TABLE["model"],
            "n_layers": size if self.ladder == "depth" else BASE["n_layers"],
            "d_model": d,
            "n_heads": d // HEAD,
            "n_kv": d // HEAD,
            "init_std": _TABLE["deviation"][self.ladder],
            "ffn": _TABLE["experts"] | {"d_expert": 2 * d},
        }
        if self.parameterization == "standard":
            data["init_std"] *= (d / BASE["d_model"]) ** -0.5
        else:
            data |= {"parameterization": self.parameterization, "base": BASE}
        return parse(Model, data, "the coordinate check")


def arms(ladder: str, optimizer: str) -> tuple[Arm, Arm]:
    """Returns what is checked, and its control."""
    control = _TABLE["control"][ladder]
    return Arm(ladder, "completep", optimizer), Arm(ladder, control, optimizer)


def measure(
    sizes: Mapping[str, Sequence[int]], optimizer: str, seeds: int, report: Report
) -> pd.DataFrame:
    """Returns rows: an arm, a size, a seed, a step, a quantity and its RMS.

    ``sizes`` are those of the ladders. At step 0 the RMS is that of the quantity itself, later that
    of its change. Raises UserError for a width that is no whole number of heads.
    """
    jobs = [
        (arm, size, seed)
        for ladder, known in sizes.items()
        for arm in arms(ladder, optimizer)
        for size in known
        for seed in range(seeds)
    ]
    rows = []
    for number, (arm, size, seed) in enumerate(jobs, 1):
        about = f"{number}/{len(jobs)} models, now {arm.ladder} {size} ({arm.parameterization})"
        report("coordinates", number, len(jobs), about)
        for step, by_quantity in _rms_by_step(arm, size, seed).items():
            place = {**arm._asdict(), "size": size, "seed": seed, "step": step}
            rows += [{**place, "quantity": name, "rms": rms} for name, rms in by_quantity.items()]
    return pd.DataFrame(rows)


def _rms_by_step(arm: Arm, size: int, seed: int) -> dict[int, dict[str, float]]:
    """Returns step -> quantity -> RMS of what a training of one model changed by then."""
    model = arm.model(size)
    net = Transformer(model, seed)
    settings = {"lr": RATE, "weight_decay": 0, "clip": 0}
    rule = Muon(kind="muon", **settings) if arm.optimizer == "muon" else AdamW(**settings)
    optimizer = Optimizer(net.named_parameters(), rule, model=model)
    by_zipf, width = 1 / torch.arange(1.0, model.vocab_size + 1), model.context + 1
    generator = torch.Generator().manual_seed(seed)
    drawn = by_zipf.multinomial(2 * SEQUENCES * width, True, generator=generator)
    tokens, probe = drawn.view(2, SEQUENCES, width)
    start = {name: weight.detach().clone() for name, weight in net.named_parameters()}
    first = _seen(net, probe, start)
    names = [name for name in first if not name.startswith("moved")]
    rms = {0: {name: _rms(first[name]) for name in names}}
    for step in range(1, STEPS[-1] + 1):
        torch.autograd.backward(net.losses(tokens).cross_entropy)
        optimizer.step(RATE)
        if step in STEPS:
            now = _seen(net, probe, start)
            changes = {name: now.get(f"moved {name}", now[name] - first[name]) for name in names}
            rms[step] = {name: _rms(change) for name, change in changes.items()}
    return rms


def _rms(value: Tensor) -> float:
    return float(value.square().mean().sqrt())


@torch.no_grad()
def _seen(net: Transformer, tokens: Tensor, start: dict[str, Tensor]) -> dict[str, Tensor]:
    """Returns each quantity at the probe's tokens, in the last block and above it.

    Beside logits stands what the updates of their own matrix moved.
    """
    block = net.layers[-1]
    assert isinstance(block, Block)
    assert block.moe is not None
    attention, moe, seen = block.attention, block.moe, dict[str, Any]()

    def keep(name: str, module: Any, given: Any, made: Any) -> None:
        seen[name] = given[0], made

    hooks = [
        module.register_forward_hook(partial(keep, name))
        for name, module in (("attention", attention), ("moe", moe), ("norm", net.final_norm))
    ]
    logits, _ = net(tokens[:, :-1])
    for hook in hooks:
        hook.remove()
    x_BND, y_BND = seen["attention"]
    W = attention.width
    q, k, _ = F.linear(x_BND, attention.w_qkv).view(*x_BND.shape[:2], -1, W).chunk(3, -2)
    assert attention.q_norm is not None
    assert attention.k_norm is not None
    # Those of a token with itself, which no rotation changes
    scores = (attention.q_norm(q) * attention.k_norm(k)).sum(-1) * attention.scores * W**-0.5
    h_TD = seen["moe"][0].flatten(0, 1)
    place = f"layers.{net.config.n_layers - 1}.moe.router.weight"
    weight = moe.router.get_parameter("weight")
    stream, last = seen["norm"]
    return {
        "stream": stream,
        "scores": scores,
        "attention": y_BND,
        "router logits": F.linear(h_TD, weight),
        "moved router logits": F.linear(h_TD, weight - start[place]),
        "hidden units": swiglu(h_TD @ moe.routed_experts.get_parameter("w_gate_up")),
        "experts": seen["moe"][1][0],
        "logits": logits,
        "moved logits": F.linear(last, net.embedding - start["embedding"]),
    }
