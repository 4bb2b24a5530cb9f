"""Rates and deviations of larger models: the copy test, spreads, steps at two sizes, refusals.

A model whose units are all copied computes what the original does if each copied input has half of
its weight. Under exact rules it does so after any number of steps.
"""

import re

import pytest
import torch

from architectures import ARCHITECTURES, CONTEXT, routed, small
from moelaws.exports.hf.weights import folded
from moelaws.model import parameterization, transformer
from moelaws.model.parameterization import Factors, bias_rate, factors, multipliers
from moelaws.model.transformer import Transformer
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.model import DenseFFN, Model
from moelaws.spec.run import AdamW, Muon
from moelaws.training import optimizer as optimization
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


# Model -> what is copied: columns of the stream, heads, hidden units, experts
BASE = {
    "mixture": routed({"n_layers": 2, "qk_norm": True, "tied_embeddings": True}, router_z=0),
    "shared and dense": routed(
        {"n_layers": 2, "n_heads": 4, "n_kv": 2, "head_width": 4},
        router_z=0, n_shared=1, n_dense_layers=1, d_ffn=20, gate="sigmoid", normalize_top_k=False,
    ),
    "GELU": routed({"n_layers": 2, "qk_norm": True}, router_z=0, mlp="gelu"),
    "dense GELU": small(DenseFFN(kind="dense", d_ffn=20, mlp="gelu"), n_layers=2),
}  # fmt: skip
COPIED = {
    "columns": ("d",),
    "heads": ("a",),
    "hidden units": ("dense_ffn", "moe.routed_experts", "moe.shared_experts"),
    "experts": ("E",),
}
EVERYTHING = tuple(size for sizes in COPIED.values() for size in sizes)


def copied(model, sizes):
    """The model with twice the units of these sizes; a head keeps its width."""
    ffn, changes = model.ffn, {"head_width": model.width_of_head}
    if "d" in sizes:
        changes["d_model"] = 2 * model.d_model
    if "a" in sizes:
        changes |= {"n_heads": 2 * model.n_heads, "n_kv": 2 * model.n_kv}
    own = {}
    if "dense_ffn" in sizes and ffn.d_ffn:
        own["d_ffn"] = 2 * ffn.d_ffn
    if ffn.kind == "moe" and "moe.routed_experts" in sizes:
        own["d_expert"] = 2 * ffn.d_expert
    if ffn.kind == "moe" and "E" in sizes:
        own |= {"n_experts": 2 * ffn.n_experts, "top_k": 2 * ffn.top_k}
    base = model.model_copy(update={"head_width": model.width_of_head})
    return scaled(model, base=base, ffn=own, **changes)


def copy_of(model, name, weight, sizes):
    """The weight of the model whose units are copied."""
    fan_in, fan_out = parameterization._FANS[re.sub(r"^layers\.\d+\.", "layers.", name)]
    stacked = "routed_experts" in name
    if not fan_in:
        axes = {-1: fan_out}
    else:
        axes = {-2: fan_in, -1: fan_out} if stacked else {-1: fan_in, -2: fan_out}
    # The fused matrices have several parts along their outputs, which are copied one by one.
    parts = 1
    if name.endswith("w_gate_up"):
        parts = 2
    for axis, size in axes.items():
        if size not in sizes:
            continue
        if name.endswith("w_qkv") and size == "a":
            each = [n * model.width_of_head for n in (model.n_heads, model.n_kv, model.n_kv)]
            pieces = weight.split(each, axis)
        else:
            pieces = weight.chunk(parts if size == fan_out else 1, axis)
        weight = torch.cat([piece for piece in pieces for _ in range(2)], axis)
        if size == fan_in:
            weight = weight / 2
    if stacked and "E" in sizes:
        weight = torch.cat((weight, weight))
    return weight


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


def start(model):
    return {name: weight.detach() for name, weight in Transformer(model, 0).named_parameters()}


ADAMW = AdamW(lr=0.01, weight_decay=0.1, eps=1e-2, clip=0)
MUON = Muon(kind="muon", lr=0.01, weight_decay=0.1, eps=1e-2, clip=0)


def farthest(model, sizes, settings):
    """How far the losses and the weights of the copied model are from the copies, at most."""
    larger, first = copied(model, sizes), start(model)
    losses, weights = trained(model, first, settings)
    copies = {name: copy_of(model, name, weight, sizes) for name, weight in first.items()}
    theirs, ends = trained(larger, copies, settings)
    apart = [abs(a - b) for a, b in zip(losses, theirs, strict=True)]
    moved = [
        (copy_of(model, name, weight, sizes) - ends[name]).abs().max().item()
        for name, weight in weights.items()
    ]
    return max(apart), max(moved)


@pytest.mark.parametrize(
    ("of", "settings"), [*((of, ADAMW) for of in (*COPIED, "all")), ("all", MUON)]
)
@pytest.mark.parametrize("name", BASE)
def test_a_model_whose_units_are_copied_trains_alike(name, of, settings):
    losses, weights = farthest(BASE[name], COPIED.get(of, EVERYTHING), settings)
    assert losses < 1e-4
    assert weights < 1e-4


def by_rule(name):
    """Pattern -> (a parameter of the copied model, its factors)."""
    larger = copied(BASE[name], EVERYTHING)
    found = {}
    for parameter, weight in Transformer(larger, 0).named_parameters():
        pattern = re.sub(r"\.\d+\.", ".*.", parameter)
        found.setdefault(pattern, factors(larger, parameter, weight.shape))
    return found


def once(fields):
    """(a field, a pattern) -> the first model in which that factor is not 1."""
    found = {}
    for name in BASE:
        for pattern, own in by_rule(name).items():
            for field in fields:
                if getattr(own, field) != 1:
                    found.setdefault((field, pattern), name)
    return found


LEFT_OUT = once(["rate", "eps"])


@pytest.mark.parametrize(("field", "pattern"), LEFT_OUT)
def test_without_any_one_factor_it_trains_otherwise(monkeypatch, field, pattern):
    def without(model, parameter, shape=()):
        own = factors(model, parameter, shape)
        is_it = re.sub(r"\.\d+\.", ".*.", parameter) == pattern
        return own._replace(**{field: 1.0}) if is_it else own

    monkeypatch.setattr(optimization, "factors", without)
    assert farthest(BASE[LEFT_OUT[field, pattern]], EVERYTHING, ADAMW)[1] > 2e-4


MATRICES = {pattern: name for (_, pattern), name in once(["muon"]).items() if ".w_" in pattern}


@pytest.mark.parametrize("pattern", MATRICES)
def test_without_a_matrixs_own_rate_muon_trains_otherwise(monkeypatch, pattern):
    def without(model, parameter, shape=()):
        own = factors(model, parameter, shape)
        is_it = re.sub(r"\.\d+\.", ".*.", parameter) == pattern
        return own._replace(muon=1.0) if is_it else own

    monkeypatch.setattr(optimization, "factors", without)
    assert farthest(BASE[MATRICES[pattern]], EVERYTHING, MUON)[1] > 2e-4


@pytest.mark.parametrize("field", ["logits", "routed"])
def test_without_a_multiplier_the_copy_is_another_function(monkeypatch, field):
    monkeypatch.setattr(
        transformer, "multipliers", lambda model: multipliers(model)._replace(**{field: 1.0})
    )
    assert farthest(BASE["shared and dense"], EVERYTHING, ADAMW)[0] > 1e-3


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
