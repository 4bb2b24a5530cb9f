"""A rule is tried on tables that have the claim's effect, and on tables that do not."""

import pytest

from moelaws import laws
from moelaws.claims.base import Verdict
from moelaws.claims.power import tried
from moelaws.spec.base import parse
from moelaws.spec.study import Study
from moelaws.tables.simulate import design, simulate
from planned_study import STUDY, small

CODE = """
import numpy as np
from moelaws.analysis.effect import Effect
from moelaws.claims.base import Evidence
from moelaws.fitting.quantiles import least_squares

def on_size(inputs, budgets):
    table = inputs.completed
    frame = np.log(table[["N_active", "L"]])
    if budgets:  # sizes are compared within a budget, where all see the same tokens
        frame = frame - frame.groupby(table["C"]).transform("mean")
    frame = frame - frame.mean()
    fitted = least_squares(frame[["N_active"]].to_numpy(), frame["L"].to_numpy(), draws=400)
    low, high = np.quantile(fitted[1:, 0], [0.05, 0.95])
    return Evidence("a slope", Effect(float(fitted[0, 0]), float(low), float(high)))
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A study of a loss that falls with size, by a rule that knows tokens and one that does not."""
    root = tmp_path_factory.mktemp("power")
    (root / "tried_rules").mkdir()
    (root / "tried_rules/claims.py").write_text(CODE)
    claims = [
        {
            "name": name,
            "statement": "The loss falls with size at equal tokens.",
            "source": "toy",
            "code": "claims:on_size",
            "with": {"budgets": budgets},
            "rule": "The slope of ln L over ln N.",
            "expect": {"below": 0},
            "null_model": "tokens_alone",
            "figure": "F1",
        }
        for name, budgets in (("sound", True), ("fooled", False))
    ]
    null = {"name": "tokens_alone", "says": "Tokens alone set the loss.", "law": "chinchilla"}
    more = {
        "package": "tried_rules",
        "figures": [{"name": "F1", "code": "figures:draw", "caption": "A picture."}],
        "claims": claims,
        "nulls": [null | {"mapping": {"N": "D", "D": "D"}}],
        "fits": [],
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(root)
        yield parse(Study, {**STUDY, **more}, "small.yaml")


@pytest.fixture(scope="module")
def table():
    """Runs with two seeds each, so that their own spread is the noise; more tokens by budget.

    The smallest budget lacks the widest models and the largest one the narrowest.
    """
    frame = design(small()[1], repeats=2)
    frame = frame.assign(D=(frame["C"] / 1e9).astype(int))
    wide = {1e16: (0, 256), 1e17: (0, 512), 1e18: (128, 512)}
    ends = frame["C"].map(wide)
    frame = frame[[low <= d <= high for (low, high), d in zip(ends, frame["d_model"], strict=True)]]
    law = laws.fittable("chinchilla")
    made = simulate(frame, law, law.published, mapping={"N": "N_active"}, noise=0.004)
    return made.frame


def test_a_rule_is_tried_with_the_effect_and_without(study, table):
    counts = tried(study, "demo", table, 8, {})
    assert counts["noise"] == pytest.approx(0.004, rel=0.5)
    assert counts["noise_of"] == "the spread between seeds of such runs"
    for own in counts["claims"].values():
        for law in ("fitted", "published"):
            assert own[law] == {**dict.fromkeys(map(str, Verdict), 0), "supported": 8}
        assert sum(own["null"].values()) == 8
    # The runs are Chinchilla's, so that both laws give their losses.
    measured = table["L"].min(), table["L"].max()
    for law in ("fitted", "published"):
        assert counts["losses"][law] == pytest.approx(measured, rel=0.01)
    assert counts["refused"] == []
    # Larger models are those of larger budgets: a rule that compares across budgets is fooled.
    assert counts["claims"]["sound"]["null"]["supported"] <= 2
    assert counts["claims"]["fooled"]["null"]["supported"] == 8


def test_a_null_may_say_what_the_effect_is_by_rows(study, table):
    """Wide models that lose a tenth have no lower loss, and wide ones that gain a tenth have."""
    (null,) = study.nulls
    wide = "d_model > 200"
    told = null.model_copy(update={"factors": {wide: 1.1}, "effect": {wide: 0.9}})
    sound = tried(study.model_copy(update={"nulls": (told,)}), "demo", table, 4, {})["claims"][
        "sound"
    ]
    assert sound["null"]["not supported"] == 4
    assert sound["effect"]["supported"] == 4
    assert sound["published"]["supported"] == 4


def test_losses_that_such_runs_could_not_have_try_no_rule(study, table):
    (null,) = study.nulls
    far = null.model_copy(update={"factors": {"d_model > 200": 3.0}})
    counts = tried(study.model_copy(update={"nulls": (far,)}), "demo", table, 1, {})
    assert all("null" not in own for own in counts["claims"].values())
    (why,) = counts["refused"]
    low, high = table["L"].min(), table["L"].max()
    assert why.startswith("by chinchilla these runs would have losses of ")
    assert why.endswith(f"nats/token, and they have {low:.3g} to {high:.3g}")


def test_a_null_may_be_fitted_to_each_budget_alone(study, table):
    """A line in ln N at each budget fits the losses; with one slope for all budgets it cannot."""
    (null,) = study.nulls
    line = {"law": "clark.dense", "mapping": {"N": "N_active"}, "split_by": "C"}
    alone = study.model_copy(update={"nulls": (null.model_copy(update=line),)})
    counts = tried(alone, "demo", table, 2, {})["claims"]
    assert counts["sound"]["null"]["supported"] == 2


def test_without_a_second_seed_the_noise_is_assumed(study, table):
    alone = table.assign(n_seeds=1, L_seed_sd=float("nan"))
    counts = tried(study, "demo", alone, 1, {})
    assert counts["noise"] == study.simulation.noise
    assert "none has a second seed" in counts["noise_of"]
