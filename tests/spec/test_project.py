"""The project and its studies as a user names them, and mistakes in the file that has them."""

import pytest

from moelaws.spec.errors import UserError
from moelaws.spec.project import load_project, load_study
from repository import REPOSITORY


def test_a_mistake_in_the_configuration_is_placed_there(tmp_path):
    (tmp_path / "config").mkdir()
    (tmp_path / "config/config.yaml").write_text("teir: demo")
    message = r"^config/config.yaml: unknown key teir; did you mean tier\? Allowed here: batch_min"
    with pytest.raises(UserError, match=message):
        load_project(tmp_path)


def test_unknown_study():
    with pytest.raises(
        UserError, match=r"unknown study 'sparsty'; did you mean sparsity\? There are: .*sparsity"
    ):
        load_study("sparsty", REPOSITORY)


def test_missing_config(tmp_path):
    with pytest.raises(UserError, match=r"no such file; run from the repository's root"):
        load_project(tmp_path)


@pytest.mark.parametrize("form", ["sparsity,allocation", ["sparsity", "allocation"]])
def test_studies_as_a_user_types_them(form):
    assert load_project(REPOSITORY, {"studies": form}).studies == ("sparsity", "allocation")
