"""Laws as tables beside modules: what a table says is what the same law in Python says."""

import numpy as np
import pytest

from moelaws.laws import step_law
from moelaws.laws.base import FitProtocol
from moelaws.laws.declared import law_beside
from moelaws.laws.forms import power_law_sum
from moelaws.laws.terms import irreducible_loss, over, term
from moelaws.laws.vocabulary import variable

TABLE = '''
id = "tokens"
title = """
Loss over
  tokens"""
source = "nobody, 2026"
errata = ["FLOOR"]
terms = {b = {D = "-beta"}, e = {}}
published = {b = 100.0, beta = 0.3, e = 1.8}
variables = {D = {description = "tokens of training"}}
protocol = {objective = "huber"}
texts = {FLOOR = "The floor is that of one text."}

[parameters]
b = ["nats/token tokens^beta", 1e-6, 1e40, "coefficient of the data term", "log", [0.0, 5.0]]
beta = ["1", 0.0, 3.0, "exponent of the data term", "linear", [0.0, 0.5]]
e = ["nats/token", 1e-3, 1e3, "irreducible loss", "log", [0.5]]

[variants.steep]
like = ""
title = "A steeper one"
published = {beta = 0.5}
'''


@pytest.fixture
def tokens(tmp_path):
    (tmp_path / "tokens.toml").write_text(TABLE)
    return law_beside(str(tmp_path / "tokens.py"))


def test_a_table_is_the_law_of_its_terms(tokens):
    beta = over(variable("D", "tokens of training"), "beta", 0.3, "", (0.0, 3.0), (0.0, 0.5))
    stated = power_law_sum(
        id="tokens",
        title="Loss over tokens",
        source="nobody, 2026",
        terms=(
            term("b", 100.0, "the data term", beta, starts=(0.0, 5.0)),
            irreducible_loss("e", 1.8, starts=(0.5,)),
        ),
        order=("b", "beta", "e"),
        protocol=FitProtocol("huber"),
        errata=("The floor is that of one text.",),
    )
    law, _ = tokens
    names = ("parameters", "variables", "response", "protocol", "equation", "latex", "errata")
    for name in ("id", "title", "source", *names):
        assert getattr(law, name) == getattr(stated, name), name
    D = {"D": np.geomspace(1e3, 1e12, 5)}
    assert np.array_equal(*(x.predict(x.published, D) for x in (law, stated)))


def test_a_form_that_is_like_another_states_what_differs(tokens):
    law, variants = tokens
    steep = variants["steep"]
    assert steep.ref == "tokens:steep"
    assert (steep.title, steep.published) == ("A steeper one", {"beta": 0.5})
    assert (steep.equation, steep.errata, steep.bounds.tolist()) == (
        law.equation,
        law.errata,
        law.bounds.tolist(),
    )


def test_a_quotient_is_of_two_results_or_variables():
    found = step_law.LAW.evaluate({}, {"N": 1e9, "D": np.array([1e10, 1e11]), "context": 2048.0})
    assert found["B_sequences"].tolist() == (found["B"] / 2048.0).tolist()
