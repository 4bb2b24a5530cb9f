"""What the papers print, a second time: coefficients and fit protocols, and LaTeX that renders."""

import numpy as np
import pytest
from matplotlib.mathtext import MathTextParser

from moelaws import laws

REFS = [ref for i in laws.ids() for ref in (i, *(f"{i}:{name}" for name in laws.variants(i)))]

# As printed, in the order of the law's own parameters or constants.
COEFFICIENTS = {
    "chinchilla": (482.01, 2085.43, 1.8169, 0.3478, 0.3659),  # Besiroglu et al., not the original
    "sparsity.loss": (
        *(16612.50, 5455.67, 0.4598, 17.26, 0.94),
        *(0.5962, 0.3954, -0.1666, 0.1603, 0.1595),
    ),
    **dict.fromkeys(
        [f"allocation.loss{form}" for form in ("", ":absdiff", ":sqlog", ":literal")],
        (15.12, 18.62, 39.55, 0.0499, 13.7354, 0.6288, 0.0453, 0.4228, 0.0431),
    ),
    "allocation.ratio": (6.7e-5, -1.23, 0.24, 0.21),
    "allocation.ratio:stage2_alpha": (6.7e-5, -1.23),
    "allocation.ratio:stage2_beta": (0.24, 0.21),
    "leverage.joint": (1.23, -7.61e-2, 1.67e-2, -1.17e-1, 1.63e-2, 5.28e16),
    "leverage.hyperparameters": (1.1576, -0.1529, 0.0694, 0.3644),
    "leverage.hyperparameters:lr": (1.1576, -0.1529),
    "leverage.hyperparameters:batch": (0.0694, 0.3644),
    "leverage.allocation": (0.1915, 0.5095, 5.2232, 0.4905),
    "leverage.allocation:M": (0.1915, 0.5095),
    "leverage.allocation:D": (5.2232, 0.4905),
    "leverage.allocation:dense": (0.0655, 0.5422, 15.2582, 0.4578),
    "leverage.allocation:dense_M": (0.0655, 0.5422),
    "leverage.allocation:dense_D": (15.2582, 0.4578),
    "deepseek": (0.3118, -0.125, 0.2920, 0.3271),
    "deepseek:allocation": (0.1715, 0.5243, 5.8316, 0.4757),
    "ling": (0.8343, -0.1385, 0.1361, 6.4765, 0.5181, -0.0841),
    "step_law": (1.79, -0.713, 0.307, 0.58, 0.571),
    "clark.dense": (3.568e13**0.078, 0.078),
    "clark.routing": (-0.082, -0.108, 0.009, 1.104, 1.847, 314.478),
    "clark.routing:rl-r": (-0.083, -0.126, 0.012, 1.111, 1.880, 469.982),
    "clark.routing:hash": (-0.087, -0.136, 0.012, 1.157, 4.175, 477.741),
    "granularity.loss": (2.1, 0.58, 18.1, 0.115, 30.8, 0.147, 0.47),
    "granularity.loss:dense": (16.3, 0.126, 26.7, 0.127, 0.47),
    "joint.loss": (
        *(35.91, -0.1889, -0.2285, 0.0098, 35.98, -0.1775, 0.5529, -0.0259),
        *(2.0732, 290.4521, 1.3637),
    ),
    "joint.hyperparameters": (np.exp(8.39), -0.81, -0.25),
    "comprehensive": (
        *(0.1577, 7.2446, 5.1395, -3.2363, 0.0013, 0.0450),
        *(38.051, 0.2383, 27129.05, 0.4694, 31.096, 1.8182),
    ),
    "holistic": (0.0437, 0.5437, 22.89, 0.4563),
    "marin": (0.0109, 0.535, 16.0, 0.464),
    "marin:lr": (1.63, -0.2813, -0.3678, 0.5),
    "marin:loss": (95.18, 0.0941, 1.6),
    "marin:bpb": (25.97, 0.0915, 0.4814),
    "marin:ladder": (58.67, 0.0842, 1.2),
    "marin:dense": (66.70, 0.0844, 1.2),
    "repeated_data": (
        *(np.exp(6.255414), np.exp(7.3049974), np.exp(0.6254804)),
        *(0.3526596, 15.387756, 5.309743),
    ),
    "joint.loss:E1": (30.3640, -0.1817, 53.9838, -0.1965, 1.3637),
    "joint.loss:E2": (27.7982, -0.1780, 66.8401, -0.2065, 1.3637),
    "joint.loss:E4": (24.8462, -0.1731, 87.7022, -0.2192, 1.3637),
    "joint.loss:E8": (21.8330, -0.1676, 119.9126, -0.2338, 1.3637),
    "joint.loss:E16": (19.0159, -0.1617, 167.5073, -0.2494, 1.3637),
    "joint.loss:E32": (16.5424, -0.1557, 234.6726, -0.2652, 1.3637),
}
# Least squares on a printed table; Table 6 beside a dense curve that is assumed.
OURS = {"generalization.kappa", "generalization.kappa:log2", "leverage.loss"}

