"""Rates and deviations of models with a base: rules, refusals, spreads, and steps at two sizes."""

import re

import pytest
import torch

from architectures import ARCHITECTURES, CONTEXT, routed
from moelaws.cli import runs
from moelaws.exports.hf.weights import folded
from moelaws.model.parameterization import Factors, bias_rate, factors, multipliers
from moelaws.model.transformer import Transformer
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.model import Model
from moelaws.spec.run import AdamW
from moelaws.training.optimizer import Optimizer
from scaled import ADAMW, BASE, MUON, base_of, scaled, trained


@pytest.mark.parametrize("of", ["mup", "completep"])
@pytest.mark.parametrize("settings", [ADAMW, MUON], ids=["AdamW", "Muon"])
@pytest.mark.parametrize("name", BASE)
def test_at_the_base_shape_it_is_the_standard_one_to_the_last_bit(name, settings, of):
    model = BASE[name]
    losses, weights = trained(model, {}, settings, 3)
    theirs, others = trained(scaled(model, of), {}, settings, 3)
    assert theirs == losses
    assert all(torch.equal(weight, others[key]) for key, weight in weights.items())


# Model -> the sizes of its base. Each ratio is another number, so that none stands for another one.
LARGER = scaled(
    BASE["shared and dense"],
    "completep",
    n_layers=10,
    d_model=48,
    n_heads=20,
    n_kv=10,
    head_width=6,  # L x5, d x3, a x7.5, W x1.5
    ffn={"d_expert": 84, "n_experts": 66, "top_k": 22, "n_shared": 2, "d_ffn": 260},
)  # F x7, E x11, shared x14, dense x13
PRINTED = {
    "embedding": (1, 1, 1 / 3),
    "unembedding": (1, 1, 1 / 3),
    "final_norm.gain": (1, 1, 1 / 3),
    "layers.3.attention_norm.gain": (1, 1, 1 / 15),
    "layers.3.ffn_norm.gain": (1, 1, 1 / 15),
    "layers.3.attention.q_norm.gain": (1, 1, 1 / 7.5),
    "layers.3.attention.k_norm.gain": (1, 1, 1 / 7.5),
    "layers.3.attention.w_qkv": (3**-0.5, 1 / 3, 1 / 37.5),
    "layers.3.attention.w_out": (7.5**-0.5, 1 / 7.5, 1 / 15),
    "layers.3.moe.router.weight": (1 / 3, 1 / 3, 1 / 55),
    "layers.3.moe.routed_experts.w_gate_up": (3**-0.5, 1 / 3, 1 / 385),
    "layers.3.moe.routed_experts.w_down": (7**-0.5, 1 / 7, 1 / 165),
    "layers.3.moe.routed_experts.w_in": (3**-0.5, 1 / 3, 1 / 385),
    "layers.3.moe.routed_experts.b_in": (None, 1, 1 / 385),
    "layers.3.moe.routed_experts.w_out": (7**-0.5, 1 / 7, 1 / 165),
    "layers.3.moe.routed_experts.b_out": (None, 1, 1 / 165),
    "layers.3.moe.shared_experts.w_gate_up": (3**-0.5, 1 / 3, 1 / 70),
    "layers.3.moe.shared_experts.w_down": (14**-0.5, 1 / 14, 1 / 15),
    "layers.0.dense_ffn.w_gate_up": (3**-0.5, 1 / 3, 1 / 65),
    "layers.0.dense_ffn.w_down": (13**-0.5, 1 / 13, 1 / 15),
}


@pytest.mark.parametrize("name", PRINTED)
def test_factors_are_those_of_the_table(name):
    std, rate, eps = PRINTED[name]
    own = factors(LARGER, name)
    assert (own.rate, own.eps) == pytest.approx((rate, eps), rel=1e-12)
    if std is not None:  # biases start at 0
        assert own.std == pytest.approx(std, rel=1e-12)
    wide = factors(LARGER.model_copy(update={"parameterization": "mup"}), name)
    deep = 5 if name.startswith("layers.") else 1  # as deep as the base is no factor
    assert wide == pytest.approx(own._replace(eps=deep * own.eps), rel=1e-12)


def test_the_record_of_a_run_lists_the_factors_of_its_model():
    model = LARGER.model_dump(mode="json", exclude_none=True)
    table, outputs = runs._factors({"run_id": "abc", "config": {"model": model}})
    listed = {name: cells for name, *cells in map(str.split, table.splitlines())}
    for name, factor in PRINTED.items():
        if cells := listed.get(re.sub(r"\.\d+\.", ".*.", name)):
            expected = [f"{x:.4g}" for x in factor]
            assert cells[:3] == expected, name
    assert len(listed) == 1 + len(
        {re.sub(r"\.\d+\.", ".*.", n) for n, _ in Transformer(LARGER, 0).named_parameters()}
    )
    assert outputs == "outputs: logits 0.3333, residual 0.2, scores 0.8165, routed 0.09091"
    assert not [*runs._factors({"config": {"model": {}}})]


