"""The page of recovered laws is written from what a simulated sweep left, and nothing else."""

import json
import shutil

import pytest

from moelaws import laws
from moelaws.analysis.plan import fits_of, plan
from moelaws.cli.simulate import simulated, write
from moelaws.records.layout import Results
from moelaws.tables.simulate import simulation_entry
from planned_study import STUDY, small
from repository import REPOSITORY


@pytest.fixture
def recovered(monkeypatch):
    monkeypatch.syspath_prepend(REPOSITORY / "benchmarks")
    import recovered

    return recovered


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A project of the small study alone, its sweep simulated and fitted."""
    (tmp_path / "config/studies").mkdir(parents=True)
    (tmp_path / "config/studies/small.yaml").write_text(json.dumps(STUDY))
    shutil.copy(REPOSITORY / "docs/recovery.md", tmp_path / "page.md")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_page_holds_the_fits_of_the_simulated_law(recovered, folder):
    study, sweep = small()
    made, about = simulated(sweep, simulation_entry(study))
    write(made, Results().table("demo", "small", simulated=True), about)
    of = fits_of(study, simulation_entry(study), sample=50)
    list(plan(of, "demo", Results(), lambda name: lambda *stage: None))

    before = (folder / "page.md").read_text()
    recovered.main(["--tier", "demo", "--page", "page.md"])
    page = (folder / "page.md").read_text()
    begin, end = page.index(recovered.BEGIN), page.index(recovered.END)
    assert page[:begin] == before[: before.index(recovered.BEGIN)]
    rows = [line for line in page[begin:end].splitlines() if line.startswith("| loss (")]
    published = laws.fittable("chinchilla").published
    assert [row.split(" | ")[1:3] for row in rows] == [
        [name, f"{value:.4g}"] for name, value in published.items()
    ]
    assert "`chinchilla`, noise 0.001, seed 1; 24 rows fitted." in page
    # Over another size the losses follow no such law: nothing to compare with.
    assert "| total (" not in page
    recovered.main(["--tier", "demo", "--page", "page.md"])
    assert (folder / "page.md").read_text() == page


def test_without_simulated_results_nothing_is_written(recovered, folder):
    before = (folder / "page.md").read_text()
    with pytest.raises(SystemExit, match="nothing is simulated at tier paper"):
        recovered.main(["--page", "page.md"])
    assert (folder / "page.md").read_text() == before
