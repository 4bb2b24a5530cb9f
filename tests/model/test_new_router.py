"""A router is a class of settings and a module: nothing else in the package needs a line for it."""

import subprocess
import sys

from repository import REPOSITORY

# What spec/experts.py and model/router.py would get, loaded before the rest of the package.
ADDED = """
import torch
from torch import nn
from torch.nn import functional as F
from moelaws.spec.base import Positive
from moelaws.spec.experts import MoE

class Tempered(MoE):  # the common base of two routers
    temperature: Positive = 1.0

class CosineRouted(Tempered):
    router = "cosine"

    def router_parameters(self, d_model):
        return super().router_parameters(d_model) + 1  # the scale

class HashRouted(Tempered):
    router = "hash"

    def router_parameters(self, d_model):
        return 0

from moelaws.model.router import ROUTERS, Router, Routing, count

class CosineRouter(Router):
    def __init__(self, *settings):
        super().__init__(*settings)
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x, groups=1, noise=(), tokens_BN=None):
        x = F.normalize(x.float(), dim=-1) * self.scale / self.moe.temperature
        return super().forward(x, groups, noise)

class HashRouter(nn.Module):  # by the token's id, otherwise in each layer
    def __init__(self, moe, d_model, init_std, generator, layer):
        super().__init__()
        self.moe, self.layer = moe, layer

    def forward(self, x, groups, noise, tokens_BN):
        E, K = self.moe.n_experts, self.moe.top_k
        first_T1 = tokens_BN.reshape(-1, 1) + self.layer
        experts_TK = (first_T1 + torch.arange(K)) % E
        zero = torch.zeros(())
        gates_TK = torch.full(experts_TK.shape, 1 / K)
        return Routing(experts_TK, gates_TK, count(experts_TK, E, groups), zero, zero)

ROUTERS |= {"cosine": CosineRouter, "hash": HashRouter}
"""
USED = """
import sys
sys.path[:0] = [f"{tests}/grids", tests]
import pytest
from calls import Made
from grid_runs import runs_of
from moelaws.accounting.flops import train_flops_per_token
from moelaws.accounting.parameters import count_parameters
from moelaws.model.transformer import Transformer
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.run import RunConfig
from moelaws.tables.describe import describe
from moelaws.training.loop import Trainer

settings = {
    "context": 16, "vocab_size": 300, "n_layers": 3, "n_heads": 2, "d_model": 16, "n_experts": 4,
    "top_k": 2, "d_expert": 8, "batch": 2, "lr": 0.01, "steps": 3,
}
def grid(**axes):
    return runs_of({"settings": settings, "sweeps": [{"axes": axes}]})

def refused(message, **axes):
    with pytest.raises(UserError, match=message):
        grid(**axes)

plain, run, cold = *grid(), *grid(route_by="cosine", temperature=[1, "0.5"])
assert len({plain.run_id, run.run_id, cold.run_id}) == 3
assert cold.config.model.ffn == CosineRouted(
    kind="moe", n_experts=4, top_k=2, d_expert=8, route_by="cosine", temperature=0.5
)
assert parse(RunConfig, {**cold.config.model_dump(mode="json")}, "") == cold.config
assert '"route_by":"cosine","temperature":0.5' in cold.config.canonical_json()
assert "temperature" not in run.config.canonical_json()
assert describe(cold)["route_by"] == "cosine"

refused("temperature is -1; it must be greater than 0", route_by="cosine", temperature=-1)
refused("ffn: unknown key temperature", temperature=2)
refused("it must be token, chunk, position, cosine or hash", route_by="cosin")

model = Transformer(cold.config.model, 0)
built = sum(p.numel() for p in model.parameters())
assert count_parameters(cold.config.model).total == built
assert built == count_parameters(plain.config.model).total + 3
flops = [train_flops_per_token(r.config.model, "allocation") for r in (plain, cold)]
assert flops[0] == flops[1]

trainer = Trainer(cold.config, model, Made(cold.config))
assert trainer.run()
assert all(layer.moe.router.scale != 1 for layer in model.layers)

(hashed,) = grid(route_by="hash")
model = Transformer(hashed.config.model, 0)
tokens = torch.randint(300, (2, 16))
for layer, routing in enumerate(model(tokens)[1]):
    assert routing.experts_TK[:, 0].tolist() == ((tokens.flatten() + layer) % 4).tolist()
"""


def test_grids_identity_counts_tables_and_training_know_a_router_that_is_added():
    code = f"tests = {str(REPOSITORY / 'tests')!r}\n{ADDED}{USED}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
