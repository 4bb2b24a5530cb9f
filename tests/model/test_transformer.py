"""The whole model: counts, an independent NumPy forward pass, initialisation, precision."""

import math

import numpy as np
import pytest
import torch
from scipy.special import erf

from architectures import ARCHITECTURES, DENSE, GELU, SLICED, routed, small
from moelaws.accounting.parameters import count_parameters
from moelaws.model.backends import BACKENDS
from moelaws.model.transformer import Block, Transformer

GROUPS = {"slice_attention": "slices", "slice_ffn": "slices", "w_join": "aggregation"}


def tokens(model, batch=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(model.vocab_size, (batch, model.context + 1), generator=generator)


@pytest.mark.parametrize("model", ARCHITECTURES.values(), ids=ARCHITECTURES)
def test_the_built_models_tensors_are_what_accounting_counts(model):
    expected = count_parameters(model).groups()
    counts = dict.fromkeys(expected, 0)
    for name, parameter in Transformer(model, 0).named_parameters():
        parts = [GROUPS.get(part, part) for part in name.split(".")]
        norm = any(part.endswith("norm") for part in parts)
        counts["norms" if norm else next(p for p in parts if p in counts)] += parameter.numel()
    assert counts == expected


@pytest.mark.parametrize("model", SLICED.values(), ids=SLICED)
def test_the_active_parameters_of_slices_are_those_that_a_position_reaches(model):
    """By the gradient of the second position: at the first one attention has no choice."""
    built = Transformer(model, 0)
    built(tokens(model)[:, :2])[0].view(3, 2, -1)[:, 1].square().sum().backward()
    active = 0
    for layer in built.layers:
        for parameter in layer.parameters():
            reached = [bool(part.any()) for part in parameter.grad]
            whole = isinstance(layer, Block)
            assert any(reached)
            active += parameter.numel() if whole else sum(reached) * parameter[0].numel()
    rest = sum(p.numel() for n, p in built.named_parameters() if not n.startswith("layers."))
    assert count_parameters(model).active == active + rest


def numpy_logits(model, spec, ids):
    """A dense transformer, written once more in float64 NumPy; one sequence."""
    p = {name: t.detach().double().numpy() for name, t in model.named_parameters()}
    H, G, W, N = spec.n_heads, spec.n_kv, spec.width_of_head, len(ids)

    def norm(x, gain):
        return x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + 1e-6) * gain

    def turn(x):  # (N, heads, W)
        angle = np.arange(N)[:, None] * spec.rope_theta ** (-np.arange(0, W, 2) / W)
        z = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * angle)[:, None]
        return np.stack((z.real, z.imag), axis=-1).reshape(x.shape)

    x = p["embedding"][ids]
    for i in range(spec.n_layers):
        at = f"layers.{i}."
        h = norm(x, p[at + "attention_norm.gain"]) @ p[at + "attention.w_qkv"].T
        q, k, v = np.split(h.reshape(N, -1, W), [H, H + G], axis=1)
        if spec.qk_norm:
            q, k = (norm(a, p[f"{at}attention.{n}_norm.gain"]) for a, n in ((q, "q"), (k, "k")))
        q, k = turn(q), turn(k)
        k, v = (np.repeat(a, H // G, axis=1) for a in (k, v))  # neighbours share a key-value head
        scores = np.einsum("nhw,mhw->hnm", q, k) / math.sqrt(W)
        scores[:, np.triu(np.ones((N, N), bool), 1)] = -np.inf
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        y = np.einsum("hnm,mhw->nhw", weights, v).reshape(N, H * W)
        x = x + y @ p[at + "attention.w_out"].T
        h = norm(x, p[at + "ffn_norm.gain"])
        at += "dense_ffn."
        if spec.ffn.mlp == "gelu":
            h = h @ p[at + "w_in"].T + p[at + "b_in"]
            x = x + h * (1 + erf(h / math.sqrt(2))) / 2 @ p[at + "w_out"].T + p[at + "b_out"]
        else:
            gate, up = np.split(h @ p[at + "w_gate_up"].T, 2, axis=-1)
            x = x + (gate / (1 + np.exp(-gate)) * up) @ p[at + "w_down"].T
    return norm(x, p["final_norm.gain"]) @ p.get("unembedding", p["embedding"]).T


@pytest.mark.parametrize(
    ("ffn", "changes"),
    [
        (DENSE, {}),
        (GELU, {"tied_embeddings": True}),
        (DENSE, {"n_kv": 4}),
        (DENSE, {"n_kv": 1, "qk_norm": True}),
        (DENSE, {"n_heads": 6, "n_kv": 3, "head_width": 10, "qk_norm": True}),
    ],
    ids=["grouped queries", "GELU, tied", "multi-head", "QK-norm", "heads of their own width"],
)
def test_a_dense_model_agrees_with_numpy(ffn, changes):
    model = small(ffn, **{"n_heads": 4, **changes})
    built = Transformer(model, 1)
    for name, p in built.named_parameters():  # those that start as ones and zeros
        if name.rpartition(".")[2].startswith(("b_", "gain")):
            torch.nn.init.normal_(p)
    ids = tokens(model, 1)[:, :-1]
    with torch.no_grad():
        logits, routings = built(ids)
    assert routings == []
    expected = numpy_logits(built, model, ids[0].numpy())
    np.testing.assert_allclose(logits.double().numpy(), expected, rtol=1e-4, atol=1e-4)


def test_initial_weights_follow_from_the_seed_alone():
    model = routed(n_shared=1)
    before = torch.get_rng_state()
    a = Transformer(model, 5, BACKENDS["torch"]).state_dict()
    torch.rand(7)
    b = Transformer(model, 5, BACKENDS["megablocks"], precision="bf16").state_dict()
    c = Transformer(model, 6).state_dict()
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert not torch.equal(a["embedding"], c["embedding"])
    torch.set_rng_state(before)


def test_initial_matrices_have_the_configured_spread():
    sizes = {"d_model": 64, "vocab_size": 300, "init_std": 0.006}
    built = Transformer(routed(sizes, n_shared=1, mlp="gelu"), 0)
    for name, p in built.named_parameters():
        if name.endswith("gain"):
            assert (p == 1).all(), name
        elif name.rpartition(".")[2].startswith("b_"):
            assert (p == 0).all(), name
        elif p.numel() > 1000:
            assert p.std().item() == pytest.approx(0.006, rel=0.05), name


def test_bf16_stays_close_to_fp32_and_keeps_fp32_weights():
    model = routed({"init_std": 0.1}, n_experts=4)
    exact, rough = (Transformer(model, 0, precision=p) for p in ("fp32", "bf16"))
    a, b = exact.losses(tokens(model)), rough.losses(tokens(model))
    assert b.cross_entropy.item() == pytest.approx(a.cross_entropy.item(), abs=0.02)
    sum(b[:3]).backward()
    assert all(p.dtype == p.grad.dtype == torch.float32 for p in rough.parameters())
    assert {t.dtype for t in b[:3]} == {torch.float32}
