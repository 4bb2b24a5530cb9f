"""A call for some studies leaves the others on the tier's pages, which show nothing stale."""

import base64
import gzip
import json
import re

import pytest
import yaml

from own_study import write_study
from sweep_copy import Copy

pytestmark = pytest.mark.slow


WHOLE = ("package", "derived", "fits", "figures", "claims")


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy in which one call made a whole study, and the next one another study."""
    above = tmp_path_factory.mktemp("others")
    copy = Copy.of_repository(above / "copy")
    write_study(above / "ours", *WHOLE)
    study = yaml.safe_load((above / "ours/study.yaml").read_text())
    study |= {"study": "later", "title": "Loss of fewer models"}
    study["grids"]["demo"]["sweeps"][0]["axes"]["steps"] = [10, 20, 30, 40]
    (above / "ours/later.yaml").write_text(yaml.safe_dump(study))
    copy.snakemake("--config", "studies=../ours/study.yaml")
    for page in ("laws.md", "outlook.md"):  # of a call long ago
        (copy.root / "results/demo" / page).write_text("# Old\n\nThe robust plan is OLD.\n")
    copy.snakemake("--config", "studies=../ours/later.yaml")
    return copy


def shown(copy):
    """What explore.html of the tier holds."""
    page = (copy.root / "results/demo/explore.html").read_text()
    packed = re.search('id="data">([^<]*)<', page)[1]
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def test_the_pages_show_the_studies_of_earlier_calls(copy):
    tier = copy.root / "results/demo"
    page = shown(copy)
    assert page["runs"]["count"] == 5
    assert [study["key"] for study in page["studies"]] == ["later", "dense"]
    for title in ("Loss of fewer models", "Loss of dense models"):
        assert title in (tier / "claims.md").read_text()
    report = (tier / "report.html").read_text()
    assert "figures/later/curves.png" in report
    assert "figures/dense/curves.png" in report
    assert copy.planned("--config", "studies=../ours/later.yaml") == {}


def test_no_page_shows_a_file_that_is_no_input_of_its_rule(copy):
    assert [page["href"] for page in shown(copy)["pages"]] == ["claims.md"]
    assert "robust plan" not in (copy.root / "results/demo/report.html").read_text()


def test_a_study_that_is_gone_is_left_out_and_named(copy):
    file = copy.root.parent / "ours/study.yaml"
    file.rename(file.with_suffix(".old"))
    done = copy.snakemake("--config", "studies=../ours/later.yaml")
    file.with_suffix(".old").rename(file)
    assert re.search("moelaws: the pages leave out dense, .*study.yaml", done.stderr)


def test_a_study_whose_grid_and_entries_changed_is_shown_as_it_was_made(copy):
    file, later = (copy.root.parent / f"ours/{name}.yaml" for name in ("study", "later"))
    study = yaml.safe_load(file.read_text())
    study["grids"]["demo"]["sweeps"][0]["axes"]["steps"].append(60)
    study["figures"].append(study["figures"][0] | {"name": "never_drawn"})
    file.write_text(yaml.safe_dump(study))
    later.write_text(later.read_text().replace("Loss of fewer models", "Loss of some models"))
    call = ("--config", "studies=../ours/later.yaml")
    assert not {"train", "fit", "draw"} & copy.planned(*call).keys()
    before = copy.summaries()
    copy.snakemake(*call, "--force", "results/demo/report.html")
    copy.snakemake(*call)
    assert copy.summaries() == before
    report = (copy.root / "results/demo/report.html").read_text()
    assert "figures/dense/curves.png" in report
    assert "figures/dense/never_drawn" not in report
    assert [study["key"] for study in shown(copy)["studies"]] == ["later", "dense"]
    assert copy.planned(*call) == {}