LOGS, QUARTERS = (0, 10, 20), (0, 0.25, 0.5, 0.75, 1, 1.25)
# Objective, delta, hold-out, starts (working scale) as the papers print them.
PROTOCOLS = {
    "chinchilla": (
        ("huber", 1e-3, ""),
        dict.fromkeys("AB", (0, 5, 10, 15, 20, 25))
        | {"E": (-1, -0.5, 0, 0.5, 1)}
        | dict.fromkeys(("alpha", "beta"), (0, 0.5, 1, 1.5, 2)),
    ),
    "sparsity.loss": (
        ("huber", 1e-3, "S >= 0.98"),
        dict.fromkeys("abcd", LOGS)
        | {"e": (1.5,)}
        | dict.fromkeys(("alpha", "beta", "gamma"), QUARTERS)
        | dict.fromkeys(("lambda", "delta"), (-1, -0.5, 0, 0.5, 1)),
    ),
    "allocation.loss": (
        ("huber", 1e-3, "S >= 0.976"),  # 97.67 %
        dict.fromkeys("abcd", LOGS)
        | {"tau": (1.5,)}
        | dict.fromkeys(("alpha", "beta", "lambda", "gamma"), QUARTERS),
    ),
    "leverage.joint": (("huber", 1e-3, "EL >= 6"), None),
    "leverage.curve": (("huber", 1e-3, ""), None),
    "granularity.loss": (("huber", 0.1, ""), None),
    "joint.loss": (("huber", 0.01, ""), None),
    "leverage.hyperparameters:lr": (("squared", 1e-3, "C > 1e20"), {}),
    "leverage.hyperparameters:batch": (("squared", 1e-3, "C > 1e20"), {}),
    "sparsity.isoflop": (("squared", 1e-3, ""), {}),
}


def test_every_law_with_published_values_has_them_here():
    assert {ref for ref in REFS if laws.get(ref).published} == set(COEFFICIENTS) | OURS


@pytest.mark.parametrize("ref", COEFFICIENTS)
def test_coefficients_are_the_printed_ones(ref):
    assert tuple(laws.get(ref).published.values()) == COEFFICIENTS[ref]


@pytest.mark.parametrize("ref", PROTOCOLS)
def test_protocols_are_the_printed_ones(ref):
    protocol, (traits, grid) = laws.get(ref).protocol, PROTOCOLS[ref]
    assert (protocol.objective, protocol.delta, protocol.holdout) == traits
    if grid is not None:
        assert dict(protocol.grid) == grid
    assert protocol.sample is None  # the whole grid


def test_every_equation_renders():
    parser = MathTextParser("agg")
    surfaces = {f"sparsity.isoflop:{name}" for name in laws.variants("sparsity.isoflop")}
    for latex in {laws.get(ref).latex for ref in REFS if ref not in surfaces}:
        assert parser.parse(f"${latex}$").width > 0, latex
