"""Levina-Bickel: the worked numbers, and clouds whose dimension is known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moelaws.studies.generalization.derived.dimension import (
    dimension,
    local_dimension,
    nearest,
    over_subsamples,
)


def test_one_point_with_neighbours_at_1_2_3_4():
    distances = np.array([[1.0, 2.0, 3.0, 4.0]])
    assert local_dimension(distances) == pytest.approx([0.844907], abs=1e-6)
    for few_or_equal in ([1.0], [1.0, 2.0], [2.0, 2.0, 2.0]):
        assert np.isnan(local_dimension([few_or_equal])).all()


def test_neighbours_are_those_of_all_pairs():
    points = np.random.default_rng(0).standard_normal((700, 3)) + 1e3
    gaps = np.linalg.norm(points[:, None] - points[None], axis=-1)
    expected = np.sort(gaps, axis=1)[:, 1:6]
    assert nearest(points, 5) == pytest.approx(expected, rel=1e-6)


def sphere(rng, n, d):
    x = rng.standard_normal((n, d + 1))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def swiss_roll(rng, n):
    t = 1.5 * np.pi * (1 + 2 * rng.uniform(size=n))
    return np.column_stack([t * np.cos(t), 21 * rng.uniform(size=n), t * np.sin(t)])


CLOUDS = {
    "segment": (lambda rng: rng.uniform(size=(1500, 1)) @ np.ones((1, 30)), 1),
    "circle": (lambda rng: sphere(rng, 1500, 1), 1),
    "swiss roll": (lambda rng: swiss_roll(rng, 1500), 2),
    "sphere of 4": (lambda rng: sphere(rng, 1500, 4), 4),
    "Gaussian of 5 in 40": (
        lambda rng: rng.standard_normal((1500, 5)) @ rng.standard_normal((5, 40)), 5,
    ),
}  # fmt: skip


@pytest.mark.parametrize("cloud", CLOUDS)
def test_manifolds_have_their_dimension(cloud):
    make, d = CLOUDS[cloud]
    cloud = over_subsamples(make(np.random.default_rng(1)))
    assert cloud["dimension"] == pytest.approx(d, rel=0.08)
    assert 0 <= cloud["mad"] < 0.1 * d


@settings(max_examples=15)
@given(scale=st.floats(1e-3, 1e3), shift=st.floats(-5, 5), seed=st.integers(0, 99))
def test_neither_scale_nor_place_nor_rotation_changes_it(scale, shift, seed):
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((120, 3))
    turned = points @ np.linalg.qr(rng.standard_normal((3, 3)))[0]
    expected = dimension(points, k=10)
    assert dimension(scale * (turned + shift), k=10) == pytest.approx(expected, rel=1e-5)


def test_points_that_coincide_count_once_and_a_cloud_too_small_has_no_dimension():
    points = np.random.default_rng(3).standard_normal((400, 3))
    once, thrice = over_subsamples(points), over_subsamples(np.repeat(points, 3, axis=0))
    assert once == thrice
    assert thrice["points"] == 400
    small = over_subsamples(points[:30])
    assert np.isnan([small["dimension"], small["mad"]]).all()