def test_multipliers_are_those_of_the_table():
    assert multipliers(LARGER) == pytest.approx((1 / 3, 1 / 5, 1.5**-0.5, 1 / 11), rel=1e-12)
    assert bias_rate(LARGER) == LARGER.ffn.bias_rate
    softmax = LARGER.ffn.model_copy(update={"gate": "softmax"})
    by_softmax = LARGER.model_copy(update={"ffn": softmax})
    assert bias_rate(by_softmax) == pytest.approx(0.001 / 11, rel=1e-12)
    assert multipliers(by_softmax).routed == 1


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_each_parameter_of_each_architecture_has_a_rule_or_is_refused(name):
    model = ARCHITECTURES[name]
    chunks = getattr(model.ffn, "route_by", "") == "chunk"
    if model.slices or chunks:
        with pytest.raises(UserError, match="slices" if model.slices else "route_by = chunk"):
            scaled(model)
        return
    same = scaled(model, "completep")
    for parameter, weight in Transformer(same, 0).named_parameters():
        assert factors(same, parameter, weight.shape) == Factors()


def test_a_parameter_without_a_rule_is_refused():
    with pytest.raises(UserError, match=r"mup is known for layers\.0\.moe\.router\.w_start"):
        factors(scaled(BASE["mixture"]), "layers.0.moe.router.w_start")


@pytest.mark.parametrize(("changes", "words"), [
    ({"parameterization": "standard"}, "standard with base"),
    ({"base": None}, "mup without base"),
    ({"base": {"n_shared": 2}}, r"base\.n_shared = 2, and the model's n_shared = None"),
    ({"base": {"d_expert": None}}, r"base\.d_expert = None, and the model's d_expert = 12"),
    ({"base": {"head_width": 8}}, r"base\.head_width = 8, and the model's head_width = None"),
    ({"base": {"top_k": 3}}, "top_k / n_experts = 2 / 6, and the base's is 3 / 6"),
    ({"base": {"n_kv": 1}}, "n_kv / n_heads = 2 / 2, and the base's is 1 / 2"),
    ({"base": {"d_model": 7}}, "d_model = 7 with n_heads = 2: the head width must be"),
])  # fmt: skip
def test_what_has_no_rule_is_refused_in_one_line(changes, words):
    data = scaled(BASE["mixture"]).model_dump(mode="json")
    base = changes.get("base", {})
    own = None if base is None else data["base"] | base
    with pytest.raises(UserError, match=words) as error:
        parse(Model, data | changes | {"base": own}, "config.yaml")
    assert "\n" not in str(error.value)


# A mixture that may grow: no size of it fixes another
WIDE = routed(
    {"n_layers": 2, "head_width": 8, "tied_embeddings": True, "init_std": 0.1}, router_z=0
)


def wider(times, of="mup"):
    """The model with every width ``times`` as large, and with heads of the same width."""
    sizes = {"d_model": 16 * times, "n_heads": 2 * times, "n_kv": 2 * times}
    model = scaled(WIDE, ffn={"d_expert": 12 * times}, **sizes)
    if of == "mup":
        return model
    # The control's weights start as the inputs ask for, and all have one rate.
    control = {"parameterization": "standard", "base": None, "init_std": 0.1 * times**-0.5}
    return model.model_copy(update=control)


def deeper(times, of):
    return scaled(WIDE, of, n_layers=2 * times)


def test_initial_weights_have_the_deviation_of_their_rule():
    net = Transformer(wider(8), 0)
    of = {"w_qkv": 8**-0.5, "w_out": 8**-0.5, "router.weight": 1 / 8, "w_gate_up": 8**-0.5}
    for suffix, factor in {**of, "w_down": 8**-0.5, "embedding": 1.0}.items():
        weight = next(w for name, w in net.named_parameters() if name.endswith(suffix))
        assert weight.std().item() == pytest.approx(0.1 * factor, rel=0.05)


@pytest.mark.parametrize("settings", [ADAMW, MUON], ids=["AdamW", "Muon"])
def test_a_step_shrinks_all_matrices_alike(settings):
    model = wider(4)
    named = dict(Transformer(model, 0).named_parameters())
    before = {name: weight.detach().clone() for name, weight in named.items()}
    optimizer = Optimizer(named.items(), settings, model=model)
    for weight in named.values():
        weight.grad = torch.zeros_like(weight)
    optimizer.step(0.01)
    for name, weight in named.items():
        kept = 1.0 if name.endswith("gain") else 1 - 0.01 * 0.1
        torch.testing.assert_close(weight.detach(), kept * before[name])


