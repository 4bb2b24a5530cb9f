"""Attention against an explicit float64 computation; rotary positions; query groups."""

import math

import pytest
import torch

from moelaws.model.attention import Attention, RMSNorm, rotary, rotate
from moelaws.spec.model import DenseFFN, Model


def build(n_heads=4, n_kv=4, d_model=32, qk_norm=False, head_width=None):
    model = Model(
        n_layers=1, d_model=d_model, n_heads=n_heads, n_kv=n_kv, context=16, vocab_size=8,
        ffn=DenseFFN(kind="dense", d_ffn=8), qk_norm=qk_norm, init_std=0.2,
        head_width=head_width,
    )  # fmt: skip
    generator = torch.Generator().manual_seed(0)
    return Attention(model, generator), rotary(16, model.width_of_head, 10_000.0)


def explicit(attention, x_ND, qk_norm):
    """One sequence, head by head, position by position, in float64."""
    H, G, W = attention.n_heads, attention.n_kv, attention.width
    qkv = x_ND.double() @ attention.w_qkv.double().t()
    q, k, v = qkv.split((H * W, G * W, G * W), dim=1)

    def turned(vector, position, norm):
        if qk_norm:
            vector = vector / (vector.square().mean() + 1e-6).sqrt() * norm.gain.double()
        out = torch.empty_like(vector)
        for j in range(W // 2):
            angle = position * 10_000.0 ** (-2 * j / W)
            a, b = vector[2 * j], vector[2 * j + 1]
            out[2 * j] = a * math.cos(angle) - b * math.sin(angle)
            out[2 * j + 1] = a * math.sin(angle) + b * math.cos(angle)
        return out

    rows = []
    for n in range(len(x_ND)):
        heads = []
        for h in range(H):
            g = h // (H // G)  # neighbouring query heads share a key-value head
            query = turned(q[n, h * W : (h + 1) * W], n, attention.q_norm)
            keys = [turned(k[m, g * W : (g + 1) * W], m, attention.k_norm) for m in range(n + 1)]
            keys = torch.stack(keys)
            weights = (keys @ query / math.sqrt(W)).softmax(0)
            heads.append(weights @ v[: n + 1, g * W : (g + 1) * W])
        rows.append(torch.cat(heads))
    return torch.stack(rows) @ attention.w_out.double().t()


@pytest.mark.parametrize(
    ("n_heads", "n_kv", "qk_norm", "head_width"),
    [
        (4, 4, False, None),
        (4, 2, False, None),
        (4, 1, True, None),
        (1, 1, True, None),
        (6, 3, True, 10),
    ],
)
def test_agrees_with_the_explicit_computation(n_heads, n_kv, qk_norm, head_width):
    attention, rotation = build(n_heads, n_kv, qk_norm=qk_norm, head_width=head_width)
    for norm in (attention.q_norm, attention.k_norm):
        if norm is not None:
            torch.nn.init.normal_(norm.gain)
    x_BND = torch.randn(2, 9, 32)
    with torch.no_grad():
        y_BND = attention(x_BND, rotation)
        for x_ND, y_ND in zip(x_BND, y_BND, strict=True):
            expected = explicit(attention, x_ND, qk_norm)
            torch.testing.assert_close(y_ND.double(), expected, rtol=1e-4, atol=1e-5)


def test_rotary_scores_depend_on_the_distance_alone():
    W = 16
    rotation = rotary(64, W, 10_000.0)
    q, k = torch.randn(W), torch.randn(W)
    everywhere = [rotate(v.expand(1, 64, 1, W), rotation)[0, :, 0] for v in (q, k)]
    scores_NN = everywhere[0] @ everywhere[1].t()
    for distance in (0, 1, 7, 40):
        diagonal = scores_NN.diagonal(-distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), rtol=0, atol=1e-4)
    torch.testing.assert_close(scores_NN[0, 0], q @ k)


def test_norms_of_bf16_are_computed_in_fp32():
    norm = RMSNorm(64)
    x = torch.randn(5, 64).bfloat16()
    assert torch.equal(norm(x), norm(x.float()))
    exact = x.double() / (x.double().square().mean(-1, keepdim=True) + 1e-6).sqrt()
    torch.testing.assert_close(norm(x).double(), exact, rtol=1e-6, atol=1e-6)
