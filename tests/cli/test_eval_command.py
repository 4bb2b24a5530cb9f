"""moelaws eval and moelaws laws: formulas, variants, derived variables, what is not shown."""

import json

import pytest

from command_line import printed
from moelaws import laws
from moelaws.spec.errors import UserError


def data(*arguments):
    return json.loads(printed(*arguments, "--json"))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["sparsity.loss", "N=1e9", "D=2e10", "S=0"], 2.5656813083550216),
        (["allocation.ratio", "C=1e21", "S=14/17"], 1.79468),
        (["leverage.joint", "E=384", "k=12", "E_s=1", "G=32/3", "C=1e22"], 6.98216),
        (["allocation.loss:literal", "N=5.5e8", "D=1e10", "S=62/65", "r=1"], 20.3407),
    ],
)
def test_one_prediction(arguments, expected):
    answer = data("eval", *arguments)
    assert answer["value"] == pytest.approx(expected, rel=1e-5)
    assert answer["law"] == arguments[0]
    assert answer["params"] == dict(laws.get(arguments[0]).published)


def test_several_results_are_objects_by_name():
    answer = data("eval", "leverage.hyperparameters", "C=1e20", "context=4096")
    assert answer["value"] == pytest.approx(
        {"lr": 1.01288e-3, "B": 1.34697e6, "B_sequences": 328.851}, rel=1e-5
    )
    assert answer["unit"] == {"lr": "1", "B": "tokens", "B_sequences": "sequences"}
    assert "B_sequences" not in data("eval", "leverage.hyperparameters", "C=1e20")["value"]


def test_derived_variables_are_named():
    answer = data("eval", "sparsity.loss", "N=1e9", "C=1e20", "E=16", "k=2")
    assert answer["derived"]["D"] == {
        "value": pytest.approx(1e20 / (6 * 1e9 / 8)),
        "by": "D = C / (6 N_active)",
    }
    shown = printed("eval", "sparsity.loss", "N=1e9", "C=1e20", "E=16", "k=2").splitlines()
    assert shown[0] == "L = 2.43822 nats/token"
    assert "with S = 0.875: S = (E - k) / E" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sparsity.loss", "N=1e9", "D=1/0", "S=0"], r"'D=1/0' is not VAR=VALUE with a finite"),
        (["sparsity.loss", "N=1e9", "D=1e9", "E=4", "k=5"], r"S is -0.25 \(S = \(E - k\) / E\);"),
        (["sparsity.loss", "N=1e9", "S=0"], "variable D is missing; .* derived from C and"),
        (["sectional.cost", "--params", __file__], "a formula: it takes no --params"),
    ],
)
def test_mistakes(arguments, message):
    with pytest.raises(UserError, match=message):
        printed("eval", *arguments)


def test_every_law_is_listed_with_its_kind():
    listed = {law["id"]: law for law in data("laws")}
    assert set(listed) == set(laws.ids())
    assert listed["sparsity.loss"]["kind"] == "sum of power laws"
    lines = printed("laws").splitlines()
    assert len(lines) == 1 + len(laws.ids())


@pytest.mark.parametrize("law_id", laws.ids())
def test_what_is_shown_of_a_law(law_id):
    law, shown = laws.get(law_id), printed("laws", law_id)
    for text in (law.equation, law.source, *law.errata, *(v.description for v in law.variables)):
        assert text in shown
    record = data("laws", law_id)
    forms = laws.variants(law_id)
    assert [form["variant"] for form in record["variants"]] == list(forms)
    assert all(form.equation in shown for form in forms.values())
    assert record["published"] == (None if law.published is None else dict(law.published))
    assert record["latex"] == law.latex
