"""Where a mistake is: the file and the path of keys go before its text."""

import pytest

from moelaws.spec.errors import UserError, located


@pytest.mark.parametrize(
    ("where", "text"),
    [
        (("a.yaml",), "a.yaml: no such law"),
        (("a.yaml", "fits", "loss", "holdout"), "a.yaml: fits.loss.holdout: no such law"),
        (("",), "no such law"),
    ],
)
def test_a_mistake_is_told_with_its_place(where, text):
    with pytest.raises(UserError) as error, located(*where):
        raise UserError("no such law")
    assert str(error.value) == text


def test_places_nest():
    with pytest.raises(UserError) as error, located("a.yaml"), located("fits", "loss"):
        raise UserError("no such law")
    assert str(error.value) == "a.yaml: fits: loss: no such law"


def test_other_errors_are_none_of_its_business():
    with pytest.raises(KeyError, match="'N'"), located("a.yaml"):
        raise KeyError("N")
