"""The general rules of claims: what each measures, and what it refuses in one line."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws.analysis.effect import Effect
from moelaws.claims.base import Verdict, verdict
from moelaws.claims.measure import measured
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.project import load_study
from moelaws.spec.readers import Claim
from moelaws.spec.study import Study
from moelaws.workflow.check import check_study
from repository import REPOSITORY

number = st.floats(-100, 100)
effects = st.tuples(number, st.floats(0, 10), st.floats(0, 10)).map(
    lambda x: (x[0], x[0] - x[1], x[0] + x[2])
)
KEYS = {"statement": "s", "source": "s", "rule": "r", "expect": {"above": 0}, "figure": "F1"}
SLOPES = {"rule": "rows", "table": "slopes", "effect": "slope", "of": "at"}


def rule(**measure):
    return parse(Claim, {"name": "c", **KEYS, "measure": measure}, "study.yaml").measure


def rows(*slopes, names=None, note=""):
    """The inputs of a derived table with a row for each slope."""
    frame = pd.DataFrame(slopes, columns=["slope", "low", "high"]).astype(float)
    frame = frame.assign(at=names or [f"C={i}" for i in range(len(frame))], note=note, unit="nats")
    return SimpleNamespace(derived={"slopes": frame}.get)


@given(st.lists(effects, min_size=1, max_size=5))
def test_each_row_decides_and_the_verdict_is_that_of_its_intervals(slopes):
    evidence = measured(rows(*slopes), rule(**SLOPES))
    assert evidence.intervals == [(low, high) for _, low, high in slopes]
    assert evidence.effect.value == slopes[0][0]
    assert evidence.unit == "nats"
    assert all(f"C={i}: {slope[0]:.3g}" in evidence.measured for i, slope in enumerate(slopes))


@given(st.lists(effects, min_size=1, max_size=5))
def test_the_row_to_show_is_the_one_that_the_rule_names(slopes):
    values = np.array([value for value, *_ in slopes])
    for show, value in {
        "least": values.min(),
        "middle": values[len(values) // 2],
        "farthest": values[np.abs(values).argmax()],
    }.items():
        evidence = measured(rows(*slopes), rule(**SLOPES, show=show, decide="shown"))
        assert evidence.effect.value == value
        assert len(evidence.intervals) == 1


def test_a_mean_decides_alone_or_is_none_of_each():
    table = rows((1, 0.5, 2), (3, 2, 4), (2, 1, 3), names=["C=1", "C=2", "mean"])
    each = measured(table, rule(**SLOPES, show="mean"))
    alone = measured(table, rule(**SLOPES, show="mean", decide="shown"))
    assert (each.intervals, alone.intervals) == ([(0.5, 2), (2, 4)], [(1, 3)])
    assert each.effect == alone.effect == Effect(2, 1, 3, of="mean")


@given(effects, effects)
def test_a_joined_number_widens_the_interval_that_decides(one, other):
    names = ("slope", "low", "high", "beyond", "beyond_low", "beyond_high")
    frame = pd.DataFrame([dict(zip(names, one + other, strict=True), at="C=1")])
    inputs = SimpleNamespace(derived={"slopes": frame}.get)
    chosen = rule(**SLOPES | {"effect": "beyond"}, joined=["slope"])
    (ends,) = measured(inputs, chosen).intervals
    assert ends == (min(one[1], other[1]), max(one[2], other[2]))


def test_rows_without_a_number_give_their_reason_and_decide_nothing():
    nan = float("nan")
    evidence = measured(rows((nan, nan, nan), note="too few budgets"), rule(**SLOPES))
    assert evidence.measured == "C=0: too few budgets"
    assert evidence.effect is None
    absent = rule(**SLOPES, where="at == none", missing="more budgets")
    assert measured(rows((1, 0, 2)), absent).needed == "more budgets"
    assert verdict(measured(rows((1, 0, 2)), absent).intervals, above=0) is Verdict.CANNOT_TELL


def test_a_bound_is_broken_by_one_run():
    """Eq 9 of the sparsity paper over 6 N_a D is 1.159 at 12 layers of width 768 (App C)."""
    inputs = SimpleNamespace(completed=pd.DataFrame({"C": [1.159, 1.05], "C_6N": [1.0, 1.0]}))
    flops = rule(rule="bound", column="C", over="C_6N", centre=1, says="{least} to {largest}")
    evidence = measured(inputs, flops)
    assert evidence.effect.interval == (1.159, 1.05, 1.159)
    assert evidence.measured == "1.05 to 1.16"
    assert verdict(evidence.intervals, 0.8, 1.2) is Verdict.SUPPORTED
    assert verdict(evidence.intervals, 0.8, 1.1) is Verdict.NOT_SUPPORTED


def part(where, n=5, profile=None, unidentified=(), **params):
    estimates = {
        name: SimpleNamespace(estimate=x[0], low=x[1], high=x[2]) for name, x in params.items()
    }
    own = {"where": where, "n": n, "params": estimates, "profile": profile or estimates}
    return SimpleNamespace(**own, diagnostics=SimpleNamespace(unidentified=unidentified))


def test_the_groups_of_a_split_fit_that_are_meant_decide():
    parts = part({"group": "a"}, b=(0.5, 0.4, 0.6)), part({"group": "b"}, b=(0.2, None, None))
    inputs = SimpleNamespace(fit={"size": SimpleNamespace(parts=parts)}.get)
    exponent = {"rule": "parameter", "parameter": "b", "fits": ["size"]}
    assert measured(inputs, rule(**exponent, where="group == a")).intervals == [(0.4, 0.6)]
    every = measured(inputs, rule(**exponent))
    assert every.measured == "a 0.5 [0.4, 0.6]; b 0.2 (no interval)"
    assert verdict(every.intervals, above=0) is Verdict.CANNOT_TELL
    assert measured(inputs, rule(**exponent, where="group == c")).intervals == []
    with pytest.raises(UserError, match="the report of size has no 'c'"):
        measured(inputs, rule(**exponent | {"parameter": "c"}))


def test_a_parameter_that_the_runs_do_not_identify_decides_nothing():
    parts = [part({}, unidentified=["b"], b=(0.3, 0.01, 4.0))]
    inputs = SimpleNamespace(fit={"f": SimpleNamespace(parts=parts)}.get)
    found = measured(inputs, rule(rule="parameter", parameter="b", fits=["f"]))
    assert found.measured == "f 0.3 [0.01, 4]"
    assert verdict(found.intervals, above=0) is Verdict.CANNOT_TELL


def test_a_profile_without_an_end_is_endless():
    parts = [part({}, E_max=(300.0, None, None))]
    inputs = SimpleNamespace(fit={"f": SimpleNamespace(parts=parts)}.get)
    saturates = rule(rule="parameter", parameter="E_max", fits=["f"], ends="profile")
    assert measured(inputs, saturates).intervals == [(0.0, np.inf)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"effect": "slop"},
            "measure: the table slopes has no column 'slop'; did you mean slope? There are: at,",
        ),
        (
            {"beside": ["at"]},
            "measure: the table slopes has no interval of at: it has no column at_low",
        ),
        ({"show": "mean"}, "measure: no row of the table slopes has at == mean"),
        ({"says": "it is {slpe}"}, "measure: says: there is no 'slpe'; did you mean slope?"),
    ],
)
def test_what_the_table_has_not_is_refused_in_one_line(changes, message):
    table = rows((1, 0, 2))
    frame = table.derived("slopes").rename(columns={"low": "slope_low", "high": "slope_high"})
    with pytest.raises(UserError) as error:
        measured(SimpleNamespace(derived={"slopes": frame}.get), rule(**SLOPES | changes))
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"measure": None}, "claims.c: it must have either measure or code"),
        ({"code": "claims:rises"}, "claims.c: it must have either measure or code"),
        ({"with": {"slope": 1}}, "claims.c: with: it is for code"),
        (
            {"measure": SLOPES | {"rule": "row"}},
            "claims.c.measure.rule is 'row'; it must be rows, bound",
        ),
        ({"measure": SLOPES | {"table": "slope"}}, "c: there is no derived table 'slope'"),
        (
            {"measure": {"rule": "parameter", "parameter": "b", "fits": ["f"]}},
            "c: there is no fit 'f'",
        ),
    ],
)
def test_a_claim_without_one_known_rule_fit_or_table_is_refused_in_one_line(changes, message):
    claim = {"name": "c", **KEYS, "measure": SLOPES, **changes}
    figure = {"name": "F1", "code": "figures:draw", "caption": "A picture."}
    derived = {"name": "slopes", "code": "derived:slopes"}
    known = {"figures": [figure], "derived": [derived], "claims": [claim]}
    with pytest.raises(UserError) as error:
        parse(Study, {"study": "toy", "title": "T", **known}, "toy.yaml")
    assert str(error.value).startswith(f"toy.yaml: {message}"), error.value
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"column": "C_sparse"}, "the study's table has no column 'C_sparse'; did you mean"),
        ({"says": "it is {leat}"}, "measure: says: there is no 'leat'; did you mean least"),
    ],
)
def test_what_no_run_has_is_refused_before_training(changes, message):
    known = load_study("sparsity", REPOSITORY)
    entry = known.entry("claims", "six_N_a_D_counts_the_flops")
    wrong = entry.measure.model_copy(update=changes)
    changed = known.model_copy(update={"claims": (entry.model_copy(update={"measure": wrong}),)})
    with pytest.raises(UserError, match=message):
        check_study(changed)
