"""What is embedded in a page is read back as it was."""

import base64
import gzip
import json
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws.explore.material import packed, to_json
from moelaws.explore.page import render
from moelaws.explore.runs import MAX_POINTS, thinned
from moelaws.spec.errors import UserError


@given(st.text())
def test_text_comes_back_and_closes_no_element(text):
    letters = packed(to_json({"message": text + "</script>"}))
    assert "<" not in letters
    assert json.loads(gzip.decompress(base64.b64decode(letters)))["message"] == text + "</script>"


@given(st.integers(1, 100_000))
def test_a_thinned_curve_keeps_its_ends_and_few_points(n):
    kept = thinned(n)
    assert len(kept) <= min(n, MAX_POINTS)
    assert kept[0] == 0
    assert kept[-1] == n - 1
    assert (np.diff(kept) > 0).all()


def test_without_plotly_the_page_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(UserError, match="pip install plotly"):
        render({"title": "A tier"})
