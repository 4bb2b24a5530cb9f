"""Models for GPUs have widths that a GPU's matrix products read in whole blocks of 16 bytes."""

import pytest

from moelaws.grids.sweep import expand_study
from moelaws.spec.project import load_project, load_study


@pytest.mark.parametrize(
    ("study", "tier"),
    [
        ("allocation", "gpu"),
        ("allocation", "paper"),
        ("leverage", "gpu"),  # the paper's own tables have others
        ("sectional", "gpu"),
        ("sectional", "paper"),
        ("sparsity", "gpu"),
    ],
)
def test_every_width_is_a_multiple_of_8(study, tier):
    project = load_project(overrides={"tier": tier, "device": "cuda"})
    models = {run.config.model for run in expand_study(load_study(study), project).runs}
    assert len(models) > 30
    for model in models:
        widths = [model.d_model]
        widths += [getattr(model.ffn, name, 0) or 0 for name in ("d_ffn", "d_expert")]
        widths += [model.slices.d_expert] if model.slices else []
        assert not any(width % 8 for width in widths), model
