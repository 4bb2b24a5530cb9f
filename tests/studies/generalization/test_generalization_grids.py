"""The generalization study's grids: the paper's architectures, exactly."""

import pytest

from moelaws.grids.sweep import expand_study
from moelaws.spec.project import Project, load_study
from repository import REPOSITORY

# Layers -> expert widths of Table 3, generalization; tests/accounting has their parameters.
TABLE_3 = {
    2: [256, 384, 512, 768, 1024], 4: [256, 384, 512, 768, 1024, 1536], 6: [768, 1024], 8: [1024],
}  # fmt: skip


def sweep_of(tier, name):
    study = load_study("generalization", REPOSITORY)
    runs = expand_study(study, Project(tier=tier), REPOSITORY).runs
    return [run.config for run in runs if name in run.sweeps]


def active(config):
    """Active parameters by Tables 3 and 4, from the built model's shapes."""
    model, ffn = config.model, config.model.ffn
    d, w = model.d_model, ffn.d_expert
    return model.n_layers * (4 * d * d + ffn.top_k * (2 * d * w + w + d))


def test_the_model_sweep_is_table_3():
    configs = sweep_of("paper", "model")
    rows = [(c.model.n_layers, c.model.ffn.d_expert) for c in configs]
    assert rows == [(layers, width) for layers, widths in TABLE_3.items() for width in widths]
    for config in configs:
        model, ffn = config.model, config.model.ffn
        assert (model.d_model, model.n_heads, ffn.n_experts, ffn.top_k) == (512, 4, 8, 2)
        assert ffn.mlp == "gelu"
    assert len({config.tokens for config in configs}) == 1


def test_the_data_sweep_is_table_4():
    """Five times the base architecture, at five budgets of tokens."""
    configs = sweep_of("paper", "data")
    assert [active(config) for config in configs] == [8_396_800] * 5
    assert len({config.tokens for config in configs}) == 5
    assert len({config.model for config in configs}) == 1


@pytest.mark.parametrize("tier", ["demo", "gpu", "node", "paper"])
def test_routing_is_compared_at_fixed_compute(tier):
    configs = sweep_of(tier, "routing")
    widths = {c.model.ffn.top_k * c.model.ffn.d_expert for c in configs}
    assert len(widths) == 1
    # What remains is the biases at the experts' outputs: d a layer for each active expert.
    sizes = {c.model.ffn.top_k: active(c) for c in configs}
    model = configs[0].model
    least, *_, largest = sorted(sizes.items())
    assert largest[1] - least[1] == model.n_layers * model.d_model * (largest[0] - least[0])
    assert len({c.tokens for c in configs}) == 2
