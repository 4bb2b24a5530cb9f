"""What follows from what, in which unit, and which column is whose."""

from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws import laws
from moelaws.laws.base import POSITIVE, Variable
from moelaws.laws.mapping import sources
from moelaws.laws.vocabulary import LOSS, VOCABULARY, derive, factor, plan, refuse_unit
from moelaws.spec.errors import UserError

N, C = np.array([1e9, 2e9]), np.array([1e20, 1e21])


def test_what_is_given_is_not_derived():
    derived, notes = derive({"N": N, "S": 0 * N, "N_active": 0.3 * N, "C": C, "D": N}, ["D", "C"])
    assert (derived, notes) == ({}, {})
    derived, notes = derive({"N": N, "N_active": 0.3 * N, "C": C}, ["D"])
    assert notes == {"D": "D = C / (6 N_active)"}
    assert derived["D"] == pytest.approx(C / (1.8 * N))


def test_activation_granularity_and_compute():
    # MoE-mini: 12 of 384 experts and a shared one; widths 2048 and 384.
    given_ = {"E": 384, "k": 12, "E_s": 1, "d_model": 2048, "d_expert": 384, "N_active": 1, "D": 2}
    derived, _ = derive({k: np.array(float(v)) for k, v in given_.items()}, ["A", "G", "C"])
    assert float(derived["A"]) == pytest.approx(13 / 385)
    assert float(derived["G"]) == pytest.approx(2 * 2048 / 384)
    assert float(derived["C"]) == 12


def test_the_optimal_ratio_is_the_published_law():
    own = laws.get("allocation.loss").derivations
    derived, notes = derive({"C": np.array(1e21), "S": np.array(14 / 17)}, ["r_star"], own)
    assert float(derived["r_star"]) == pytest.approx(1.79468, rel=1e-5)
    assert "allocation.ratio" in notes["r_star"]


@given(st.sets(st.sampled_from(sorted(VOCABULARY))), st.permutations(sorted(VOCABULARY)))
def test_every_plan_can_be_followed_and_rests_on_nothing_of_its_own(available, variables):
    known = set(available)
    steps = plan(available, variables)
    for step in steps:
        assert set(step.needs) <= known
        assert step.result not in known
        known.add(step.result)
    again = plan(sorted(available, reverse=True), variables)
    assert steps == again


@pytest.mark.parametrize(
    ("name", "word", "expected"),
    [
        ("N", "M", 1e6), ("D", "B", 1e9), ("D", "T", 1e12), ("N", "1e3", 1e3), ("N", "1", 1.0),
        ("N", "parameters", 1.0), ("C", "FLOP", 1.0), ("S", "1", 1.0), ("L", "bits", np.log(2)),
        ("C", "PF-days", 1e15 * 86400), ("C", "ZFLOP", 1e21), ("C", "GFLOP", 1e9),
        ("C", "MFLOPs", 1e6), ("C", "FLOPs", 1), ("S", "percent", 0.01),
    ],
)  # fmt: skip
def test_units(name, word, expected):
    assert factor({**VOCABULARY, "L": LOSS}[name], word) == expected


@pytest.mark.parametrize(
    ("variable", "declared", "word", "remedy"),
    [
        (LOSS, "bits/byte", None, "map a column in nats/token; bits a byte"),
        (LOSS, "bits/token", None, "say so with --unit L=bits"),
        (VOCABULARY["N"], "tokens", None, "map a column in parameters"),
        (VOCABULARY["N"], "parameters", "M", "x is in parameters, as its table says; leave --unit"),
        (LOSS, "nats/token", "bits", "leave --unit L=bits out"),
        (LOSS, "bits/token", "bits", ""),
        (VOCABULARY["N"], "parameters", "1", ""),
        (Variable("E", "1", "experts", POSITIVE), "experts", None, ""),
    ],
)
def test_a_column_that_declares_another_unit_is_refused(variable, declared, word, remedy):
    with pytest.raises(UserError, match=remedy) if remedy else nullcontext():
        refuse_unit(variable, "x", declared, word)


def test_sources_a_mapping_before_a_name_before_a_derivation():
    law = laws.fittable("sparsity.loss")
    origins = sources(law, {"N": "size", "L": "loss"}, ["size", "N", "C", "S", "loss", "L"])
    assert origins.columns == {"N": "size", "S": "S", "L": "loss", "C": "C"}
    assert [step.result for step in origins.derivations] == ["N_active", "D"]
    assert set(origins.variables) == {"N", "S", "L", "C", "N_active", "D"}
    origins = sources(law, {"C": "flops"}, ["N", "D", "E", "k", "flops", "L"])
    assert set(origins.columns) == {"N", "D", "E", "k", "L", "C"}
    assert [step.text for step in origins.derivations] == ["S = (E - k) / E"]
