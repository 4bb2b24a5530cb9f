"""A user's mistakes in YAML: the file, the key, the value, what is allowed; never a traceback."""

import shutil

import pytest

from moelaws.spec.errors import UserError
from moelaws.spec.project import load_project, load_study
from repository import REPOSITORY


@pytest.fixture
def root(tmp_path):
    shutil.copytree(REPOSITORY / "config", tmp_path / "config")
    return tmp_path


def edit(root, old, new, file="config/studies/sparsity.yaml"):
    path = root / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "tier: demo",
            "teir: demo",
            "unknown key teir; did you mean tier? Allowed here: batch_min",
        ),
        ("seed: 0", "seed: -1", "seed is -1; it must be at least 0"),
        ("tier: demo", "tier: demo\ntier: gpu", "key 'tier' stands twice"),
    ],
)
def test_mistakes_in_config(root, old, new, message):
    edit(root, old, new, "config/config.yaml")
    with pytest.raises(UserError) as caught:
        load_project(root)
    assert "config.yaml: " in str(caught.value)
    assert message in str(caught.value)


def test_unknown_study(root):
    with pytest.raises(
        UserError, match=r"unknown study 'sparsty'; did you mean sparsity\? There are: .*sparsity"
    ):
        load_study("sparsty", root)


def test_missing_config(tmp_path):
    with pytest.raises(UserError, match=r"no such file; run from the repository's root"):
        load_project(tmp_path)


@pytest.mark.parametrize("form", ["sparsity,allocation", ["sparsity", "allocation"]])
def test_studies_as_a_user_types_them(root, form):
    assert load_project(root, {"studies": form}).studies == ("sparsity", "allocation")