def changes(model, seed, lr=2e-3):
    """RMS of what one step of AdamW changes: output of the experts, logits, and last stream."""
    net, seen = Transformer(model, seed), {}
    optimizer = Optimizer(net.named_parameters(), AdamW(lr=lr, clip=0), model=model)
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(model.vocab_size, (4, CONTEXT + 1), generator=generator)
    net.layers[-1].moe.register_forward_hook(
        lambda module, given, made: seen.setdefault("experts", []).append(made[0].detach())
    )
    net.final_norm.register_forward_hook(
        lambda module, given, made: seen.setdefault("stream", []).append(given[0].detach())
    )

    def look():
        with torch.no_grad():
            seen.setdefault("logits", []).append(net(tokens[:, :-1])[0])

    look()
    net.losses(tokens).cross_entropy.backward()
    optimizer.step(lr)
    look()
    return {name: (made[-1] - made[0]).square().mean().sqrt() for name, made in seen.items()}


def growth(small_one, large_one, of, seeds=5):
    """How much larger the change of a quantity is in the larger model, mean over seeds."""
    pairs = [(changes(large_one, s)[of], changes(small_one, s)[of]) for s in range(seeds)]
    return torch.stack([large / small for large, small in pairs]).mean().item()


@pytest.mark.parametrize("of", ["experts", "logits"])
def test_a_step_changes_a_wider_model_alike(of):
    assert growth(wider(8), wider(16), of) == pytest.approx(1, abs=0.15)
    if of == "logits":
        assert growth(wider(8, "standard"), wider(16, "standard"), of) > 1.5


def test_a_step_changes_a_deeper_model_alike():
    shallow, deep = (deeper(times, "completep") for times in (2, 4))
    assert growth(shallow, deep, "stream") == pytest.approx(1, abs=0.15)
    assert growth(deeper(2, "mup"), deeper(4, "mup"), "stream") > 1.3


@pytest.mark.parametrize("shape", [(3, 1, 2), (1, 4, 1), (2, 2, 6)], ids=str)
def test_an_update_by_muon_changes_outputs_alike_at_all_sizes(shape):
    """The spectral norm of a step grows as the root of outputs over inputs, and no otherwise."""
    width, heads, experts = shape
    sizes = {"d_model": 16 * width, "n_heads": 2 * heads, "n_kv": 2 * heads}
    larger = scaled(WIDE, ffn={"d_expert": 12 * experts}, **sizes)

    def norms(model):
        net = Transformer(model, 0)
        before = {name: w.detach().clone() for name, w in net.named_parameters()}
        optimizer = Optimizer(net.named_parameters(), MUON, model=model)
        optimizer.decay = 0.0
        for weight in net.parameters():
            weight.grad = torch.randn(weight.shape, generator=torch.Generator().manual_seed(1))
        optimizer.step(1.0)
        for name, weight in net.named_parameters():
            if name.startswith("layers.0.") and ".w_" in name:
                moved = torch.linalg.matrix_norm(weight.detach() - before[name], 2).flatten()[0]
                inputs, outputs = moved.new_tensor(weight.shape[-2:]).tolist()
                if "routed" not in name:
                    inputs, outputs = outputs, inputs
                yield moved.item() / (outputs / inputs) ** 0.5

    # Newton-Schulz leaves singular values between 0.7 and 1.2.
    for mine, theirs in zip(norms(larger), norms(WIDE), strict=True):
        assert mine == pytest.approx(theirs, rel=0.25)


@pytest.mark.parametrize("qk_norm", [False, True])
def test_weights_with_folded_factors_are_the_same_function(qk_norm):
    base = base_of(LARGER) | {"n_layers": 2, "d_model": 16, "head_width": 4}
    data = LARGER.model_dump(mode="json") | {"n_layers": 3, "qk_norm": qk_norm, "base": base}
    net = Transformer(parse(Model, data, "the test"), 0)
    plain = {"parameterization": "standard", "base": None}
    other = Transformer(net.config.model_copy(update=plain), 0)
    weights = folded(net.config, {n: w.detach() for n, w in net.named_parameters()})
    other.load_state_dict(weights, strict=False)
    tokens = torch.randint(30, (2, CONTEXT), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(other(tokens)[0], net(tokens)[0], rtol=1e-4, atol=1e-5)
