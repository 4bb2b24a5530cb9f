"""Advice against closed forms, a brute search, the papers' printed optima and its own promises."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moelaws import laws
from moelaws.analysis.advice import CandidateLaw, Constraints, advise, ideal
from moelaws.analysis.advice.advise import advised, value_set
from moelaws.analysis.advice.page import notes
from moelaws.analysis.advice.plans import Space
from moelaws.analysis.advice.regret import Minimax, drawn_optima
from moelaws.analysis.advice.sources import published_laws
from moelaws.analysis.advice.sweeps import small_sweeps
from moelaws.laws.joint.loss import at_experts, compute_optimal
from moelaws.spec.advice import load_advice
from moelaws.spec.errors import UserError
from moelaws.studies.sparsity.laws.loss import optimal_size, optimal_sparsity

ADVICE = load_advice()
LAWS = CHINCHILLA, SPARSITY, JOINT = published_laws(ADVICE)
*_, COMPREHENSIVE = published_laws(ADVICE, ["comprehensive"])
COMPUTES = st.floats(18, 25).map(lambda x: 10.0**x)
SPARSITIES = st.sampled_from([0.0, 0.5, 0.9, 0.98])


@given(COMPUTES)
@settings(max_examples=10)
def test_chinchilla_splits_a_budget_as_its_closed_form(C):
    p = CHINCHILLA.params
    a, b = p["alpha"], p["beta"]
    G = (a * p["A"] / (b * p["B"])) ** (1 / (a + b))
    plan = CHINCHILLA.best(Constraints(C))
    assert plan.N == pytest.approx(G * (C / 6) ** (b / (a + b)), rel=1e-4)
    assert plan.S == 0


@given(COMPUTES, st.sampled_from([0.5, 0.9, 0.98]))
@settings(max_examples=10)
def test_the_sparsity_law_has_its_best_size_at_the_ceiling_of_sparsity(C, ceiling):
    best = optimal_size(SPARSITY.params, ceiling, C)
    plan = SPARSITY.best(Constraints(C, max_sparsity=ceiling))
    assert plan.S == pytest.approx(ceiling)
    assert plan.N == pytest.approx(float(best.N), rel=1e-4)
    assert SPARSITY.loss(plan) == pytest.approx(float(best.L), abs=1e-9)


@pytest.mark.parametrize(("N", "C", "S"), [(1e9, 1e20, 0.87238), (1e9, 1e21, 0.62330)])
def test_memory_brings_out_the_papers_best_sparsity_of_a_size(N, C, S):
    """sparsity, sec 3: with the total size held to N, S* is inside, and falls with the budget."""
    plan = SPARSITY.best(Constraints(C, max_parameters={"memory": N}))
    assert plan.N == pytest.approx(N, rel=1e-6)
    assert plan.S == pytest.approx(S, abs=1e-4)
    assert plan.S == pytest.approx(float(optimal_sparsity(SPARSITY.params, N, C)), abs=1e-4)


@given(COMPUTES, SPARSITIES)
@settings(max_examples=10)
def test_joint_loss_has_its_closed_form_at_each_sparsity(C, S):
    law = replace(JOINT, S=S)
    closed = compute_optimal(at_experts(JOINT.params, 1 / (1 - S)), C)
    assert law.loss(law.best(Constraints(C))) == pytest.approx(float(closed.L), abs=1e-8)


LIMITS = st.builds(
    Constraints,
    COMPUTES,
    served_tokens=st.sampled_from([0.0, 1e11, 1e13]),
    max_parameters=st.sampled_from([{}, {"memory": 1e9}, {"memory": 1e11}]),
    max_tokens=st.sampled_from([np.inf, 1e10, 1e12]),
    max_sparsity=SPARSITIES,
)


@pytest.mark.parametrize("law", [*LAWS, COMPREHENSIVE], ids=lambda law: law.name)
@given(limits=LIMITS)
@settings(max_examples=10)
def test_no_plan_of_a_fine_grid_is_better_than_the_best(law, limits):
    """Plans by brute force, from the constraints alone."""
    N_active, S = np.meshgrid(np.geomspace(1e4, 1e13, 901), [0.0, *np.linspace(0, 1, 31)[1:-1]])
    S = np.minimum(S if law.S is None else law.S, limits.max_sparsity)
    D = np.minimum(limits.compute / (6 * N_active) - limits.served_tokens / 3, limits.max_tokens)
    allowed = (D > 0) & (N_active / (1 - S) <= limits.largest)
    losses = law.loss(ideal(N_active, S, D, limits))[allowed]
    best = law.best(limits)
    assert law.loss(best) <= losses.min() + 1e-9
    assert best.N <= limits.largest * (1 + 1e-9)
    assert best.D <= limits.max_tokens
    assert limits.cost(best) <= limits.compute * (1 + 1e-9)


@given(limits=LIMITS)
@settings(max_examples=4)
def test_regret_is_none_under_the_own_law_and_negative_nowhere(limits):
    minimax = Minimax(LAWS, limits)
    for truth in minimax.truths:
        plan, regrets = truth.best, minimax.regrets(truth.best)
        assert regrets[truth.law.name].nats == 0
        assert regrets[truth.law.name].compute_factor == pytest.approx(1)
        for law, regret in zip(LAWS, regrets.values(), strict=True):
            raw = float(law.loss(plan)) - float(law.loss(law.best(limits)))
            assert regret.nats == pytest.approx(raw, abs=1e-7)
            assert raw >= -1e-7
            assert regret.compute_factor >= 1 - 1e-9 or np.isnan(regret.compute_factor)


@given(limits=LIMITS)
@settings(max_examples=5)
def test_no_plan_of_the_space_is_more_robust_than_the_robust_one(limits):
    minimax = Minimax(LAWS, limits)
    worst = float(minimax.worst(minimax.robust()))
    space = Space(limits)
    assert worst <= np.nanmin(minimax.worst(space.plans(*space.grid(301)))) + 1e-6
    assert worst <= min(float(minimax.worst(t.best)) for t in minimax.truths) + 1e-9


def test_the_factor_of_compute_buys_the_same_loss():
    limits = Constraints(1e21)
    minimax = Minimax(LAWS, limits)
    plan = minimax.truths[0].best
    for law, regret in zip(LAWS, minimax.regrets(plan).values(), strict=True):
        less = law.best(replace(limits, compute=limits.compute / regret.compute_factor))
        assert law.loss(less) == pytest.approx(float(law.loss(plan)), abs=5e-4)


def drawn(law, spread, n):
    """The law with ``n`` draws about its coefficients, each off by the fraction ``spread``."""
    estimates = np.array([law.params[name] for name in law.law.names])
    factors = np.random.default_rng(0).normal(0, spread, (n, len(estimates)))
    return replace(law, name="ours", draws=estimates * np.exp(factors))


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
@pytest.mark.parametrize("limits", [{}, {"max_parameters": {"memory": 3e9}}], ids=["free", "held"])
def test_each_draws_best_plan_is_that_of_a_law_with_its_coefficients(law, limits):
    ours, limits = drawn(law, 0.005, 4), Constraints(1e20, **limits)
    plans, losses = drawn_optima(ours, limits)
    for i, row in enumerate(ours.draws):
        alone = replace(law, params=dict(zip(law.law.names, row, strict=True)))
        best = alone.best(limits)
        assert losses[i] == pytest.approx(float(alone.loss(best)), abs=2e-5)
        assert plans.N_active[i] == pytest.approx(float(best.N_active), rel=0.02)
        assert plans.S[i] == pytest.approx(float(best.S), abs=0.005)


def test_draws_count_among_the_worst_cases():
    limits = Constraints(1e20, max_parameters={"memory": 3e9})
    ours = drawn(SPARSITY, 0.02, 200)
    answer = advise([ours], limits, ADVICE.shape)
    own = answer.recommendations[0]
    assert own.regret["ours"].nats == 0 < own.regret["ours"].high
    assert answer.robust.worst <= own.worst
    space = Space(limits)
    least = ours.losses_of_draws(space.plans(*space.grid(241))).reshape(200, -1).min(axis=1)
    high = np.quantile(np.maximum(ours.losses_of_draws(own.plan) - least, 0), 0.95)
    assert own.regret["ours"].high == pytest.approx(high, abs=2e-4)


def test_a_fit_that_its_runs_do_not_determine_does_not_count():
    odd = replace(SPARSITY, name="odd", params={**SPARSITY.params, "e": 3.0, "alpha": 0.2})
    with_it = advise([*LAWS, replace(odd, determined=False)], Constraints(1e20), ADVICE.shape)
    without = advise(LAWS, Constraints(1e20), ADVICE.shape)
    assert with_it.robust.worst == pytest.approx(without.robust.worst)
    assert len(with_it.robust.regret) == 4
    assert advise([*LAWS, odd], Constraints(1e20), ADVICE.shape).robust.worst > 0.01


def test_a_fit_that_does_not_count_counts_for_no_small_sweep_either():
    minimax = Minimax([CHINCHILLA, replace(JOINT, determined=False)], Constraints(1e23))
    sweep = small_sweeps(minimax, ADVICE.sweep)[0]
    assert sweep.worst == sweep.regret["chinchilla"] < sweep.regret["joint.loss"]
    assert small_sweeps(Minimax(LAWS, Constraints(1e3)), ADVICE.sweep) == []  # pays for no model


def test_a_plan_that_spends_less_is_held_to_what_it_spends():
    limits = Constraints(1e21)
    tenth = CHINCHILLA.best(Constraints(1e20))
    regret = Minimax(LAWS, limits).regrets(tenth)[CHINCHILLA.name]
    assert regret.nats > 0.05
    assert regret.compute_factor == pytest.approx(1, rel=0.02)


def test_a_law_without_sparsity_does_not_decide_alone_where_others_are_too_far():
    answer = advise(LAWS, Constraints(1e25), ADVICE.shape, farthest=3.0)
    assert len(answer.laws) == 3
    near = advise(LAWS, Constraints(2e17), ADVICE.shape, farthest=2.0)
    assert [law.name for law in near.laws] == ["chinchilla", "joint.loss"]
    assert "decades of C" in near.left_out["sparsity.loss"]


A_NODE = {"max_parameters": {"memory": 1024 * 64e9 / 18}, "gpus": 1024, "gpu_memory": 80e9}


@pytest.mark.parametrize(
    ("C", "limits", "min_sparsity", "max_regret"),
    [
        (3e21, {"max_sparsity": 0.03}, 0.0, 0.02),
        (3e21, {"max_parameters": {"memory": 1e9}}, 0.0, 0.02),
        (1e24, A_NODE, 0.9, 0.1),  # its GPUs share a sequence, so that it holds a mixture
    ],
)
def test_there_is_a_configuration_near_the_robust_plan(C, limits, min_sparsity, max_regret):
    answer = advise(LAWS, Constraints(C, **limits), ADVICE.shape)
    assert answer.configuration.gpu_bytes <= answer.limits.gpu_memory
    assert answer.as_configured.plan.S >= min_sparsity
    assert answer.as_configured.worst < max_regret


def test_the_configuration_is_whole_keeps_to_the_limits_and_has_its_own_regret():
    memory = {"serving memory": 2.4e10}
    limits = Constraints(1e21, max_parameters=memory, max_tokens=2e11, experts=(64, 128, 256), k=8)
    answer = advise(LAWS, limits, ADVICE.shape)
    model, own = answer.configuration.model, answer.as_configured
    assert (model.ffn.top_k, model.ffn.n_experts in (64, 128, 256)) == (8, True)
    assert model.d_model % ADVICE.shape.width_multiple == 0
    assert model.d_model == model.n_heads * ADVICE.shape.head_width
    assert own.plan.N == answer.configuration.parameters.total <= 2.4e10
    assert own.plan.N_active == answer.configuration.parameters.active
    assert answer.configuration.flops["all"] == pytest.approx(1e21)
    assert own.worst >= answer.robust.worst
    assert own.worst < 0.1  # nats: near the robust plan, by every law


def test_laws_of_one_variable_set_it():
    plan = ideal(1e9, 0.95, 1e20 / 6e9, Constraints(1e20))
    ratio = laws.fittable("allocation.ratio")
    assert {entry.variable: value_set(entry, plan) for entry in ADVICE.setters} == {
        "G": pytest.approx(11.3372, rel=1e-2),  # leverage, Table 6
        "r_star": pytest.approx(float(ratio.predict(ratio.published, {"C": 1e20, "S": 0.95}))),
        "lr": pytest.approx(1.1576 * 1e20**-0.1529),
        "B": pytest.approx(0.0694 * 1e20**0.3644),
    }
    dense = ideal(1e9, 0.0, 1e10, Constraints(1e20))
    assert np.isnan(value_set(ADVICE.setters[0], dense))


def test_the_leverage_papers_seven_times_lies_between_the_laws_that_know_experts():
    """leverage, sec 5: a mixture of A = 3.1 % saves over 7 times a dense model's compute at 1e22.

    sparsity.loss and joint.loss, which were fitted to other models, say more and less.
    """
    limits = Constraints(1e22, max_sparsity=1 - 12 / 384)
    factors = {}
    for law in (SPARSITY, JOINT):
        dense = law.best(replace(limits, max_sparsity=0.0))
        factors[law.name] = Minimax([law], limits).regrets(dense)[law.name].compute_factor
    assert factors["joint.loss"] < 7 < factors["sparsity.loss"]
    assert factors["joint.loss"] > 2


def test_a_mixture_of_the_leverage_paper_and_its_dense_model_come_out_level_by_one_law():
    """leverage, sec 5 and Table 1: MoE-mini and Dense-6.1B, 1e12 tokens each, end about level.

    sparsity.loss agrees. By joint.loss, whose models activate one expert, the mixture lags behind.
    """
    mixture = ideal(0.8239e9, 1 - 0.8239 / 17.4994, 1e12, Constraints(1e22))
    dense = ideal(6.1069e9, 0.0, 1e12, Constraints(1e23))
    lags = {law.name: float(law.loss(mixture) - law.loss(dense)) for law in LAWS}
    assert abs(lags["sparsity.loss"]) < 0.02
    assert lags["sparsity.loss"] < lags["joint.loss"] < lags["chinchilla"]
    assert mixture.beyond({"S": (0, 0.5), "N_active": (1e9, 2e9), "D": (1e9, 1e12)}) == {
        "S": pytest.approx(np.log10(0.5 / 0.04708), abs=1e-3),
        "N_active": pytest.approx(np.log10(1 / 0.8239)),
    }


def test_what_no_law_says_is_named_with_its_default():
    entries = {"advisers": ADVICE.advisers, "setters": ADVICE.setters}
    answer = advise(LAWS, Constraints(1e22), ADVICE.shape, **entries)
    text = "\n".join(notes(answer))
    assert "S = 0 for chinchilla, S = 0.969 for leverage.allocation" in text
    assert answer.far["leverage.hyperparameters"] == {"C": pytest.approx(np.log10(1e22 / 3e20))}
    assert "leverage.hyperparameters (C by 1.5 decades)" in text
    free = advise(LAWS, Constraints(1e22), ADVICE.shape)
    assert "granularity 8" in "\n".join(notes(free))


def test_a_law_whose_runs_are_not_known_is_asked_by_name_alone_and_keeps_its_defaults():
    assert COMPREHENSIVE.name == "comprehensive"
    assert "comprehensive" not in [law.name for law in LAWS]
    with_it = advise([*LAWS, COMPREHENSIVE], Constraints(1e21), ADVICE.shape)
    text = "\n".join(notes(with_it))
    assert "k = 5 for comprehensive, E_s = 2 for comprehensive" in text
    assert "The range of the runs behind comprehensive is not known" in text
    # The plan that is robust without it is nearly so with it: its worst regret is .01 nats.
    without = advise(LAWS, Constraints(1e21), ADVICE.shape)
    own = float(
        COMPREHENSIVE.loss(without.robust.plan)
        - COMPREHENSIVE.loss(with_it.laws[3].best(Constraints(1e21)))
    )
    assert with_it.robust.worst < own < 0.012


def test_three_advisers_name_nearly_the_same_tokens():
    limits = Constraints(1e20)
    plans = [advised(entry, limits) for entry in ADVICE.advisers]
    tokens = [float(plan.D) for plan in plans]
    assert len(plans) == 3
    assert max(tokens) < 1.15 * min(tokens)
    assert [float(plan.N / plan.N_active) for plan in plans] == pytest.approx([32, 20, 16])


@pytest.mark.parametrize(("compute", "mostly"), [(3e18, True), (1e22, False)])
def test_a_configuration_that_is_mostly_embeddings_is_named(compute, mostly):
    lines = notes(advise(LAWS, Constraints(compute), ADVICE.shape))
    assert any(line.startswith("Embeddings are") for line in lines) == mostly


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ({"max_parameters": {"serving memory": 0.5}}, "serving memory holds less than one param"),
        ({"compute": 0.01}, r"a budget of 0\.01 FLOPs pays for no model"),
        ({"served_tokens": 1e30}, r"and 1e\+30 served tokens pays for no model"),
        ({"max_sparsity": 0.5, "experts": (512,), "k": 8}, r"sparser than the ceiling of 0\.5"),
        ({"experts": (64,)}, "64 experts needs the number of active ones"),
    ],
)
def test_limits_that_no_plan_keeps_are_refused(constraints, message):
    with pytest.raises(UserError, match=message):
        Space(Constraints(**{"compute": 1e20} | constraints))


def test_what_does_not_go_together_is_refused_in_one_line():
    limits = Constraints(1e20)
    with pytest.raises(UserError, match="the law reads r, and a plan has"):
        CandidateLaw("a", laws.fittable("allocation.loss"), {})
    with pytest.raises(UserError, match="no candidate law has coefficients"):
        advise([], limits, ADVICE.shape)
    with pytest.raises(UserError, match=r"costs 6e\+21 FLOPs, more than the budget of 1e\+20"):
        advise(LAWS, limits, ADVICE.shape, compare=ideal(1e9, 0.9, 1e12, limits))
    assert "no model of whole layers" in advise(LAWS, Constraints(1e12), ADVICE.shape).not_built
    limits = Constraints(1e21, max_parameters={"serving memory": 1e10})
    left_out = advise(LAWS, limits, ADVICE.shape, advisers=ADVICE.advisers).left_out
    assert list(left_out) == ["leverage.allocation", "holistic", "marin"]
    assert all("which the limits do not allow" in reason for reason in left_out.values())
