"""What every law declares, and that asking for laws stays light."""

import subprocess
import sys

import numpy as np
import pytest

from moelaws import laws
from moelaws.spec.errors import UserError


@pytest.mark.parametrize("law_id", laws.ids())
def test_declaration_is_complete(law_id):
    law = laws.get(law_id)
    assert law.id == law_id
    for text in (law.title, law.source, law.equation, law.latex, law.protocol.source):
        assert text
    if law.protocol.objective == "huber":
        assert set(law.protocol.grid) == set(law.names)
        low, high = law.bounds.T
        for name, least, most in zip(law.names, low, high, strict=True):
            assert all(least <= start <= most for start in law.protocol.grid[name])
    if law.published is not None:
        assert set(law.published) == set(law.names)
        assert law.natural(law.vector(law.published)) == pytest.approx(
            list(law.published.values())
            if tuple(law.published) == law.names
            else [law.published[name] for name in law.names]
        )


def test_unknown_law_lists_the_known_ones():
    with pytest.raises(UserError, match=r"unknown law 'sparsity\.los'.*sparsity\.loss"):
        laws.get("sparsity.los")


def test_shared_modules_are_no_laws():
    assert not {"base", "kinds"} & set(laws.ids())


def test_missing_parameter_and_variable_are_named():
    law = laws.get("chinchilla")
    with pytest.raises(UserError, match="parameter E is missing"):
        law.predict({k: v for k, v in law.published.items() if k != "E"}, {"N": 1e9, "D": 1e10})
    with pytest.raises(UserError, match="variable D is missing"):
        law.predict(law.published, {"N": 1e9})
    with pytest.raises(UserError, match="parameter A is -1"):
        law.predict(law.published | {"A": -1}, {"N": 1e9, "D": 1e10})


def test_prediction_has_the_shape_of_its_columns():
    law = laws.get("chinchilla")
    grid = law.predict(law.published, {"N": np.geomspace(1e8, 1e9, 3)[:, None], "D": [1e9, 1e10]})
    assert grid.shape == (3, 2)
    one = law.predict(law.published, {"N": 1e9, "D": 1e10})
    assert one.shape == ()
    assert grid[2, 1] == pytest.approx(float(one), rel=1e-14)


@pytest.mark.parametrize(
    "arguments",
    [["laws"], ["laws", "sparsity.isoflop"], ["eval", "chinchilla", "N=1e9", "D=1e10", "--json"]],
)
def test_laws_and_eval_import_neither_pandas_nor_scipy_nor_torch(arguments):
    code = (
        "import sys; from moelaws.cli import cli; cli(sys.argv[1:], standalone_mode=False);"
        "heavy = {'pandas', 'scipy', 'torch', 'pyarrow'} & set(sys.modules);"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
