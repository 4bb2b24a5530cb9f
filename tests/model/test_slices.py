"""Blocks that are split over the embedding, against a loop over experts, in both readings."""

import math

import pytest
import torch
import torch.nn.functional as F
from pydantic import ValidationError

from architectures import CONTEXT, SLICED, sliced
from moelaws.model.attention import rotary
from moelaws.model.slices import SlicedBlock


def built(model):
    """A block of the model in which nothing is at its start value, and the experts' rotation."""
    block = SlicedBlock(model, torch.Generator().manual_seed(0))
    with torch.no_grad():
        for parameter in block.parameters():
            parameter.normal_(std=0.5)
    return block, rotary(model.context, model.slice_head_width, model.rope_theta)


def norm(x, gain):
    return x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * gain.double().flatten()


def turned(x_NW, theta):
    """Each pair of a head at position n turned by n theta^(-2j/W)."""
    N, W = x_NW.shape
    angle = torch.arange(N)[:, None] * theta ** (-torch.arange(0, W, 2, dtype=torch.float64) / W)
    a, b = x_NW[:, 0::2], x_NW[:, 1::2]
    pairs = (a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos())
    return torch.stack(pairs, dim=-1).flatten(1)


def expert(block, model, e, x_PS):
    """What expert e adds to its slice of the positions that it sees, one sequence, float64."""
    W, H = model.slice_head_width, model.slices.n_heads
    attention, ffn = block.slice_attention, block.slice_ffn
    start, P = x_PS, len(x_PS)
    h = norm(x_PS, block.attention_norm.gain[e]) @ attention.w_qkv[e].double()
    heads = []
    for i in range(H):
        q, k, v = (h[:, (j * H + i) * W :][:, :W] for j in range(3))
        if attention.q_norm is not None:
            q, k = norm(q, attention.q_norm.gain[e]), norm(k, attention.k_norm.gain[e])
        scores = turned(q, model.rope_theta) @ turned(k, model.rope_theta).T / math.sqrt(W)
        scores = scores.masked_fill(torch.ones(P, P).triu(1).bool(), -math.inf)
        heads.append(scores.softmax(-1) @ v)
    x_PS = x_PS + torch.cat(heads, dim=-1) @ attention.w_out[e].double()
    h = norm(x_PS, block.ffn_norm.gain[e])
    w = {name: getattr(ffn, name)[e].double() for name in ffn.names}
    if model.ffn.mlp == "gelu":
        x_PS = x_PS + F.gelu(h @ w["w_in"] + w["b_in"]) @ w["w_out"] + w["b_out"]
    else:
        gate, up = (h @ w["w_gate_up"]).chunk(2, dim=-1)
        x_PS = x_PS + (F.silu(gate) * up) @ w["w_down"]
    return x_PS - start


def by_loop(block, model, x_ND):
    """The block on one sequence, expert by expert."""
    slices, N = model.slices, len(x_ND)
    E, S = slices.n_experts, model.d_model // slices.n_experts
    out = x_ND.clone()
    for e in range(E):
        seen = slice(0, N)
        if slices.positions == "chunks":
            seen = slice(e * model.context // E, (e + 1) * model.context // E)
        added = expert(block, model, e, x_ND[seen, e * S : (e + 1) * S])
        if block.w_join is None:
            out[seen, e * S : (e + 1) * S] += added
        else:
            out[seen] += added @ block.w_join[e].double()
    return out


@pytest.mark.parametrize("length", [CONTEXT, 17, 5])
@pytest.mark.parametrize("model", SLICED.values(), ids=SLICED)
def test_the_experts_side_by_side_are_those_one_by_one(model, length):
    """A sequence shorter than the context has fewer chunks, the last of them cut."""
    block, rotation = built(model)
    x_BND = torch.randn(2, length, model.d_model, generator=torch.Generator().manual_seed(1))
    got = block(x_BND, rotation, torch.float32)
    for y_ND, x_ND in zip(got.double(), x_BND.double(), strict=True):
        torch.testing.assert_close(y_ND, by_loop(block, model, x_ND), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_experts": 3}, "must be a whole even number"),
        ({"n_experts": 8, "n_heads": 2}, "must be a whole even number"),
        ({"every": 5}, "splits no block"),
        ({"positions": "chunks", "n_experts": 8, "model": {"context": 20}}, "must divide it"),
    ],
)
def test_slices_that_do_not_fit_are_refused(changes, words):
    with pytest.raises(ValidationError, match=words):
        sliced(**changes)
